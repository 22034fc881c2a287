"""What this project claims of the methods on bags (``docs/explanation/bags.md``)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mdpu.law import Law
from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.claims.claim import (
    beside,
    claim,
    even,
    first_of_four,
    interval_of_difference,
    make_cases,
    one_sided,
)
from mdpu.pipeline.evaluate.evidence import WINDOW, Evidence
from mdpu.pipeline.evaluate.published import PROPOSED, in_one_reading, published_cells
from mdpu.pipeline.plan import ROW

BEST = "bag-relu"
FREE = "bag-free"
FREE_COSTS = 1.5  # points that the prior-free method may lie below the told one
PRIOR_ERROR = 0.03
TOLD_ERROR = 0.1  # the error of a told prior that a test should notice
PLACE = "docs/explanation/bags.md"


def _rivals(cells: pd.DataFrame, rivals: list[str], complete: bool = False) -> pd.DataFrame:
    """Return the cells of `BEST` beside the best cell of some methods in their row, in columns that end in ``_right``.

    With `complete`, rows where a rival was not run are left out.
    """
    others = cells[cells["method"].isin(rivals)].dropna(subset="mean")
    if complete:
        others = others[others.groupby(list(ROW))["method"].transform("size") == len(rivals)]
    best = others.sort_values("mean").drop_duplicates(list(ROW), keep="last")
    own = cells[cells["method"] == BEST]
    return own.merge(best[[*ROW, "mean", "std", "trials"]], on=list(ROW), suffixes=("", "_right"))


def _others(cells: pd.DataFrame) -> list[str]:
    """Return the methods that learn without labels and not from bags as wholes."""
    names = cells["method"].unique()
    return [name for name in names if not (name.startswith("bag-") or load_method(name).control)]


@claim(
    "bags-beat-the-proposed-methods",
    "In a row, `bag-relu` is more accurate than the best of URE, ReLU and ABS.",
    PLACE,
    by_chance=first_of_four,
    said_by="project",
)
def bags_beat_the_proposed_methods(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of bag-relu; right: the best of the three, where all were run."""
    pairs = _rivals(evidence.table, list(PROPOSED), complete=True)
    return make_cases(pairs, pairs["mean"], pairs["mean_right"])


