"""Is a file still what was written? Every file of the results has a seal beside it: a hidden file with its checksum.

The seal of ``metrics.parquet`` is ``.metrics.parquet.seal``. It is JSON with the SHA-256 of the file as it was written,
and of each file that the command read to make it. So every number can be traced back, from the page to the images, and
recomputed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mdpu.errors import UserError

# What the current command has read: path to SHA-256. Nothing is recorded outside `recording`.
_READ: ContextVar[dict[str, str] | None] = ContextVar("read", default=None)


@dataclass(frozen=True)
class Seal:
    """What is known of a file's contents.

    Attributes
    ----------
    sha256 : str
        Of the file as it was written.
    inputs : dict
        SHA-256 of what was read to make it, by path.
    edited : bool
        Whether somebody deliberately changed the file by hand afterwards.
    """

    sha256: str
    inputs: dict[str, str] = field(default_factory=dict)
    edited: bool = False

    def to_json(self) -> str:
        """Return the text of the seal, with a checksum of its own."""
        facts = asdict(self)
        return json.dumps({**facts, "seal": _of_facts(facts)}, indent=1, ensure_ascii=False) + "\n"

    def matches(self, checksum: str) -> bool:
        """Return whether a file with this checksum is the one that was written under this seal."""
        return checksum == self.sha256


def _of_facts(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def seal_path(path: Path) -> Path:
    """Return the path of a file's seal."""
    return path.with_name(f".{path.name}.seal")


def is_seal(path: Path) -> bool:
    """Return whether a file is a seal, judging by its name."""
    return path.name.startswith(".") and path.suffix == ".seal"


def sealed_path(seal: Path) -> Path:
    """Return the file that a seal belongs to."""
    return seal.with_name(seal.name.removeprefix(".").removesuffix(".seal"))


def read_seal(path: Path) -> Seal | None:
    """Return a file's seal, or None if it has none; a broken seal matches nothing.

    Raises
    ------
    UserError
        If the system cannot read it.
    """
    try:
        facts = json.loads(seal_path(path).read_text(encoding="utf-8"))
        own = facts.pop("seal", None)
        return Seal(**facts) if own == _of_facts(facts) else Seal("broken")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{seal_path(path)} could not be read ({reason}); mend that and run again") from None
    except (ValueError, TypeError, AttributeError):
        return Seal("broken")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; raise `UserError` if it is missing or cannot be read."""
    if Path(path).is_fifo():  # reading it would block
        raise UserError(f"{path} is a pipe, not a file")
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
    except OSError as error:
        raise UserError(f"{path} could not be read ({error.strerror or error}); mend that and run again") from None


def check(path: Path) -> str:
    """Return the SHA-256 of a file that is about to be read, and record it as an input of what is written next.

    A file without a seal, such as one of the user's own, is accepted as it is.

    Raises
    ------
    UserError
        If the file is missing or does not match its seal.
    """
    checksum, seal = sha256(path), read_seal(path)
    if seal is not None and not seal.matches(checksum):
        # A network file system may show another node's new seal late; listing the folder refreshes it.
        any(Path(path).parent.iterdir())
        checksum, seal = sha256(path), read_seal(path)
        if seal is not None and not seal.matches(checksum):
            raise UserError(
                f"{path} is not what was written: it has changed since; ./run makes it anew, and "
                f"`python -m mdpu accept {path}` keeps it as it is"
            )
    if (read := _READ.get()) is not None:
        read[str(path)] = checksum
    return checksum


def is_intact(path: Path) -> bool:
    """Return whether a file exists and matches its seal."""
    seal = read_seal(path)
    return seal is not None and path.is_file() and seal.matches(sha256(path))


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Record what is read in the block, for the seals of what is written in it; one block surrounds each command."""
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def make_seal(path: Path, checksum: str) -> Seal:
    """Return the seal of contents for `path`, made from what has been read so far."""
    return Seal(checksum, {name: value for name, value in (_READ.get() or {}).items() if name != str(path)})
