"""What a claim is: a statement, who makes it and where, and a check that turns evidence into cases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from mdpu.pipeline.evaluate.comparison import welch_interval
from mdpu.pipeline.evaluate.evidence import Evidence
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.plan import AXES, CELL

CASE = (*AXES, "left", "right", "holds")
Claimant = Literal["paper", "reviewers", "project"]
Check = Callable[[Evidence], pd.DataFrame | None]
Checking = TypeVar("Checking", bound=Check)


@dataclass(frozen=True)
class Claim:
    """One claim: who makes it and where, and how it is checked.

    ``by_chance`` gives the pass rate of noise alone, from the configuration's ``comparison``: the rate for cells whose
    methods, sizes and priors make no difference. It is None if this rate is unknown. ``said_by`` is ``project`` for
    claims of this project, and ``reviewers`` for those that the paper does not make but reviewers ask about.
    """

    name: str
    statement: str
    check: Check
    by_chance: Callable[[Mapping[str, float]], float] | None
    place: str
    quote: str
    said_by: Claimant

    @property
    def sides(self) -> str:
        """What stands on the left and on the right of a case: the first line of the check's docstring."""
        return (inspect.getdoc(self.check) or "").partition("\n")[0]


CLAIMS: dict[str, Claim] = {}


def even(rule: Mapping[str, float]) -> float:
    """Return how often one of two is the larger by chance."""
    return 1 / 2


def first_of_four(rule: Mapping[str, float]) -> float:
    """Return how often one of four is the largest by chance."""
    return 1 / 4


def one_sided(rule: Mapping[str, float]) -> float:
    """Return how often an interval lies above zero by chance."""
    return (1 - rule["level"]) / 2


def claim(
    name: str,
    statement: str,
    place: str = "",
    quote: str = "",
    by_chance: Callable[[Mapping[str, float]], float] | None = None,
    said_by: Claimant | None = None,
) -> Callable[[Checking], Checking]:
    """Register a check under `name`; without `said_by`, a claim with a quote is the paper's, another the reviewers'."""

    def register(check: Checking) -> Checking:
        claimant = said_by or ("paper" if quote else "reviewers")
        CLAIMS[name] = Claim(name, statement, check, by_chance, place, quote, claimant)
        return check

    return register


# -- cases ----------------------------------------------------------------------------------------


def make_cases(
    frame: pd.DataFrame, left: Any, right: Any, compare: Callable[[Any, Any], Any] = np.greater
) -> pd.DataFrame:
    """Return `frame` as cases; one with a missing side does not hold."""
    filled = frame.assign(left=left, right=right)
    with np.errstate(invalid="ignore"):
        holds = compare(filled["left"].astype(float), filled["right"].astype(float))
    return filled.assign(holds=holds.astype(bool)).reindex(columns=list(CASE))


def beside(cells: pd.DataFrame, axis: str, left: tuple[Any, ...], right: Any) -> pd.DataFrame:
    """Return cells whose `axis` is in `left`, with those where it is `right` in columns that end in ``_right``."""
    keys = [key for key in CELL if key != axis]
    return cells[cells[axis].isin(left)].merge(
        cells.loc[cells[axis] == right, [*keys, "mean", "std", "trials"]], on=keys, suffixes=("", "_right")
    )


def interval_of_difference(pairs: pd.DataFrame, level: float) -> tuple[pd.Series, pd.Series]:
    """Return both ends of Welch's interval for the left mean of each pair minus its right one.

    Missing where a side has one trial.
    """
    left, right = ([pairs[f"{column}{side}"] for column in ("mean", "std", "trials")] for side in ("", "_right"))
    low, high = welch_interval(left[0], left[1], left[2], right[0], right[1], right[2], level)
    return pd.Series(low, pairs.index), pd.Series(high, pairs.index)


def step_up(cells: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return cells beside the one with the next smaller value of `axis`, its mean as ``previous``."""
    keys = [key for key in CELL if key != axis]
    ordered = cells.assign(position=cells[axis].astype(float)).sort_values([*keys, "position"])
    ordered["previous"] = ordered.groupby(keys)["mean"].shift()
    first = ~ordered.duplicated(keys)
    return ordered[~first]


def proposed(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of URE, ReLU and ABS."""
    return cells[cells["method"].isin(PROPOSED)]
