"""Are the results what was written? Walks the seals from the page to the images, and deletes what must be remade."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from mdpu.errors import UserError
from mdpu.pipeline.cache import Cache
from mdpu.pipeline.config import load_yaml
from mdpu.pipeline.files import REPOSITORY, Seal, is_seal, read_json, read_seal, remove, sealed_path, sha256
from mdpu.pipeline.plan import Plan

# Folders beside the results that hold no results.
BESIDE = frozenset(("logs", "benchmarks", "checkpoints", "progress", "reported"))
# What is said of a file.
CHANGED = "has changed since it was written"
MISSING = "was written, but is not there"
STALE = "was made from another version of"
UNSEALED = "has no seal, so nothing is known of it"
EDITED = "was edited on purpose"
ODD = "is in the place of a file and cannot be read"
BROKEN = "is a finished run that is not what was written"
OTHERWISE = "was made with other settings than it has now"


@dataclass(frozen=True, order=True)
class Finding:
    """A file that is not what was written, or was edited on purpose; if it is stale, with the input that changed."""

    path: Path
    what: str
    source: Path | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.what}{f' {self.source}' if self.source else ''}"


def check_results(results: Path) -> tuple[int, list[Finding]]:
    """Compare every file of a folder of results, all images and the finished runs with what was written.

    Return how many were compared, and the findings by path: none if all are as they were written.
    """
    if not results.is_dir():
        raise UserError(f"{results} is no folder of results")
    seals: dict[Path, Seal] = {}  # of the files that are as they were written
    findings = []
    paths = list(dict.fromkeys([*_files(results), *_files(results.parent / "datasets")]))
    for path in paths:
        seal, what = _compare(path)
        if what is not None:
            findings.append(Finding(path, what))
        if seal is not None and what in (None, EDITED):
            seals[path] = seal
    for path, seal in seals.items():
        # A source that is itself unsound makes nothing stale yet: it may be remade as it was.
        sources = {} if seal.edited else {Path(source): then for source, then in seal.inputs.items()}
        findings += [Finding(path, STALE, s) for s, then in sources.items() if s in seals and seals[s].sha256 != then]
    cache, runs = Cache(results.parent / "cache", _shipped(results)), named_runs(results)
    findings += [Finding(path, BROKEN if there else MISSING) for path, there in cache.lost(runs).items()]
    return len(paths) + sum(cache.path(run).exists() for run in runs), sorted(findings)


def _compare(path: Path) -> tuple[Seal | None, str | None]:
    """Return a file's seal, and what is to be said of the file."""
    try:
        seal = read_seal(path)
        checksum = sha256(path) if path.exists() else None
    except UserError:  # a pipe or a folder in its place
        return None, ODD
    if seal is None:
        return None, UNSEALED
    if checksum != seal.sha256:
        return seal, CHANGED if checksum else MISSING
    return seal, EDITED if seal.edited else None


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
    """Return the splits that were drawn with other settings than the plan's.

    Snakemake compares the settings of what it has a record of. It has none of a cluster's job that ended while nobody
    watched, or after a power cut, and takes such outputs for good.
    """
    findings = []
    for name in plan.splits:
        split = plan.layout.split(name)
        diagnostics = split.with_suffix(".json")
        with contextlib.suppress(UserError, KeyError, TypeError):  # missing or broken: a finding of `check_results`
            if read_json(diagnostics)["drawing"] != plan.drawing(name):
                findings += [Finding(split, OTHERWISE), Finding(diagnostics, OTHERWISE)]
    return findings


def repair(plan: Plan, made: Collection[Path]) -> list[str]:
    """Delete what must be remade, and return a line for each file.

    `made` are the outputs of rules; other files without a seal are the user's, and are left.
    """
    if not plan.layout.results.exists():
        return []
    findings = [*check_results(plan.layout.results)[1], *made_otherwise(plan)]
    lines = []
    for path, finding in {finding.path: finding for finding in findings}.items():
        if finding.what == EDITED or (finding.what in (UNSEALED, ODD) and path not in made):
            continue
        try:
            remove(path)
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"{path} is broken and could not be deleted ({reason}); mend that and run again") from error
        lines.append(f"{finding}: it is made anew")
    return lines
