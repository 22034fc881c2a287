"""Replay what a power cut leaves of writes that were not synced, and find no torn file.

    python benchmarks/faults/replay.py

After Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014). `Disk` follows a writer's calls and keeps two
states of a folder: what programs see, and what is surely on the disk. Contents are sure after fsync of the file, names
after fsync of the folder. At every call, `crashes` makes each state that a power cut may leave: of the names that
are not sure, any part took place, in their order; contents that are not sure are empty, half or whole.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import outcomes

ROOT = Path(__file__).resolve().parent.parent.parent
State = dict[str, bytes]


class Disk:
    """What of a folder is seen, and what is sure, as `os` is called.

    Parameters
    ----------
    folder : Path
        Whatever is in it at the start is sure.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: list[State] = []
        self._sure_names: dict[str, int] = self._names()
        self._seen_names = dict(self._sure_names)
        self._sure: dict[int, bytes] = {node: (folder / name).read_bytes() for name, node in self._sure_names.items()}
        self._seen = dict(self._sure)
        self._pending: list[dict[str, int | None]] = []

    def _names(self) -> dict[str, int]:
        return {entry.name: entry.inode() for entry in os.scandir(self.folder) if entry.is_file()}

    def look(self) -> None:
        """Take note of what happened since the last look: the names that came, went or changed, and the contents."""
        now = self._names()
        changed: dict[str, int | None] = {
            name: node for name, node in now.items() if self._seen_names.get(name) != node
        }
        changed |= dict.fromkeys(self._seen_names.keys() - now.keys())
        if changed:
            self._pending.append(changed)
        self._seen_names = now
        for name, node in now.items():
            self._seen[node] = (self.folder / name).read_bytes()

    def sync(self, descriptor: int) -> None:
        """Make sure what fsync of a descriptor makes so."""
        node = os.fstat(descriptor).st_ino
        if node == self.folder.stat().st_ino:
            self._sure_names, self._pending = dict(self._seen_names), []
        elif node in self._seen:
            self._sure[node] = self._seen[node]

    def crash(self) -> None:
        """Add every state that a power cut at this moment may leave."""
        for chosen in itertools.product((False, True), repeat=len(self._pending)):
            names: dict[str, int | None] = dict(self._sure_names)
            for took_place, change in zip(chosen, self._pending, strict=True):
                names |= change if took_place else {}
            there = {name: node for name, node in names.items() if node is not None}
            for contents in itertools.product(*(self._contents(node) for node in there.values())):
                self.states.append(dict(zip(there, contents, strict=True)))

    def _contents(self, node: int) -> list[bytes]:
        seen = self._seen[node]
        if self._sure.get(node) == seen:
            return [seen]
        return list(dict.fromkeys((self._sure.get(node, b""), b"", seen[: len(seen) // 2], seen)))


@contextlib.contextmanager
def watching(disk: Disk, sync: bool = True) -> Iterator[None]:
    """Follow all that is done in a disk's folder; without `sync`, as if fsync were never called."""

    def before_and_after(call: Callable[..., object], done: Callable[..., None]) -> Callable[..., object]:
        def called(*arguments: object, **options: object) -> object:
            disk.look()
            disk.crash()
            value = call(*arguments, **options)
            disk.look()
            done(*arguments)
            disk.crash()
            return value

        return called

    kept = {name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink")}
    try:
        for name, call in kept.items():
            setattr(os, name, before_and_after(call, disk.sync if name == "fsync" and sync else lambda *_: None))
        yield
        disk.look()
        disk.crash()
    finally:
        for name, call in kept.items():
            setattr(os, name, call)


def torn(state: State, name: str, allowed: set[bytes | None], scratch: Path) -> str | None:
    """Return what is wrong with a file after a crash, or None.

    It has to be one of `allowed`, whole. Once its writer has returned, and only one version is allowed, it has to match
    its seal too. Before, a mismatch is noticed by whoever reads it, and `./run` makes the file anew.
    """
    from mdpu.errors import UserError
    from mdpu.pipeline.files import check

    content = state.get(name)
    if content not in allowed:
        return f"{name} is {'absent' if content is None else f'{len(content)} bytes of neither version'}"
    for path in scratch.iterdir():
        path.unlink()
    for other, data in state.items():
        (scratch / other).write_bytes(data)
    try:
        if content is not None and len(allowed) == 1:
            check(scratch / name)
    except UserError as error:
        return str(error)
    return None


def replay(writes: list[bytes], sync: bool = True) -> tuple[int, list[str]]:
    """Write a file several times over, and return the number of crash states and what is torn in them."""
    from mdpu.pipeline.files import replacing

    wrong = []
    count = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
        path = Path(folder) / "metrics.parquet"
        old: bytes | None = None
        for new in writes:
            disk = Disk(Path(folder))
            with watching(disk, sync), replacing(path) as temporary:
                temporary.write_bytes(new)
            states = {tuple(sorted(state.items())) for state in disk.states}
            count += len(states)
            wrong += [said for state in states if (said := torn(dict(state), path.name, {old, new}, Path(scratch)))]
            disk.states = []
            disk.crash()  # now that the writer has returned, the new version is sure
            wrong += [said for state in disk.states if (said := torn(state, path.name, {new}, Path(scratch)))]
            old = new
    return count, wrong


def main() -> None:
    """Replay with the syncs, and, to see that the replay would find it, as if there were none."""
    sys.path.insert(0, str(ROOT))
    writes = [b"first version, " * 50, b"second, longer version, " * 60, b"third"]
    for sync in (True, False):
        count, wrong = replay(writes, sync)
        if sync:
            where = "every call of a write, with any part lost of what was not synced"
            torn_or_not = {"torn": len(wrong), "old or new, never torn": count - len(wrong)}
            outcomes.record("power cut", where, {name: number for name, number in torn_or_not.items() if number})
        print(f"{'with' if sync else 'without'} fsync: {count} states after a power cut, {len(wrong)} with a torn file")
        if bool(wrong) == sync:
            sys.exit("\n".join(wrong[:5]) or "the replay finds nothing without fsync either")


if __name__ == "__main__":
    main()
