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

from mdpu.pipeline.cache import Finished
from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.plan import AXES, Plan, Run
from mdpu.pipeline.train import compare_histories, retrain
from mdpu.randomness import Stream

ROUNDED_OTHERWISE = "float32"  # the variant that differs from the protocol in its rounding alone
LEVEL = 0.99


@dataclass(frozen=True)
class Verified:
    """A run that was trained again: accuracies in percent, and whether the histories are equal bit for bit.

    `tolerance` is by how many points the accuracy may move, missing (NaN) if rounding was not measured for the method.
    `recorded_on` and `again_on` are precision and device, as ``bf16, AMD EPYC, AVX512-bf16 (1 thread)``.
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
    """Draw runs of a plan without replacement; the same ones for the same seed."""
    order = Stream(seed, "verified runs").permutation(len(plan.runs))
    return [plan.runs[place] for place in order[:number]]


def rounding_tolerances(rows: pd.DataFrame, level: float = LEVEL) -> pd.Series:
    """Return how far rounding moves the accuracy of a run, by dataset and method.

    `rows` are accuracies of runs, trials of the variant `ROUNDED_OTHERWISE` beside those of the protocol. The
    difference of two trainings that differ in rounding alone has mean zero. With the mean of K squared differences as
    its variance, the next difference lies within Student's t quantile with K degrees of freedom.
    """
    others = [axis for axis in AXES if axis != "variant" and axis in rows]  # the first shipped rows name no law
    base, otherwise = (rows.loc[rows["variant"] == name, [*others, "accuracy"]] for name in (BASE, ROUNDED_OTHERWISE))
    pairs = base.merge(otherwise, on=others, suffixes=("", "_otherwise")).dropna()
    pairs["square"] = (pairs["accuracy"] - pairs["accuracy_otherwise"]) ** 2
    measured = pairs.groupby(["dataset", "method"])["square"].agg(["size", "mean"])
    return stats.t.ppf((1 + level) / 2, measured["size"]) * np.sqrt(measured["mean"])


def tolerance_of(run: Run, tolerances: pd.Series) -> float:
    """Return how far a run's accuracy may move, in points: the tolerance of its dataset and method.

    On a dataset where rounding was not measured, the method's largest tolerance counts. The result is missing (NaN) for
    a method that was not measured at all.
    """
    of_method = tolerances[tolerances.index.get_level_values("method") == run.method].droplevel("method")
    return float(of_method.get(run.dataset, of_method.max()))


def verify_runs(
    plan: Plan, runs: Iterable[Run], tolerances: pd.Series, out: Path, threads: int | None = None
) -> Iterator[Verified]:
    """Train finished runs again, each by itself in the scratch folder `out`, and compare them with the cache."""
    for run, recorded, again in retrain(plan, runs, out, threads):
        histories = (finished.history.assign(**vars(run)) for finished in (recorded, again))
        old, new = (run_accuracies(rows, plan.protocol.reporting())["accuracy"].item() for rows in histories)
        equal = not compare_histories(recorded.history, again.history)
        yield Verified(run, old, new, equal, tolerance_of(run, tolerances), _place(recorded), _place(again))


def _place(finished: Finished) -> str:
    return f"{finished.origin['precision']}, {finished.origin['device']}"


def verified_rows(verified: Iterable[Verified]) -> pd.DataFrame:
    """Return a table of runs that were trained again: their keys, and the other attributes of `Verified`."""
    rows = [{**vars(one.run), **asdict(one)} for one in verified]
    return pd.DataFrame(rows).drop(columns="run")