@claim(
    "bags-beat-the-published-numbers",
    "In a row, `bag-relu` is more accurate than the paper's highest number of any method. A row that was run in two "
    "readings of its dataset counts as the paper's numbers imply.",
    PLACE,
    said_by="project",
)
def bags_beat_the_published_numbers(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the mean of bag-relu; right: the highest published mean."""
    if evidence.runs is None:
        return None
    keys = ["table", "prior", "dataset"]
    best = published_cells().sort_values("published_mean").drop_duplicates(keys, keep="last")
    names = evidence.published_names
    own = evidence.table[evidence.table["method"] == BEST]
    own = own.assign(published_dataset=own["dataset"].map(lambda name: names.get(name, name)))
    row = ["published_dataset" if axis == "dataset" else axis for axis in ROW]
    best = best.rename(columns={"dataset": "published_dataset"})[[*row, "published_mean"]]
    pairs = in_one_reading(own).merge(best, on=row)
    return make_cases(pairs, pairs["mean"], pairs["published_mean"])


@claim(
    "bags-beat-every-other-method",
    "In a row, `bag-relu` is more accurate than every method without labels that does not learn from whole bags.",
    PLACE,
    said_by="project",
)
def bags_beat_every_other_method(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of bag-relu; right: the best of the others that were run."""
    pairs = _rivals(evidence.table, _others(evidence.table))
    return make_cases(pairs, pairs["mean"], pairs["mean_right"])


@claim(
    "bags-beat-every-other-method-significantly",
    "In a row, Welch's interval for `bag-relu` minus the best method that does not learn from whole bags lies above "
    "zero.",
    PLACE,
    by_chance=one_sided,
    said_by="project",
)
def bags_beat_every_other_method_significantly(evidence: Evidence) -> pd.DataFrame:
    """Left: the interval's lower end; right: zero."""
    pairs = _rivals(evidence.table, _others(evidence.table))
    pairs = pairs[(pairs["trials"] > 1) & (pairs["trials_right"] > 1)]
    low, _ = interval_of_difference(pairs, evidence.rule["level"])
    return make_cases(pairs, low, 0.0)


@claim(
    "joint-information-is-the-gain",
    "In a row, `bag-relu` is more accurate than `marginal-relu`, which has the same loss and correction on single "
    "members.",
    PLACE,
    by_chance=even,
    said_by="project",
)
def joint_information_is_the_gain(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of bag-relu; right: that of marginal-relu."""
    pairs = beside(evidence.table, "method", (BEST,), "marginal-relu")
    return make_cases(pairs, pairs["mean"], pairs["mean_right"])


@claim(
    "gain-ranks-as-information",
    "Over the rows of a dataset, the gain of `bag-relu` over the best of URE, ReLU and ABS "
    "ranks as the ratio of joint to marginal information: their rank correlation is positive.",
    PLACE,
    by_chance=even,
    said_by="project",
)
def gain_ranks_as_information(evidence: Evidence) -> pd.DataFrame:
    """Left: Spearman's correlation over the cells of a dataset; right: zero."""
    pairs = _rivals(evidence.table, list(PROPOSED), complete=True)
    if pairs.empty:
        return make_cases(pairs, np.nan, 0.0)
    ratio = [
        Law.dominant(size).joint_information(float(prior)) / Law.dominant(size).marginal_information(float(prior))
        for size, prior in zip(pairs["tuple_size"], pairs["prior"], strict=True)
    ]
    pairs = pairs.assign(gain=pairs["mean"] - pairs["mean_right"], ratio=ratio)
    ranked = [
        {"dataset": dataset, "correlation": group["gain"].rank().corr(group["ratio"].rank())}
        for dataset, group in pairs.groupby("dataset")
        if len(group) > 2
    ]
    frame = pd.DataFrame(ranked, columns=["dataset", "correlation"])
    return make_cases(frame, frame["correlation"], 0.0)


@claim(
    "bags-hold-their-accuracy",
    f"The reported accuracy of a run of `bag-relu` lies at most the margin below the best that {WINDOW} epochs in a "
    "row had.",
    PLACE,
    said_by="project",
)
def bags_hold_their_accuracy(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's best accuracy minus its reported one; right: the margin."""
    runs = evidence.base_runs(BEST)
    if runs is None:
        return None
    return make_cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"], np.less_equal)


@claim(
    "the-prior-need-not-be-known",
    f"In a row, `bag-free`, which estimates the prior, lies at most {FREE_COSTS} points below `bag-relu`, which is "
    "told.",
    PLACE,
    said_by="project",
)
def the_prior_need_not_be_known(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of bag-relu minus that of bag-free; right: the allowed cost."""
    pairs = beside(evidence.table, "method", (FREE,), BEST)
    return make_cases(pairs, pairs["mean_right"] - pairs["mean"], FREE_COSTS, np.less_equal)


@claim(
    "the-prior-is-estimated",
    f"The prior that a run of `bag-free` estimates lies within {PRIOR_ERROR} of the true one.",
    PLACE,
    said_by="project",
)
def the_prior_is_estimated(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the absolute error of the estimate; right: the bound."""
    runs = evidence.base_runs(FREE)
    if runs is None:
        return None
    error = (runs["estimated_prior"] - runs["prior"].astype(float)).abs()
    return make_cases(runs, error, PRIOR_ERROR, np.less_equal)


@claim(
    "the-interval-holds-the-prior",
    "The interval of the prior that a run of `bag-free` estimates holds the true one.",
    PLACE,
    said_by="project",
)
def the_interval_holds_the_prior(evidence: Evidence) -> pd.DataFrame | None:
    """Left: how far the true prior lies inside the interval's nearer end; right: zero."""
    return _inside(evidence.base_runs(FREE), 0.0)


@claim(
    "a-wrong-prior-is-noticed",
    f"A told prior that is wrong by {TOLD_ERROR}, upwards or downwards, lies outside the interval of a run of "
    "`bag-free`, so the fit test warns.",
    PLACE,
    said_by="project",
)
def a_wrong_prior_is_noticed(evidence: Evidence) -> pd.DataFrame | None:
    """Left: how far the told prior lies inside the interval's nearer end; right: zero."""
    runs = evidence.base_runs(FREE)
    if runs is None:
        return None
    return pd.concat([_inside(runs, error, np.less) for error in (-TOLD_ERROR, TOLD_ERROR)], ignore_index=True)


def _inside(runs: pd.DataFrame | None, error: float, compare: np.ufunc = np.greater_equal) -> pd.DataFrame | None:
    """Return, for each run, how far a prior that is wrong by `error` lies inside the estimate's interval."""
    if runs is None:
        return None
    told = runs["prior"].astype(float) + error
    inside = np.minimum(told - runs["estimated_prior_low"], runs["estimated_prior_high"] - told)
    return make_cases(runs, inside, 0.0, compare)
