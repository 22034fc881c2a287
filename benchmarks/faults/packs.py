"""Tamper with packed runs, and count how their import ends.

    python benchmarks/faults/packs.py [--cases 300] [--seed 1]

Bytes of the file are flipped, cut and repeated, and its rows are written again with other values, epochs, recipes and
columns. An import has to refuse what differs in one sentence. What it accepts has to be the runs that were packed, bit
for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import outcomes
import pandas as pd
from inputs import try_case

from mdpu.pipeline.cache import Cache, Finished, export
from mdpu.randomness import Stream

RUNS = 6
EPOCHS = 5
ODD = (np.nan, np.inf, -1.0, 1e9, 0.5, 5e-324)


def finished(number: int) -> Finished:
    """Return a run that nobody trained."""
    stream = Stream(number, "tampered packs")
    measures = ("objective", "risk", "true_positive_rate", "true_negative_rate", "raw_accuracy", "accuracy")
    history = pd.DataFrame({"epoch": range(1, EPOCHS + 1), **{name: stream.uniform(EPOCHS) for name in measures}})
    recipe = {"trial": f"made/seed{number}", "method": "relu", "code": "a", "settings": {"epochs": EPOCHS}}
    return Finished.of(recipe, history, origin={"commit": "a"}, split="b", diagnostics={"p_value": 0.5})


def in_bytes(content: bytes, stream: Stream) -> bytes:
    """Return a file with a byte flipped, a piece cut out, or a piece repeated."""
    way, length = stream.integers(3, 1)[0], len(content)
    first, second = sorted(stream.integers(length, 2).tolist())
    if way == 0:
        return content[:first] + bytes([content[first] ^ int(1 + stream.integers(255, 1)[0])]) + content[first + 1 :]
    return content[:first] + content[second:] if way == 1 else content[:second] + content[first:]


def in_rows(rows: pd.DataFrame, stream: Stream) -> pd.DataFrame:
    """Return the rows of a packed file with one change of their meaning."""
    way, place = stream.integers(8, 1)[0], int(stream.integers(len(rows), 1)[0])
    numbers = list(rows.select_dtypes("float").columns)
    column = numbers[stream.integers(len(numbers), 1)[0]]
    odd: Any = ODD[stream.integers(len(ODD), 1)[0]]
    about = json.loads(rows["about"].iloc[place])
    own = rows["fingerprint"] == rows["fingerprint"].iloc[place]
    if way == 0:
        return rows.assign(**{column: rows[column].where(rows.index != place, odd)})
    if way == 1:
        return rows.drop(index=place)
    if way == 2:
        return rows.iloc[stream.permutation(len(rows))]
    if way == 3:
        return pd.concat([rows, rows[own]])
    if way == 4:
        about["recipe"]["settings"]["epochs"] = EPOCHS - 1
    elif way == 5:
        about["sha256"] = "0" * 64
    elif way == 6:
        return rows.assign(**{column: rows[column].astype(str)})
    else:
        return rows.drop(columns=[("about", "epoch", "fingerprint", "accuracy")[stream.integers(4, 1)[0]]])
    return rows.assign(about=rows["about"].mask(own, json.dumps(about)))


def packs(cases: int, start: int) -> Counter[str]:
    """Tamper with packed runs in every way, and import them."""
    tally: Counter[str] = Counter()
    runs = {run.fingerprint: run for run in map(finished, range(RUNS))}
    whole, packed = Path("whole.parquet"), Path("packed.parquet")
    export(list(runs.values()), whole)
    content, rows = whole.read_bytes(), pd.read_parquet(whole)
    for number in range(cases):
        stream = Stream(start, "tampering", number)

        def case(number: int = number, stream: Stream = stream) -> str:
            if number % 2:
                packed.write_bytes(in_bytes(content, stream))
            else:
                in_rows(rows, stream).to_parquet(packed, index=False)
            cache = Cache(Path(f"cache{number}"))
            cache.import_runs(packed)
            for name, run in cache.load(cache.names()).items():
                if name not in runs or not run.history.equals(runs[name].history) or run.about != runs[name].about:
                    return f"WRONG: the run {name}"
            return "accepted, with the same runs"

        try_case(case, number, tally)
    return tally


def main() -> None:
    """Try, and record the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        tally = packs(given.cases, given.seed)
    print(f"packed runs, seed {given.seed}: " + ", ".join(f"{count} {outcome}" for outcome, count in tally.items()))
    outcomes.record("packed runs, tampered with", "bytes and rows", tally)
    sys.exit(any(outcome != outcome.lower() for outcome in tally))


if __name__ == "__main__":
    main()
