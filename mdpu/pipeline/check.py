"""Are the results what was written? Walks the seals from the page to the images, and deletes what must be remade."""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64decode
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.cache import RunStore
from mdpu.pipeline.files import remove
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.seals import Seal, is_seal, read_seal, sealed_path, sha256

# Folders beside the results that hold no results.
BESIDE = frozenset(("logs", "benchmarks", "checkpoints", "progress", "reported"))
CHANGED, MISSING, STALE, UNSEALED, EDITED = "changed", "missing", "stale", "unsealed", "edited"
UNRECORDED = "unrecorded"
# Why a file is made anew that is as it was written.
REASONS = {
    STALE: "was made from inputs that have changed since",
    UNRECORDED: "was made while nothing recorded its settings",
    UNSEALED: "has lost its seal",
}
WORDS = {
    CHANGED: "has changed since it was written",
    MISSING: "was written, but is not there",
    STALE: "was made from another version of",
    UNSEALED: "has no seal, so nothing is known of it; keep it with `python -m mdpu accept`, or delete it; "
    "if a rule made it, ./run makes it anew",
    EDITED: "was edited on purpose",
    UNRECORDED: REASONS[UNRECORDED],
}


@dataclass(frozen=True, order=True)
class Finding:
    """A file that is not what was written, or that was edited on purpose.

    Attributes
    ----------
    path : Path
    what : str
        `CHANGED`, `MISSING`, `STALE`, `UNSEALED`, `EDITED` or `UNRECORDED`.
    source : Path, optional
        The input that has changed since a stale file was made from it.
    """

    path: Path
    what: str
    source: Path | None = None

    def __str__(self) -> str:
        return f"{self.path} {WORDS[self.what]}{f' {self.source}' if self.source else ''}"


def check_results(results: Path) -> tuple[int, list[Finding]]:
    """Compare every file of the results, and every sealed input of theirs, with its seal.

    Parameters
    ----------
    results : Path
        Folder of a configuration's results.

    Returns
    -------
    number : int
        How many files were compared.
    findings : list of Finding
        Sorted by path; empty if every file is as it was written.

    Raises
    ------
    UserError
        If there is no such folder.
    """
    if not results.is_dir():
        raise UserError(f"{results} is no folder of results")
    files = {path: read_seal(path) for path in _files(results)}
    # Some inputs are outside the folder: the images that configurations share, which have seals, and files of the
    # user's, which have none.
    images = results.parent / "datasets"
    ahead = [seal for seal in files.values() if seal]
    while ahead:
        for path in map(Path, ahead.pop().inputs):
            seal = read_seal(path)
            if path not in files and (seal is not None or (path.is_relative_to(images) and path.exists())):
                files[path] = seal
                ahead += [seal] if seal else []
    checksums = {path: sha256(path) if path.exists() else None for path in files}
    states = {path: _state(seal, checksums[path]) for path, seal in files.items()}
    findings = [Finding(path, state) for path, state in states.items() if state]
    sound = {path: checksums[path] for path, state in states.items() if state in (None, EDITED)}
    for path, seal in files.items():
        if seal is not None and states[path] is None:
            # A source that is itself unsound makes nothing stale yet: it may be remade as it was.
            sources = {Path(source): then for source, then in seal.inputs.items()}
            findings += [Finding(path, STALE, s) for s, then in sources.items() if s in sound and sound[s] != then]
    return len(files), sorted(findings)


def _files(results: Path) -> Iterator[Path]:
    """Yield the files that exist, and the missing ones that have a seal."""
    for path in sorted(results.rglob("*")):
        if path.relative_to(results).parts[0] in BESIDE or path.is_dir():
            continue
        if is_seal(path):
            if not sealed_path(path).exists():
                yield sealed_path(path)
        elif not path.name.startswith("."):  # hidden files are temporary: a process left or is writing them
            yield path


