"""Damage every stored file in seven ways; it has to be noticed, and `./run` has to make it anew with the same contents.

    python benchmarks/faults/damage.py --out damage.csv      # goes on from damage.csv, if it is there

Run in a clone whose results may be deleted. A file is deleted, cut in half, one of its bits flipped, or a digit edited,
each also with its old time stamp; seals are files too, and so are finished runs in the cache. Noticing is tried file by
file. Making anew is tried on every `groups`-th file at once, until each file was damaged in each way: it has to come
back with the same bytes, or, if it tells when it was made, with the same contents, and all seals have to hold.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path

import pandas as pd
from harness import CHANGES, ROOT, TINY, Rounds, Workflow, change, parser_of, record

NAMED, HARMLESS, SAME, DATED, OTHER, BROKEN = (
    "named by ./run check",
    "a change of no value",  # in a finished run, where Parquet holds what nobody reads
    "made anew with the same bytes",
    "made anew with the same contents and another date",
    "made anew with OTHER contents",
    "NOT made anew",
)
WAYS = ["deleted", *(f"{name}{ending}" for name in CHANGES for ending in ("", ", old time"))]
# What tells of the occasion on which a file was made: when, by which commit, and from what was there.
OCCASION = {"commit", "date", "inputs", "reused", "seal", "seconds", "sha256", "trained"}
DATES = re.compile(r"20\d\d-\d\d-\d\d")


def told(path: Path, content: bytes) -> object:
    """Return what a file tells, apart from the occasion on which it was made."""
    if path.suffix == ".parquet":
        return pd.read_parquet(io.BytesIO(content)).to_csv()  # its marks tell when a run was trained
    if path.suffix in (".json", ".seal"):
        return json.loads(content, object_hook=lambda facts: {k: v for k, v in facts.items() if k not in OCCASION})
    if path.suffix == ".html":
        from mdpu.pipeline.outcome import VARIES

        return DATES.sub("", VARIES.sub("", content.decode()))
    return content


def comparison(path: Path, before: bytes) -> str:
    """Return how a file that is whole compares with what it was."""
    after = path.read_bytes()
    if after == before:
        return SAME
    return DATED if told(path, after) == told(path, before) else OTHER


def damage(path: Path, way: str) -> None:
    """Damage a file in one of `WAYS`."""
    name, _, old_time = way.partition(", ")
    if name == "deleted":
        path.unlink()
    else:
        change(path, name, old_time=bool(old_time))


def stored(results: Path) -> list[Path]:
    """Return every file that the results consist of, the images they were made from, their finished runs, and seals."""
    from mdpu.pipeline.cache import Cache
    from mdpu.pipeline.check import BESIDE, named_runs
    from mdpu.pipeline.files import sealed_path

    found = [*results.rglob(".*.seal"), *(results.parent / "datasets").rglob(".*.seal")]
    seals = [seal for seal in found if BESIDE.isdisjoint(seal.parts)]
    finished = map(Cache(results.parent / "cache").path, named_runs(results))
    return [*sorted(map(sealed_path, seals)), *sorted(seals), *sorted(finished)]


def named(results: Path) -> set[Path]:
    """Return the files that a check of the results names."""
    from mdpu.pipeline.check import check_results

    return {finding.path for finding in check_results(results)[1]}


def about(path: Path) -> Path:
    """Return the file that a finding names if this one is damaged: a seal's own file, or the file."""
    from mdpu.pipeline.files import is_seal, sealed_path

    return sealed_path(path) if is_seal(path) else path


def notice(path: Path, way: str, results: Path) -> str:
    """Damage a file, return whether a check of the results names it, and put it back."""
    content, times = path.read_bytes(), path.stat()
    damage(path, way)
    noticed = NAMED if about(path) in named(results) else "missed"
    if noticed != NAMED and "cache" in path.parts and told(path, path.read_bytes()) == told(path, content):
        noticed = HARMLESS
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return noticed


def main() -> None:
    """Try all and write the table."""
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=WAYS, choices=WAYS, help="these ways alone")
    parser.add_argument("--groups", type=int, default=2, help="make anew every so manieth file at once")
    given = parser.parse_args()
    rounds = Rounds(given.out, "damage", "file", "noticed", "afterwards")
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    started, flow, results = time.monotonic(), Workflow("tiny", [TINY], "--cores", "2"), Path("results/tiny")
    flow.clear()
    flow.succeed()
    files = stored(results)
    expected = {path: path.read_bytes() for path in files}
    assert not named(results)
    for way, group in product(given.only, range(given.groups)):
        chosen = [path for path in files[group :: given.groups] if not rounds.has(way, path)]
        if not chosen:
            continue
        noticed = [notice(path, way, results) for path in chosen]
        for path in chosen:
            damage(path, way)
        done = flow.run()
        findings = named(results)
        for path, seen in zip(chosen, noticed, strict=True):
            whole = path.exists() and about(path) not in findings
            rounds.add(way, path, seen, comparison(path, expected[path]) if whole else BROKEN)
        said = (done.stdout + done.stderr)[-300:] if done.returncode else ""
        print(f"{time.monotonic() - started:.0f} s, {way}: {dict(rounds.count('afterwards'))} {said}", flush=True)
    # Not sooner: the table is part of the repository, whose state training writes down.
    fault = (
        "deleted, cut, a bit flipped, edited; with new and old time" if given.only == WAYS else "; ".join(given.only)
    )
    for name, column in ((fault, "noticed"), (f"{fault}; then ./run", "afterwards")):
        tried = Counter(row[column] for row in rounds.rows if row["damage"] in given.only)
        record(name, "every stored file and seal", tried)
    print(f"{len(files)} files, {len(rounds.rows)} cases")
    bad = rounds.count("noticed").keys() - {NAMED, HARMLESS} or rounds.count("afterwards").keys() - {SAME, DATED}
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
