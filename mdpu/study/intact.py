"""Are the results what was written? The walk from the page to the images, by the seals, and what is made anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mdpu.errors import UserError
from mdpu.files import remove
from mdpu.seals import Seal, is_seal, read_seal, sealed_path, sha256
from mdpu.study.plan import Plan
from mdpu.study.store import RunStore

# Folders of the results in which nothing is a result.
BESIDE = frozenset(("logs", "benchmarks", "checkpoints", "config"))
CHANGED, MISSING, STALE, UNSEALED, EDITED = "changed", "missing", "stale", "unsealed", "edited"
WORDS = {
    CHANGED: "has changed since it was written",
    MISSING: "was written, but is not there",
    STALE: "was made from another version of",
    UNSEALED: "has no seal, so nothing is known of it; delete it, or keep it with `python -m mdpu accept`",
    EDITED: "was edited on purpose",
}


@dataclass(frozen=True, order=True)
class Finding:
    """A file that is not, or not simply, what was written.

    Attributes
    ----------
    path : Path
    what : str
        `CHANGED`, `MISSING`, `STALE`, `UNSEALED` or `EDITED`.
    source : Path, optional
        What a stale file was made from and is now another.
    """

    path: Path
    what: str
    source: Path | None = None

    def __str__(self) -> str:
        return f"{self.path} {WORDS[self.what]}{f' {self.source}' if self.source else ''}"


def check_results(results: Path) -> tuple[int, list[Finding]]:
    """Compare every file of the results, and every sealed file that went into them, with its seal.

    Parameters
    ----------
    results : Path
        Folder of a configuration's results.

    Returns
    -------
    number : int
        How many files were compared.
    findings : list of Finding
        Sorted by path; empty if all is as it was written.

    Raises
    ------
    UserError
        If there is no such folder.
    """
    if not results.is_dir():
        raise UserError(f"{results} is no folder of results")
    files = {path: read_seal(path) for path in _files(results)}
    # The way back leads out of the folder, to the images that configurations share.
    ahead = [seal for seal in files.values() if seal]
    while ahead:
        for path in map(Path, ahead.pop().inputs):
            if path not in files and (seal := read_seal(path)) is not None:
                files[path] = seal
                ahead.append(seal)
    checksums = {path: sha256(path) if path.exists() else None for path in files}
    states = {path: _state(seal, checksums[path]) for path, seal in files.items()}
    findings = [Finding(path, state) for path, state in states.items() if state]
    sound = {path: checksums[path] for path, state in states.items() if state in (None, EDITED)}
    for path, seal in files.items():
        if seal is not None and states[path] is None:
            # Of a source that is unsound itself nothing is said here: it may well come back as it was.
            sources = {Path(source): then for source, then in seal.inputs.items()}
            findings += [Finding(path, STALE, s) for s, then in sources.items() if s in sound and sound[s] != then]
    return len(files), sorted(findings)


def _files(results: Path) -> Iterator[Path]:
    """Yield the files that are there, and those that are not but have a seal."""
    for path in sorted(results.rglob("*")):
        if path.relative_to(results).parts[0] in BESIDE or path.is_dir():
            continue
        if is_seal(path):
            if not sealed_path(path).exists():
                yield sealed_path(path)
        elif not path.name.startswith("."):  # what a killed process left, or another at work has begun
            yield path


def _state(seal: Seal | None, checksum: str | None) -> str | None:
    """Return what is the matter with a file by itself, or None."""
    if seal is None:
        return UNSEALED
    if checksum is None:
        return MISSING
    if not seal.matches(checksum):
        return CHANGED
    return EDITED if seal.edited else None


def mend(plan: Plan, findings: Iterable[Finding]) -> list[str]:
    """Delete what is to be made anew, put lost runs back, and return a line for each.

    A finished run is put back from its cohort's histories. Where they are broken too, it is trained again together with
    those that share its minibatches, so that it rounds as it did; they are deleted with it.

    Parameters
    ----------
    plan : Plan
    findings : iterable of Finding
        What `check_results` found.

    Raises
    ------
    UserError
        If something cannot be deleted or put back, because the results are read-only or the disk is full.
    """
    store = RunStore(plan.layout.store)
    broken = {finding.path for finding in findings if finding.what in (CHANGED, MISSING, STALE)}
    lines = []
    for run in [run for run in plan.runs if store.path(run) in broken]:
        cohort = plan.cohort_of(run)
        try:
            _delete(store.path(run))
            store.restore(run, plan.layout.history(cohort.name))
            broken.remove(store.path(run))
            lines.append(f"{store.path(run)} was not what was written: it is put back from its cohort's histories")
        except UserError:
            broken.add(plan.layout.history(cohort.name))
            broken |= {store.path(other) for other in cohort.runs if other.split == run.split}
    for path in sorted(broken):
        _delete(path)
        lines.append(f"{path} was not what was written: it is made anew")
    return lines


def _delete(path: Path) -> None:
    try:
        remove(path)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path} is broken and could not be deleted ({reason}); mend that and run again") from error
