"""Damage every stored file in seven ways; it has to be noticed, and `./run` has to make it anew with the same contents.

    python benchmarks/faults/damage.py --out damage.csv      # goes on from damage.csv, if it is there

Run in a clone whose results may be deleted. A file is deleted, cut in half, one of its bits flipped, or a digit edited,
each also with its old time stamp; seals are files too, and so are finished runs in the cache. Noticing is tried file by
file. Making anew is tried on every `groups`-th file at once, until each file was damaged in each way: it has to come
back with the same bytes, or, if it tells when it was made, with the same contents, and all seals have to hold.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import outcomes
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent.parent
NAMED, HARMLESS, SAME, DATED, OTHER, BROKEN = (
    "named by ./run check",
    "a change of no value",  # in a finished run, where Parquet holds what nobody reads
    "made anew with the same bytes",
    "made anew with the same contents and another date",
    "made anew with OTHER contents",
    "NOT made anew",
)
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


def cut(content: bytes) -> bytes:
    """Return the first half."""
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """Return the same with one bit flipped in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def edit(content: bytes) -> bytes:
    """Return the same with its last digit increased, or a byte added where there is none."""
    for place in range(len(content) - 1, -1, -1):
        if content[place : place + 1] in b"012345678":
            return content[:place] + bytes([content[place] + 1]) + content[place + 1 :]
    return content + b"0"


CHANGES: dict[str, Callable[[bytes], bytes]] = {"cut": cut, "flipped": flip, "edited": edit}
WAYS = ["deleted", *(f"{name}{ending}" for name in CHANGES for ending in ("", ", old time"))]


def damage(path: Path, way: str) -> None:
    """Damage a file in one of `WAYS`."""
    if way == "deleted":
        path.unlink()
        return
    name, _, old_time = way.partition(", ")
    times = path.stat()
    path.write_bytes(CHANGES[name](path.read_bytes()))
    if old_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def stored(results: Path) -> list[Path]:
    """Return every file that the results consist of, the images they were made from, their finished runs, and seals."""
    from mdpu.pipeline.cache import Cache
    from mdpu.pipeline.check import BESIDE, named_runs
    from mdpu.pipeline.files import sealed_path

    found = [*results.rglob(".*.seal"), *(results.parent / "datasets").rglob(".*.seal")]
    seals = [seal for seal in found if BESIDE.isdisjoint(seal.parts)]
    finished = map(Cache(results.parent / "cache").path, named_runs(results))
    return [*sorted(map(sealed_path, seals)), *sorted(seals), *sorted(finished)]


def about(path: Path) -> Path:
    """Return the file that a finding names if this one is damaged: a seal's own file, or the file."""
    from mdpu.pipeline.files import is_seal, sealed_path

    return sealed_path(path) if is_seal(path) else path


def run(configfiles: list[str]) -> str:
    """Run the workflow to its end and return what it said."""
    command = ["./run", "paper", "--cores", "2", "--configfile", *configfiles]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode == 0 else f"FAILED\n{done.stdout}{done.stderr}"


def notice(path: Path, way: str, check: Callable[[Path], tuple[Any, list[Any]]], results: Path) -> str:
    """Damage a file, return whether a check of the results names it, and put it back."""
    content, times = path.read_bytes(), path.stat()
    damage(path, way)
    noticed = NAMED if about(path) in {finding.path for finding in check(results)[1]} else "missed"
    if noticed != NAMED and "cache" in path.parts and told(path, path.read_bytes()) == told(path, content):
        noticed = HARMLESS
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return noticed


def record(rounds: outcomes.Rounds, ways: list[str]) -> None:
    """Write the two rows of the table."""
    fault = "deleted, cut, a bit flipped, edited; with new and old time" if ways == WAYS else "; ".join(ways)
    for name, column in ((fault, "noticed"), (f"{fault}; then ./run", "afterwards")):
        tried = Counter(row[column] for row in rounds.rows if row["damage"] in ways)
        outcomes.record(name, "every stored file and seal", tried)


def main() -> None:
    """Try all and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configfile", nargs="*", default=["benchmarks/faults/tiny.yaml"])
    parser.add_argument("--name", default="tiny", help="name of the configuration, i.e. folder of its results")
    parser.add_argument("--only", nargs="*", default=WAYS, choices=WAYS, help="these ways alone")
    parser.add_argument("--groups", type=int, default=2, help="make anew every so manieth file at once")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    out = given.out.resolve()
    os.chdir(ROOT)
    from mdpu.pipeline.check import check_results

    started = time.monotonic()
    results = Path("results") / given.name
    shutil.rmtree(results, ignore_errors=True)
    text = run(given.configfile)
    assert not text.startswith("FAILED"), text
    files = stored(results)
    expected = {path: path.read_bytes() for path in files}
    assert check_results(results)[1] == []
    rounds = outcomes.Rounds(out, "damage", "file", "noticed", "afterwards")
    for way, group in product(given.only, range(given.groups)):
        chosen = [path for path in files[group :: given.groups] if not rounds.has(way, path)]
        if not chosen:
            continue
        noticed = [notice(path, way, check_results, results) for path in chosen]
        for path in chosen:
            damage(path, way)
        text = run(given.configfile)
        findings = {finding.path for finding in check_results(results)[1]}
        for path, seen in zip(chosen, noticed, strict=True):
            whole = path.exists() and about(path) not in findings
            kind = BROKEN if not whole else comparison(path, expected[path])
            rounds.add(way, path, seen, kind)
        said = text.splitlines()[:1] if text.startswith("FAILED") else ""
        print(f"{time.monotonic() - started:.0f} s, {way}: {dict(rounds.count('afterwards'))} {said}", flush=True)
    record(rounds, given.only)  # not sooner: the table is part of the repository, whose state training writes down
    print(f"{len(files)} files, {len(rounds.rows)} cases")
    sys.exit(
        bool(rounds.count("noticed").keys() - {NAMED, HARMLESS} or rounds.count("afterwards").keys() - {SAME, DATED})
    )


if __name__ == "__main__":
    main()
