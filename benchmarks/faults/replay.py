"""Replay what a power cut leaves of writes that were not synced, and find no torn file.

    python benchmarks/faults/replay.py

After Pillai et al., "All File Systems Are Not Created Equal" (OSDI 2014). `Disk` follows a writer's calls and keeps two
states of a folder: what programs see, and what is surely on the disk. Contents are sure after fsync of the file, names
after fsync of the folder. At every call, `crash` makes each state that a power cut may leave: of the names that are not
sure, any part took place, in their order; contents that are not sure are empty, half or whole.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from harness import ROOT, record

State = tuple[tuple[str, bytes], ...]  # name and contents of each file


class Disk:
    """What of a folder is seen, and what is sure, as `os` is called; whatever is in it at the start is sure."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.states: set[State] = set()
        self._sure_names: dict[str, int] = self._names()
        self._seen_names = dict(self._sure_names)
        self._sure = {node: (folder / name).read_bytes() for name, node in self._sure_names.items()}
        self._seen = dict(self._sure)
        self._pending: list[dict[str, int | None]] = []

    def _names(self) -> dict[str, int]:
        return {entry.name: entry.inode() for entry in os.scandir(self.folder) if entry.is_file()}

    def look(self) -> None:
        """Take note of what happened since the last look: the names that came, went or changed, and the contents."""
        now, seen = self._names(), self._seen_names
        changed: dict[str, int | None] = {name: node for name, node in now.items() if seen.get(name) != node}
        changed |= dict.fromkeys(seen.keys() - now.keys())
        self._pending += [changed] if changed else []
        self._seen_names = now
        self._seen |= {node: (self.folder / name).read_bytes() for name, node in now.items()}

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
            there = sorted((name, node) for name, node in names.items() if node is not None)
            for contents in itertools.product(*(self._contents(node) for _, node in there)):
                self.states.add(tuple(zip((name for name, _ in there), contents, strict=True)))

    def _contents(self, node: int) -> list[bytes]:
        seen = self._seen[node]
        if self._sure.get(node) == seen:
            return [seen]
        return list(dict.fromkeys((self._sure.get(node, b""), b"", seen[: len(seen) // 2], seen)))


@contextlib.contextmanager
def watching(disk: Disk, sync: bool) -> Iterator[None]:
    """Follow all that is done in a disk's folder; without `sync`, as if fsync were never called."""

    def look() -> None:
        disk.look()
        disk.crash()

    def watched(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object, **options: object) -> object:
            look()
            value = call(*arguments, **options)
            disk.look()
            if name == "fsync" and sync:
                disk.sync(*arguments)  # type: ignore[arg-type]
            disk.crash()
            return value

        return called

    kept = {name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink")}
    try:
        for name, call in kept.items():
            setattr(os, name, watched(name, call))
        yield
        look()
    finally:
        for name, call in kept.items():
            setattr(os, name, call)


def torn(state: State, name: str, allowed: Collection[bytes | None], scratch: Path) -> str | None:
    """Return what is wrong with a file after a crash, or None.

    It has to be one of `allowed`, whole. Once its writer has returned, and only one version is allowed, it has to match
    its seal too. Before, a mismatch is noticed by whoever reads it, and `./run` makes the file anew.
    """
    from mdpu.errors import UserError
    from mdpu.pipeline.files import check

    content = dict(state).get(name)
    if content not in allowed:
        return f"{name} is {'absent' if content is None else f'{len(content)} bytes of neither version'}"
    if content is None or len(allowed) > 1:
        return None
    for path in scratch.iterdir():
        path.unlink()
    for other, data in state:
        (scratch / other).write_bytes(data)
    try:
        check(scratch / name)
    except UserError as error:
        return str(error)
    return None


def replay(writes: list[bytes], sync: bool = True) -> tuple[int, list[str]]:
    """Write a file several times over, and return the number of crash states and what is torn in them."""
    from mdpu.pipeline.files import replacing

    wrong, count, old = [], 0, None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
        path = Path(folder) / "metrics.parquet"
        for new in writes:
            disk = Disk(Path(folder))
            with watching(disk, sync), replacing(path) as temporary:
                temporary.write_bytes(new)
            count += len(disk.states)
            wrong += [torn(state, path.name, (old, new), Path(scratch)) for state in disk.states]
            disk.states = set()
            disk.crash()  # now that the writer has returned, the new version is sure
            wrong += [torn(state, path.name, (new,), Path(scratch)) for state in disk.states]
            old = new
    return count, [said for said in wrong if said]


def main() -> None:
    """Replay with the syncs, and, to see that the replay would find it, as if there were none."""
    sys.path.insert(0, str(ROOT))
    writes = [b"first version, " * 50, b"second, longer version, " * 60, b"third"]
    for sync in (True, False):
        count, wrong = replay(writes, sync)
        if sync:
            tally = {"torn": len(wrong), "old or new, never torn": count - len(wrong)}
            where = "every call of a write, with any part lost of what was not synced"
            record("power cut", where, {name: number for name, number in tally.items() if number})
        print(f"{'with' if sync else 'without'} fsync: {count} states after a power cut, {len(wrong)} with a torn file")
        if bool(wrong) == sync:
            sys.exit("\n".join(wrong[:5]) or "the replay finds nothing without fsync either")


if __name__ == "__main__":
    main()
