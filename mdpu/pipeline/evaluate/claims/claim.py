"""What a claim is, and what checks are made of: pairs of cells, facts of runs, and a comparison of two sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.comparison import Trials, welch_interval
from mdpu.pipeline.evaluate.evidence import Evidence
from mdpu.pipeline.evaluate.published import BASELINES, PROPOSED
from mdpu.pipeline.plan import AXES, CELL, ROW

CASE = (*AXES, "left", "right", "holds")
Frame = pd.DataFrame
Found = Callable[[Evidence], Frame]  # the rows that are compared
Check = Callable[[Evidence], Frame]  # their cases, none if evidence cannot speak to a claim
Side = str | float | Callable[[Frame, Evidence], Any]  # a column, a number, or what computes either from the rows
Compare = Callable[[Any, Any], Any]
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


def compares(found: Found, left: Side = "mean", right: Side = "mean_right", compare: Compare = ABOVE) -> Check:
    """Compare two sides of each row that is found; a case with a missing side does not hold."""

    def check(evidence: Evidence) -> Frame:
        rows = found(evidence)
        values = [rows[s] if isinstance(s, str) else s(rows, evidence) if callable(s) else s for s in (left, right)]
        cases = rows.assign(left=values[0], right=values[1])
        with np.errstate(invalid="ignore"):
            holds = compare(cases["left"].astype(float), cases["right"].astype(float))
        return cases.assign(holds=holds.astype(bool)).reindex(columns=list(CASE))

    return check


def significantly(pairs: Found) -> Check:
    """Compare the lower end of Welch's interval for the difference of pairs with zero; pairs of one trial have none."""
    several = "trials > 1 and trials_right > 1"
    return compares(lambda of: pairs(of).query(several), lambda rows, of: interval(rows, of)[0], 0.0)


def interval(pairs: Frame, evidence: Evidence) -> tuple[Any, Any]:
    """Return both ends of Welch's interval for left minus right of each pair, missing where a side has one trial."""
    left, right = (Trials(pairs[f"mean{s}"], pairs[f"std{s}"], pairs[f"trials{s}"]) for s in ("", "_right"))
    return welch_interval(left, right, evidence.rule["level"])


def pairs_of(cells: Frame, axis: str, left: Sequence[Any], right: Any) -> Frame:
    """Return cells whose `axis` is in `left`, with those where it is `right` in columns that end in ``_right``."""
    keys = [key for key in CELL if key != axis]
    return cells[cells[axis].isin(left)].merge(
        cells.loc[cells[axis] == right, [*keys, "mean", "std", "trials"]], on=keys, suffixes=("", "_right")
    )


def of_methods(left: Sequence[str], right: str) -> Found:
    """Pair the table's cells of methods with those of another."""
    return lambda evidence: pairs_of(evidence.table, "method", left, right)


def best_in_row(cells: Frame, rivals: Frame, among: Sequence[str], complete: bool) -> Frame:
    """Return cells beside the best of the methods `among` the rivals in their row, in columns that end in ``_right``.

    With `complete`, rows where one of these methods was not run are left out.
    """
    others = rivals[rivals["method"].isin(among)]
    if complete:
        others = others[others.groupby(list(ROW))["method"].transform("size") == len(among)]
    best = others.sort_values("mean", na_position="first").drop_duplicates(list(ROW), keep="last")
    return cells.merge(best[[*ROW, "mean", "std", "trials"]], on=list(ROW), suffixes=("", "_right"))


def against_baselines(cells: Found) -> Found:
    """Pair the proposed methods' cells with the best baseline of their row, where all three were run."""
    return lambda evidence: best_in_row(proposed(cells(evidence)), evidence.table, BASELINES, complete=True)


def proposed(cells: Frame) -> Frame:
    """Return the cells of URE, ReLU and ABS."""
    return cells[cells["method"].isin(PROPOSED)]


def step_up(cells: Frame, axis: str) -> Frame:
    """Return cells beside the one with the next smaller value of `axis`, its mean as ``mean_right``."""
    keys = [key for key in CELL if key != axis]
    ordered = cells.assign(position=cells[axis].astype(float)).sort_values([*keys, "position"])
    ordered["mean_right"] = ordered.groupby(keys)["mean"].shift()
    return ordered[ordered.duplicated(keys)]


def of_runs(*methods: str, variants: Sequence[str] = (BASE,), where: str | None = None) -> Found:
    """Return the facts of each run of `methods` and `variants`, `where` it is so."""

    def found(evidence: Evidence) -> Frame:
        runs = evidence.runs_of(methods, variants)
        return runs if where is None else runs.query(where)

    return found


def loss_from_best(runs: Frame, evidence: Evidence) -> pd.Series:
    """Return each run's best accuracy minus its reported one."""
    return runs["best"] - runs["accuracy"]


def margin(_rows: Frame, evidence: Evidence) -> float:
    """Return the margin of the rule."""
    return evidence.rule["margin"]
