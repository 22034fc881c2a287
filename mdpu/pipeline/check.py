"""Are the results what was written? Walks the seals from the page to the images, and deletes what must be remade."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.cache import Cache
from mdpu.pipeline.config import load_yaml
from mdpu.pipeline.files import REPOSITORY, Seal, is_seal, read_json, read_seal, remove, seal_path, sealed_path, sha256
from mdpu.pipeline.plan import Plan

# Folders beside the results that hold no results.
BESIDE = frozenset(("logs", "benchmarks", "checkpoints", "progress", "reported"))
CHANGED, MISSING, STALE, UNSEALED, EDITED = "changed", "missing", "stale", "unsealed", "edited"
ODD, BROKEN, OTHERWISE = "odd", "broken", "otherwise"
WORDS = {
    CHANGED: "has changed since it was written",
    MISSING: "was written, but is not there",
    STALE: "was made from another version of",
    UNSEALED: "has no seal, so nothing is known of it; keep it with `python -m mdpu accept`, or delete it; "
    "if a rule made it, ./run makes it anew",
    EDITED: "was edited on purpose",
    ODD: "is in the place of a file and cannot be read",
    BROKEN: "is a finished run that is not what was written",
    OTHERWISE: "was made with other settings than it has now",
}


@dataclass(frozen=True, order=True)
class Finding:
    """A file that is not what was written, or was edited on purpose: a key of `WORDS`, and the input that changed."""

    path: Path
    what: str
    source: Path | None = None

    def __str__(self) -> str:
        return f"{self.path} {WORDS[self.what]}{f' {self.source}' if self.source else ''}"


def check_results(results: Path, also: Iterable[Path] = ()) -> tuple[int, list[Finding]]:
    """Compare every file of a folder of results, their sealed inputs and their finished runs with what was written.

    A broken seal leads to no inputs, so `also` names those that must not be missed, if they are there. Return how many
    were compared, and the findings by path: none if all are as they were written.
    """
    if not results.is_dir():
        raise UserError(f"{results} is no folder of results")
    seals: dict[Path, Seal | None] = {}
    states: dict[Path, str | None] = {}
    checksums: dict[Path, str] = {}
    # Some inputs are outside the folder: the images that configurations share, which have seals, and files of the
    # user's, which have none.
    images = results.parent / "datasets"
    waiting = [*_files(results), *(path for path in also if path.exists() or seal_path(path).exists())]
    while waiting:
        path = waiting.pop()
        if path in states:
            continue
        try:
            seals[path] = seal = read_seal(path)
            states[path] = UNSEALED if seal is None else MISSING
            if path.exists():
                checksums[path] = sha256(path)
                if seal is not None:
                    edited = EDITED if seal.edited else None
                    states[path] = edited if seal.sha256 == checksums[path] else CHANGED
        except UserError:  # a pipe or a folder in the place of a file: the others are still to be named
            seals[path] = seal = None
            states[path] = ODD
        inputs = map(Path, seal.inputs) if seal else ()
        waiting += [one for one in inputs if read_seal(one) or (one.is_relative_to(images) and one.exists())]
    findings = [Finding(path, state) for path, state in states.items() if state]
    sound = {path: checksums[path] for path, state in states.items() if state in (None, EDITED)}
    for path, seal in seals.items():
        if seal is not None and states[path] is None:
            # A source that is itself unsound makes nothing stale yet: it may be remade as it was.
            sources = {Path(source): then for source, then in seal.inputs.items()}
            findings += [Finding(path, STALE, s) for s, then in sources.items() if s in sound and sound[s] != then]
    cache, runs = Cache(results.parent / "cache", _shipped(results)), named_runs(results)
    findings += [Finding(path, BROKEN if there else MISSING) for path, there in cache.lost(runs).items()]
    return len(states) + sum(cache.path(run).exists() for run in runs), sorted(findings)


def _files(results: Path) -> Iterator[Path]:
    """Yield the files that exist, and the missing ones that have a seal."""
    for path in sorted(results.rglob("*")):
        if path.relative_to(results).parts[0] in BESIDE or (path.is_dir() and read_seal(path) is None):
            continue
        if is_seal(path):
            if not (sealed_path(path).exists() or path.name.startswith("..")):  # a seal that is being written
                yield sealed_path(path)
        elif not path.name.startswith("."):  # hidden files are temporary: a process left or is writing them
            yield path


def named_runs(results: Path) -> list[str]:
    """Return the fingerprints that the whole manifests of the results name."""
    fingerprints: dict[str, None] = {}
    for path in sorted((results / "trained").rglob("[!.]*.json")):
        with contextlib.suppress(UserError, KeyError, TypeError, AttributeError):  # the manifest itself is a finding
            fingerprints |= dict.fromkeys(read_json(path)["runs"].values())
    return list(fingerprints)


def _shipped(results: Path) -> Path | None:
    """Return the packed file of the results' newest configuration, which may name none."""
    files = sorted((results / "config").glob("[!.]*.yaml"), key=lambda file: file.stat().st_mtime)
    with contextlib.suppress(UserError):  # the configuration itself is a finding
        if files and (name := load_yaml(files[-1]).get("shipped")):
            return REPOSITORY / name
    return None


def made_otherwise(plan: Plan) -> list[Finding]:
    """Return the labels and splits that were made with other settings than the plan's.

    Snakemake compares the settings of what it has a record of. It has none of a cluster's job that ended while nobody
    watched, or after a power cut, and takes such outputs for good.
    """
    findings = []
    for name in plan.splits:
        path = plan.layout.split(name)
        try:
            drawn = read_json(path.with_suffix(".json"))["drawing"]
        except (UserError, KeyError, TypeError):  # missing or broken: a finding of `check_results`
            continue
        if drawn != plan.drawing(name):
            findings += [Finding(path, OTHERWISE), Finding(path.with_suffix(".json"), OTHERWISE)]
    return findings


def repair(plan: Plan, made: Collection[Path]) -> list[str]:
    """Delete what must be remade, and return a line for each file.

    `made` are the outputs of rules; other files without a seal are the user's, and are left.
    """
    if not plan.layout.results.exists():
        return []
    images = map(plan.layout.images, plan.datasets)
    _, findings = check_results(
        plan.layout.results, [file for one in images for file in (one, one.with_suffix(".json"))]
    )
    findings += made_otherwise(plan)
    lines = []
    for path, what in {finding.path: finding.what for finding in findings}.items():
        if what == EDITED or (what in (UNSEALED, ODD) and path not in made):
            continue
        try:
            remove(path)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{path} is broken and could not be deleted ({reason}); mend that and run again") from error
        lines.append(f"{path} {WORDS[what].partition(',')[0].removesuffix(' of')}: it is made anew")
    _bring_to_present(plan.layout.results.parent)
    return lines


def _bring_to_present(folder: Path) -> None:
    """Give files that are dated in the future the present time.

    A clock that was ahead leaves such files. Snakemake takes whatever is made from them for older than they are, and
    makes it again at every run until the future is over.
    """
    now = time.time()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_mtime > now:
            os.utime(path, (now, now))
