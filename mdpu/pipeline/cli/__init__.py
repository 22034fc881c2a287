"""The command line: one file per panel of ``mdpu --help``; every rule of the workflow is one command."""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

from mdpu.pipeline.cli import inspect, data, training, evaluation, showing, carry, console  # isort: skip  (the order of the panels)
from mdpu.errors import UserError, printable
from mdpu.pipeline.cli.common import app
from mdpu.pipeline.seals import recording

# Errors of the machine, not of ours: a disk that fails, is full or may not be read or written, and too many open files.
SYSTEM_FAULTS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE, errno.EMFILE, errno.ENFILE)
# Paths that lead nowhere: a name that is too long, a file in place of a folder or the reverse, links in a circle.
BAD_PATHS = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)
# How torch's errors of a device begin; they are RuntimeErrors like any other.
GPU_ERRORS = ("CUDA", "cuDNN", "cuBLAS", "NCCL", "NVML", "No CUDA GPUs")
# What torch says where a checkpoint cannot be written; it gives no number of an error.
WRITE_ERRORS = ("basic_ios", "PytorchStreamWriter")
NO_MEMORY = "there is not enough memory; give the job more, or ask for less"

__all__ = ["app", "carry", "console", "data", "evaluation", "inspect", "main", "showing", "training"]


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and status 2."""
    # GNU OpenMP's threads spin for a long time while they wait, which stalls a busy machine. With this setting they
    # sleep after microseconds (docs/explanation/performance.md). It must be set before torch loads OpenMP.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        with recording():
            app()
    except MemoryError:
        fail(NO_MEMORY)
    except UserError as error:
        fail(str(error))
    except OSError as error:
        if error.errno not in (*SYSTEM_FAULTS, *BAD_PATHS):
            raise
        fail(f"{error.filename or 'a file'} could not be read or written ({error.strerror}); mend that and run again")
    except RuntimeError as error:
        text = str(error)
        if "can't allocate memory" in text:
            fail(NO_MEMORY)
        if any(words in text for words in WRITE_ERRORS):
            fail("a checkpoint could not be written; see whether the disk is full or fails, and run again")
        if not text.startswith(GPU_ERRORS):
            raise
        fail(f"the GPU failed ({text.splitlines()[0]}); see whether nvidia-smi still lists it, and run again")


def fail(sentence: str) -> NoReturn:
    """End with one sentence and status 2."""
    print(f"error: {printable(sentence)}", file=sys.stderr)
    sys.exit(2)
