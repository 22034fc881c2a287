"""What a claim is, and the comparisons that claims are made of: each returns a check, from evidence to cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mdpu.pipeline.evaluate.comparison import welch_interval
from mdpu.pipeline.evaluate.evidence import Evidence
from mdpu.pipeline.evaluate.published import BASELINES, PROPOSED
from mdpu.pipeline.plan import AXES, CELL, ROW

CASE = (*AXES, "left", "right", "holds")
Frame = pd.DataFrame
Check = Callable[[Evidence], Frame | None]
Compare = Callable[[Any, Any], Any]
Side = Callable[[Frame, Evidence], Any]
ABOVE, BELOW, AT_LEAST, AT_MOST = np.greater, np.less, np.greater_equal, np.less_equal


@dataclass(frozen=True)
class Claim:
    """One claim, an entry of ``claims.yaml`` with its check.

    ``sides`` says what stands on the left and on the right of a case, ``chance`` how often noise alone would pass, for
    cells whose methods, sizes and priors make no difference: a key of `CHANCE`, or None if it is unknown. A claim with
    a quote is the paper's. Of the others, ``reviewers`` ask about some, and ``project`` makes some itself.
    """

    name: str
    statement: str
    check: Check
    sides: str
    place: str = ""
    quote: str = ""
    chance: str | None = None
    said_by: Literal["paper", "reviewers", "project"] = "paper"

    def by_chance(self, rule: Mapping[str, float]) -> float | None:
        """Return the pass rate of noise alone, from the configuration's ``comparison``."""
        return CHANCE[self.chance](rule) if self.chance else None


# How often one of two is the larger, one of four the largest, and an interval above zero.
CHANCE: dict[str, Callable[[Mapping[str, float]], float]] = {
    "even": lambda rule: 1 / 2,
    "first_of_four": lambda rule: 1 / 4,
    "one_sided": lambda rule: (1 - rule["level"]) / 2,
}


# -- cases ----------------------------------------------------------------------------------------


def make_cases(frame: Frame, left: Any, right: Any, compare: Compare = ABOVE) -> Frame:
    """Return `frame` as cases; one with a missing side does not hold."""
    filled = frame.assign(left=left, right=right)
    with np.errstate(invalid="ignore"):
        holds = compare(filled["left"].astype(float), filled["right"].astype(float))
    return filled.assign(holds=holds.astype(bool)).reindex(columns=list(CASE))


def pairs_of(cells: Frame, axis: str, left: Sequence[Any], right: Any) -> Frame:
    """Return cells whose `axis` is in `left`, with those where it is `right` in columns that end in ``_right``."""
    keys = [key for key in CELL if key != axis]
    return cells[cells[axis].isin(left)].merge(
        cells.loc[cells[axis] == right, [*keys, "mean", "std", "trials"]], on=keys, suffixes=("", "_right")
    )


def best_in_row(cells: Frame, rivals: Frame, among: Sequence[str], complete: bool) -> Frame:
    """Return cells beside the best of the methods `among` the rivals in their row, in columns that end in ``_right``.

    With `complete`, rows where one of these methods was not run are left out.
    """
    others = rivals[rivals["method"].isin(among)]
    if complete:
        others = others[others.groupby(list(ROW))["method"].transform("size") == len(among)]
    best = others.sort_values("mean", na_position="first").drop_duplicates(list(ROW), keep="last")
    return cells.merge(best[[*ROW, "mean", "std", "trials"]], on=list(ROW), suffixes=("", "_right"))


def interval_of_difference(pairs: Frame, level: float) -> tuple[pd.Series, pd.Series]:
    """Return both ends of Welch's interval for the left mean of each pair minus its right one.

    Missing where a side has one trial.
    """
    left, right = ([pairs[f"{column}{side}"] for column in ("mean", "std", "trials")] for side in ("", "_right"))
    low, high = welch_interval(left[0], left[1], left[2], right[0], right[1], right[2], level)
    return pd.Series(low, pairs.index), pd.Series(high, pairs.index)


def proposed(cells: Frame) -> Frame:
    """Return the cells of URE, ReLU and ABS."""
    return cells[cells["method"].isin(PROPOSED)]


def step_up(cells: Frame, axis: str) -> Frame:
    """Return cells beside the one with the next smaller value of `axis`, its mean as ``mean_right``."""
    keys = [key for key in CELL if key != axis]
    ordered = cells.assign(position=cells[axis].astype(float)).sort_values([*keys, "position"])
    ordered["mean_right"] = ordered.groupby(keys)["mean"].shift()
    return ordered[ordered.duplicated(keys)]


# -- comparisons ----------------------------------------------------------------------------------


def means(pairs: Callable[[Evidence], Frame | None], compare: Compare = ABOVE) -> Check:
    """Compare the means of pairs, ``mean`` with ``mean_right``."""

    def check(evidence: Evidence) -> Frame | None:
        found = pairs(evidence)
        return None if found is None else make_cases(found, found["mean"], found["mean_right"], compare)

    return check


def significantly(pairs: Callable[[Evidence], Frame]) -> Check:
    """Compare the lower end of Welch's interval for the difference of pairs with zero; pairs of one trial have none."""

    def check(evidence: Evidence) -> Frame:
        found = pairs(evidence)
        found = found[(found["trials"] > 1) & (found["trials_right"] > 1)]
        low, _ = interval_of_difference(found, evidence.rule["level"])
        return make_cases(found, low, 0.0)

    return check


def of_methods(left: Sequence[str], right: str) -> Callable[[Evidence], Frame]:
    """Pair the table's cells of methods with those of another."""
    return lambda evidence: pairs_of(evidence.table, "method", left, right)


def against_baselines(cells: Callable[[Evidence], Frame | None]) -> Callable[[Evidence], Frame | None]:
    """Pair the proposed methods' cells with the best baseline of their row, where all three were run."""

    def pairs(evidence: Evidence) -> Frame | None:
        found = cells(evidence)
        if found is None:
            return None
        return best_in_row(proposed(found), evidence.table, BASELINES, complete=True)

    return pairs


def steps(cells: Callable[[Evidence], Frame], axis: str, compare: Compare = ABOVE) -> Check:
    """Compare the proposed methods' mean at each value of `axis` with that at the next smaller one."""
    return means(lambda evidence: step_up(proposed(cells(evidence)), axis), compare)


def runs(
    methods: Sequence[str],
    left: Side,
    right: Side | float,
    compare: Compare = ABOVE,
    where: Callable[[Frame], Any] | None = None,
) -> Check:
    """Compare two facts of each run of `methods` under the protocol as it stands, `where` it is so."""

    def check(evidence: Evidence) -> Frame | None:
        found = evidence.base_runs(*methods)
        if found is None:
            return None
        found = found if where is None else found[where(found)]
        bound = right if isinstance(right, float) else right(found, evidence)
        return make_cases(found, left(found, evidence), bound, compare)

    return check


def fact(name: str) -> Side:
    """Take a fact of each run."""
    return lambda found, evidence: found[name]


def loss_from_best(found: Frame, evidence: Evidence) -> pd.Series:
    """Take each run's best accuracy minus its reported one."""
    return found["best"] - found["accuracy"]


def margin(found: Frame, evidence: Evidence) -> float:
    """Take the margin of the rule."""
    return evidence.rule["margin"]