def _state(seal: Seal | None, checksum: str | None) -> str | None:
    """Return what is wrong with a file, its inputs aside, or None."""
    if seal is None:
        return UNSEALED
    if checksum is None:
        return MISSING
    if not seal.matches(checksum):
        return CHANGED
    return EDITED if seal.edited else None


def made_by_rules(records: Path) -> set[Path]:
    """Return the outputs that Snakemake has a record of.

    Parameters
    ----------
    records : Path
        Snakemake's folder of records, ``.snakemake/metadata``. The name of a record is the path of its output in
        Base64, cut into folders ``@...`` where it is longer than a file's name may be.
    """
    made = set()
    for record in records.rglob("*"):
        if record.is_file() and record.read_bytes().endswith(b"}"):
            name = "".join(part.removeprefix("@") for part in record.relative_to(records).parts)
            made.add(Path(urlsafe_b64decode(name).decode()))
    return made


def unrecorded(plan: Plan, made: Collection[Path]) -> list[Finding]:
    """Return the labels, splits, tunings and histories that Snakemake has no record of.

    Only a head records a job's settings, and only when the job ends. A cluster's job that ends while there is no head
    leaves its outputs without a record, and so does a power cut that empties the record. Snakemake takes such outputs
    for good, whatever the configuration says by then.

    Parameters
    ----------
    plan : Plan
    made : collection of Path
        As `made_by_rules` returns it.
    """
    layout = plan.layout
    outputs = [
        *map(layout.labels, plan.datasets),
        *map(layout.split, plan.splits),
        *map(layout.tuned, plan.tunings),
        *map(layout.history, plan.cohorts),
    ]
    return [Finding(path, UNRECORDED) for path in outputs if path.exists() and path not in made]


def bring_to_present(folder: Path) -> list[Path]:
    """Give files that are dated in the future the present time, and return them.

    A clock that was ahead leaves such files. Snakemake takes whatever is made from them for older than they are, and
    makes it again at every run until the future is over.
    """
    now = time.time()
    ahead = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_mtime > now]
    for path in ahead:
        os.utime(path, (now, now))
    return ahead


def mend(plan: Plan, findings: Iterable[Finding], made: Collection[Path]) -> list[str]:
    """Delete what must be remade, restore lost runs, and return a line for each.

    A finished run is restored from its cohort's histories. If they are broken too, the runs that share its minibatches
    are deleted with it: they all train again together, so that it rounds as it did. A run without a seal is kept unless
    its cohort's histories are broken: somebody brought it from elsewhere.

    Parameters
    ----------
    plan : Plan
    findings : iterable of Finding
        As `check_results` and `unrecorded` return them.
    made : collection of Path
        As `made_by_rules` returns it. Other files without a seal are the user's, and are left.

    Raises
    ------
    UserError
        If a file cannot be deleted or restored, e.g. because the results are read-only or the disk is full.
    """
    store = RunStore(plan.layout.store)
    states = {finding.path: finding.what for finding in findings}
    broken = {path for path, what in states.items() if what not in (UNSEALED, EDITED)}
    lines = []
    for run in plan.runs:
        path, cohort = store.path(run), plan.cohort_of(run)
        history = plan.layout.history(cohort.name)
        if path not in broken and states.get(path) != UNSEALED:
            continue
        try:
            if path in broken:
                _delete(path)
            store.restore(run, history)
            broken.discard(path)
            lines.append(f"{path} {_why(states[path])}: it is put back from its cohort's histories")
        except UserError:
            lost = any(states.get(file) in (CHANGED, MISSING) for file in (history, history.with_suffix(".json")))
            if path in broken or lost:
                broken |= {history, *(store.path(other) for other in cohort.runs if other.split == run.split)}
    for path in sorted(broken | {path for path, what in states.items() if what == UNSEALED and path in made}):
        _delete(path)
        lines.append(f"{path} {_why(states.get(path))}: it is made anew")
    return lines


def _why(state: str | None) -> str:
    return REASONS.get(state or "", "was not what was written")


def _delete(path: Path) -> None:
    try:
        remove(path)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{path} is broken and could not be deleted ({reason}); mend that and run again") from error
