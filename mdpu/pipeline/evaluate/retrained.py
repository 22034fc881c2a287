"""Do finished runs come out again on this machine?

A sample of the runs that are shipped is trained again, each by itself. On a CPU of the same kind every bit is the same.
Elsewhere sums are rounded in another order, and training magnifies that. How far was measured: the shipped runs hold
trials that were trained twice, with two precisions. An accuracy may move as far as these did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from mdpu.pipeline.cache import RunStore
from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.files import read_table
from mdpu.pipeline.grid import AXES, Run, run_columns
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.train import compare_histories, train_again
from mdpu.randomness import Stream

ROUNDED_OTHERWISE = "float32"  # the variant that differs from the protocol in its rounding alone
LEVEL = 0.99


@dataclass(frozen=True)
class Verified:
    """A run that was trained again.

    Attributes
    ----------
    run : Run
    recorded, again : float
        Accuracies, in percent.
    equal : bool
        Whether the histories are equal bit for bit, as `mdpu.pipeline.train.compare_histories` has it.
    tolerance : float
        Points by which the accuracy may move; missing (NaN) if rounding was not measured for the method.
    recorded_on, again_on : str
        Precision and device of the two trainings, as ``bf16, AMD EPYC, AVX512-bf16 (1 threads)``.
    """

    run: Run
    recorded: float
    again: float
    equal: bool
    tolerance: float
    recorded_on: str
    again_on: str

    @property
    def agrees(self) -> bool:
        """Whether the run came out again, bit for bit or within what rounding explains."""
        return self.equal or abs(self.again - self.recorded) <= self.tolerance

    def __str__(self) -> str:
        if self.equal:
            return f"{self.run.name}: {self.recorded:.2f} %, equal bit for bit"
        moved = f"{self.run.name}: {self.recorded:.2f} % recorded, {self.again:.2f} % now"
        if np.isnan(self.tolerance):
            return f"{moved}; for {self.run.method} nobody has measured how far rounding moves it"
        return f"{moved}; {'within' if self.agrees else 'MORE than'} the {self.tolerance:.2f} points of rounding"


def draw_runs(plan: Plan, number: int, seed: int) -> list[Run]:
    """Draw runs of a plan that are finished, without replacement; the same ones for the same seed.

    Parameters
    ----------
    plan : Plan
        Its store holds the finished runs.
    number : int
        How many, at most.
    seed : int
    """
    store = RunStore(plan.layout.store)
    finished = [run for run in plan.runs if store.fingerprint(run) is not None]
    order = Stream(seed, "verified runs").permutation(len(finished))
    return [finished[place] for place in order[:number]]


def inputs_of(plan: Plan, runs: Iterable[Run]) -> list[Path]:
    """Return the files that training runs again needs: images, labels, splits, and rates if they were tuned."""
    layout = plan.layout
    files: dict[Path, None] = {}
    for run in runs:
        tuning = plan.tuning_name(run)
        files |= dict.fromkeys([layout.images(run.dataset), layout.labels(run.dataset), layout.split(run.split)])
        files |= dict.fromkeys([layout.tuned(tuning)] if tuning else [])
    return list(files)


def rounding_pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the trials that were trained with two precisions, one a row.

    Parameters
    ----------
    rows : DataFrame
        The columns of a run's key and ``accuracy``, in percent; trials of the variant `ROUNDED_OTHERWISE` beside those
        of the protocol.

    Returns
    -------
    DataFrame
        The keys but for the variant, ``accuracy`` and ``accuracy_otherwise``.
    """
    others = [axis for axis in AXES if axis != "variant"]
    base, otherwise = (rows.loc[rows["variant"] == name, [*others, "accuracy"]] for name in (BASE, ROUNDED_OTHERWISE))
    return base.merge(otherwise, on=others, suffixes=("", "_otherwise")).dropna()


def rounding_tolerances(rows: pd.DataFrame, level: float = LEVEL) -> pd.Series:
    """Return how far rounding moves the accuracy of a run, by dataset and method.

    The difference of two trainings that differ in rounding alone has mean zero. With the mean of K squared differences
    as its variance, the next difference lies within Student's t quantile with K degrees of freedom.

    Parameters
    ----------
    rows : DataFrame
        As `rounding_pairs` takes them.
    level : float
        Probability with which a run lies within the tolerance.
    """
    pairs = rounding_pairs(rows)
    pairs["square"] = (pairs["accuracy"] - pairs["accuracy_otherwise"]) ** 2
    measured = pairs.groupby(["dataset", "method"])["square"].agg(["size", "mean"])
    return stats.t.ppf((1 + level) / 2, measured["size"]) * np.sqrt(measured["mean"])


def tolerance_of(run: Run, tolerances: pd.Series) -> float:
    """Return how far a run's accuracy may move, in points.

    It is the tolerance of the run's dataset and method. On a dataset where rounding was not measured, the method's
    largest tolerance counts. The result is missing (NaN) for a method that was not measured at all.
    """
    of_method = tolerances[tolerances.index.get_level_values("method") == run.method].droplevel("method")
    return float(of_method.get(run.dataset, of_method.max()))


def verify_runs(
    plan: Plan, runs: Iterable[Run], tolerances: pd.Series, out: Path, threads: int | None = None
) -> Iterator[Verified]:
    """Train finished runs again, each by itself, and compare them with the store.

    Parameters
    ----------
    plan : Plan
    runs : iterable of Run
    tolerances : Series
        As `rounding_tolerances` returns them.
    out : Path
        Scratch folder to train into.
    threads : int, optional
        CPU threads; the configuration's unless given.

    Raises
    ------
    UserError
        If a file is missing or broken, or the code or the protocol has changed since.
    """
    store, reporting = RunStore(plan.layout.store), plan.protocol.reporting()
    for run in runs:
        recorded, again = read_table(store.path(run)), train_again(plan, run, out, alone=True, threads=threads)
        old, new = (float(run_accuracies(one, reporting)["accuracy"].item()) for one in (recorded, again))
        equal = not compare_histories(recorded, again)
        yield Verified(run, old, new, equal, tolerance_of(run, tolerances), _place(recorded), _place(again))


def _place(history: pd.DataFrame) -> str:
    origin = history.attrs["origin"]
    return f"{origin['precision']}, {origin['device']}"


def verified_rows(verified: Iterable[Verified]) -> pd.DataFrame:
    """Return a table of runs that were trained again: their keys, and the other attributes of `Verified`."""
    rows = [{**run_columns(one.run), **asdict(one)} for one in verified]
    return pd.DataFrame(rows).drop(columns="run")
