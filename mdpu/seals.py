"""Is a file still what was written? Beside every file of the results stands its seal, a hidden file of its checksum.

The seal of ``metrics.parquet`` is ``.metrics.parquet.seal``: JSON with the SHA-256 of the file as it was written, that
of the version before it (a power cut between the two renames leaves that one), and those of the files that the command
read to make it. So every number's way back can be walked and recomputed, from the page to the images.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mdpu.errors import UserError

# What the command at work has read: path to SHA-256. Nothing is recorded outside of `recording`.
_READ: ContextVar[dict[str, str] | None] = ContextVar("read", default=None)


@dataclass(frozen=True)
class Seal:
    """What is known of a file's contents.

    Attributes
    ----------
    sha256 : str
        Of the file as it was written.
    before : str, optional
        Of the version that it replaced, which a crash may have left in place.
    inputs : dict
        SHA-256 of what was read to make it, by path.
    edited : bool
        Whether the file was changed by hand since, on purpose.
    """

    sha256: str
    before: str | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    edited: bool = False

    def to_json(self) -> str:
        """Return the text of the seal."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    def matches(self, checksum: str) -> bool:
        """Return whether a file of this checksum is one that was written."""
        return checksum in (self.sha256, self.before)


def seal_path(path: Path) -> Path:
    """Return where a file's seal stands."""
    return path.with_name(f".{path.name}.seal")


def is_seal(path: Path) -> bool:
    """Return whether a file is a seal, by its name."""
    return path.name.startswith(".") and path.suffix == ".seal"


def sealed_path(seal: Path) -> Path:
    """Return the file that a seal is of."""
    return seal.with_name(seal.name.removeprefix(".").removesuffix(".seal"))


def read_seal(path: Path) -> Seal | None:
    """Return a file's seal, or None if it has none; one that is broken matches nothing."""
    try:
        return Seal(**json.loads(seal_path(path).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError):
        return Seal("broken")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits; raise `UserError` if it is missing or cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; run the rule that makes it") from None
    except OSError as error:
        raise UserError(f"{path} could not be read ({error.strerror or error}); mend that and run again") from None


def check(path: Path) -> str:
    """Return the SHA-256 of a file that is about to be read, and note it as an input of what is written next.

    A file without a seal, such as one of the user's own, is what it is.

    Raises
    ------
    UserError
        If the file is missing, or is not what was written under its seal.
    """
    checksum, seal = sha256(path), read_seal(path)
    if seal is not None and not seal.matches(checksum):
        # On a network file system, another node's new seal may be seen late; a look at the folder asks for it anew.
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
    """Return whether a file is there and is what was written under its seal."""
    seal = read_seal(path)
    return seal is not None and path.is_file() and seal.matches(sha256(path))


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Let the seals of all that is written in the block name what was read in it: once around a command."""
    token = _READ.set({})
    try:
        yield
    finally:
        _READ.reset(token)


def make_seal(path: Path, checksum: str) -> Seal:
    """Return the seal of new contents for `path`, which allows those that are there now until they are replaced."""
    old = read_seal(path)
    before = sha256(path) if old is not None and path.exists() else None
    inputs = {name: value for name, value in (_READ.get() or {}).items() if name != str(path)}
    return Seal(checksum, before if old is not None and before is not None and old.matches(before) else None, inputs)
