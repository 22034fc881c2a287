"""Rows of results/reference, and how the documents show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pandas as pd
from scipy import stats

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.comparison import NOT_RUN, VERDICTS
from mdpu.pipeline.plan import LOGISTIC

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "results" / "reference"
IN_WORDS = {3: "three", 4: "four", 5: "five"}
JUDGED = [verdict for verdict in VERDICTS if verdict != NOT_RUN]
TITLES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "emnist-letters-a-i": "EMNIST-Letters (A-I)",
}


@cache
def read(name: str) -> pd.DataFrame:
    """Return a file of results/reference; priors, rates and tuple sizes of several are texts."""
    texts = {"prior": str, "value": str, "rate": str, "sizes": str}
    return pd.read_csv(REFERENCE / name, dtype=texts)


def comparison(folder: str = "") -> pd.DataFrame:
    """Return the published numbers beside ours, as far as they were run."""
    rows = read(f"{folder}/comparison.csv" if folder else "comparison.csv")
    return rows[rows["verdict"] != NOT_RUN]


def claims() -> pd.DataFrame:
    """Return the claims that some run says something of, by name."""
    rows = read("claims.csv")
    return rows[rows["ours_cases"] > 0].set_index("claim")


def shipped(*selections: str) -> pd.DataFrame:
    """Return the shipped runs of some configurations, by their names."""
    runs = read("runs.csv")
    return runs[runs["selection"].isin(selections)]


def of_protocol(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of the protocol as it stands, with the logistic loss."""
    return runs[(runs["variant"] == BASE) & (runs["loss"] == LOGISTIC)]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column stands left."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_interval(values: pd.Series) -> str:
    """Return the mean over trials with its 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std() / len(values) ** 0.5
    return f"{values.mean():.1f} ± {half:.1f}"


def around(values: pd.Series) -> str:
    """Return mean and deviation over trials, or the value of a single one."""
    mean = f"{values.mean():.1f}"
    return f"{mean} ± {values.std():.1f}" if len(values) > 1 else mean


def between(values: pd.Series, digits: int = 1) -> str:
    """Return the range of some numbers."""
    return f"{values.min():.{digits}f} to {values.max():.{digits}f}"


def in_sentence(counts: Iterable[int]) -> str:
    """Return counts of verdicts as a part of a sentence."""
    reproduced, close, inconclusive, differ = counts
    return (
        f"{reproduced} are reproduced, {close} close, {inconclusive} inconclusive, and {differ} "
        "differ"
    )
