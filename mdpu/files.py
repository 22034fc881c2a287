"""Files that are whole or absent: written beside their place and renamed."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from mdpu.errors import UserError


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that becomes `path` when the block succeeds.

    Readers see the old file or the new one, never a part, even if the power fails. A killed writer
    leaves a temporary file, which the next one removes. Two writers do not disturb each other. A
    full disk ends in `UserError`.
    """
    if path.exists() and not path.is_file():  # a device, a pipe or a folder
        raise UserError(f"{path} is not a regular file; name another one")
    # With the same suffix, because numpy and matplotlib choose the format by it.
    temporary = path.with_name(f".{path.stem}.{platform.node()}-{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_orphans(path)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())  # the contents reach the disk before the name does
        temporary.replace(path)
    except OSError as error:
        raise UserError(
            f"{path} could not be written ({error.strerror or error}); fix that and run again"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_orphans(path: Path) -> None:
    """Remove the temporary files that dead processes of this machine left of `path`; other
    machines' may be alive.
    """
    start = f".{glob.escape(path.stem)}.{glob.escape(platform.node())}-"
    for temporary in path.parent.glob(f"{start}*{path.suffix}"):
        number = temporary.name.removesuffix(path.suffix).rpartition("-")[2]
        if number.isdecimal() and not is_alive(int(number)):
            temporary.unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """Return whether a process of this machine runs, or may run."""
    if os.name != "posix":  # elsewhere signal 0 is not a question
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another user's
        return True
    return True
