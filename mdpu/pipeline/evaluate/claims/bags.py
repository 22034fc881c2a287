"""What this project claims of the methods on bags (``docs/explanation/bags.md``)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from mdpu.law import Law
from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.claims.claim import (
    AT_LEAST,
    AT_MOST,
    BELOW,
    Check,
    best_in_row,
    loss_from_best,
    make_cases,
    margin,
    means,
    of_methods,
    runs,
    significantly,
)
from mdpu.pipeline.evaluate.evidence import Evidence
from mdpu.pipeline.evaluate.published import PROPOSED, in_one_reading, published_cells
from mdpu.pipeline.plan import ROW

BEST = "bag-relu"
FREE = "bag-free"
FREE_COSTS = 1.5  # points that the prior-free method may lie below the told one
PRIOR_ERROR = 0.03
TOLD_ERROR = 0.1  # the error of a told prior that a test should notice


def _own(evidence: Evidence) -> pd.DataFrame:
    return evidence.table[evidence.table["method"] == BEST]


def against_proposed(evidence: Evidence) -> pd.DataFrame:
    """Return the cells of bag-relu beside the best of URE, ReLU and ABS, where all were run."""
    return best_in_row(_own(evidence), evidence.table.dropna(subset="mean"), PROPOSED, complete=True)


def against_others(evidence: Evidence) -> pd.DataFrame:
    """Return the cells of bag-relu beside the best method that learns without labels and not from bags as wholes."""
    names = evidence.table["method"].unique()
    others = [name for name in names if not (name.startswith("bag-") or load_method(name).control)]
    return best_in_row(_own(evidence), evidence.table.dropna(subset="mean"), others, complete=False)


def against_published(evidence: Evidence) -> pd.DataFrame | None:
    """Return the cells of bag-relu beside the paper's highest number of their row."""
    if evidence.runs is None:
        return None
    best = published_cells().sort_values("published_mean").drop_duplicates(["table", "prior", "dataset"], keep="last")
    names = evidence.published_names
    own = _own(evidence)
    own = own.assign(published_dataset=own["dataset"].map(lambda name: names.get(name, name)))
    row = ["published_dataset" if axis == "dataset" else axis for axis in ROW]
    best = best.rename(columns={"dataset": "published_dataset", "published_mean": "mean_right"})
    return in_one_reading(own).merge(best[[*row, "mean_right"]], on=row)


def gain_as_information(evidence: Evidence) -> pd.DataFrame:
    """Compare the correlation of gain and information over the rows of each dataset with zero."""
    pairs = against_proposed(evidence)
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


def cost_of_no_prior(evidence: Evidence) -> pd.DataFrame:
    """Compare how far bag-free lies below bag-relu with the allowed cost."""
    pairs = of_methods((FREE,), BEST)(evidence)
    return make_cases(pairs, pairs["mean_right"] - pairs["mean"], FREE_COSTS, AT_MOST)


def inside(found: pd.DataFrame, _evidence: Evidence, error: float = 0.0) -> Any:
    """Take how far a prior that is wrong by `error` lies inside the nearer end of each run's interval."""
    told = found["prior"].astype(float) + error
    return np.minimum(told - found["estimated_prior_low"], found["estimated_prior_high"] - told)


def wrong_prior(evidence: Evidence) -> pd.DataFrame | None:
    """Compare how far told priors that are wrong upwards and downwards lie inside the interval with zero."""
    sides = [runs([FREE], partial(inside, error=error), 0.0, BELOW)(evidence) for error in (-TOLD_ERROR, TOLD_ERROR)]
    return None if sides[0] is None else pd.concat(sides, ignore_index=True)


CHECKS: dict[str, Check] = {
    "bags-beat-the-proposed-methods": means(against_proposed),
    "bags-beat-the-published-numbers": means(against_published),
    "bags-beat-every-other-method": means(against_others),
    "bags-beat-every-other-method-significantly": significantly(against_others),
    "joint-information-is-the-gain": means(of_methods((BEST,), "marginal-relu")),
    "gain-ranks-as-information": gain_as_information,
    "bags-hold-their-accuracy": runs([BEST], loss_from_best, margin, AT_MOST),
    "the-prior-need-not-be-known": cost_of_no_prior,
    "the-prior-is-estimated": runs(
        [FREE],
        lambda found, evidence: (found["estimated_prior"] - found["prior"].astype(float)).abs(),
        PRIOR_ERROR,
        AT_MOST,
    ),
    "the-interval-holds-the-prior": runs([FREE], inside, 0.0, AT_LEAST),
    "a-wrong-prior-is-noticed": wrong_prior,
}
# For the statements of ``claims.yaml``.
NUMBERS = {"free_costs": FREE_COSTS, "prior_error": PRIOR_ERROR, "told_error": TOLD_ERROR}
