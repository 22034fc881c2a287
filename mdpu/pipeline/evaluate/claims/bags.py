"""What this project claims of the methods on bags (``docs/explanation/bags.md``)."""

from __future__ import annotations

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
    compares,
    loss_from_best,
    margin,
    of_methods,
    of_runs,
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


def against_published(evidence: Evidence) -> pd.DataFrame:
    """Return the cells of bag-relu beside the paper's highest number of their row."""
    best = published_cells().sort_values("published_mean").drop_duplicates(["table", "prior", "dataset"], keep="last")
    best = best.rename(columns={"dataset": "published_dataset", "published_mean": "mean_right"})
    own = _own(evidence).assign(published_dataset=lambda cells: cells["dataset"].map(evidence.published_names))
    row = ["published_dataset", *(axis for axis in ROW if axis != "dataset")]
    return in_one_reading(own).merge(best[[*row, "mean_right"]], on=row)


def gain_as_information(evidence: Evidence) -> pd.DataFrame:
    """Return Spearman's ``correlation`` of gain and ratio of information over the rows of each dataset."""
    pairs = against_proposed(evidence)
    laws = [(Law.dominant(size), float(prior)) for size, prior in zip(pairs["tuple_size"], pairs["prior"], strict=True)]
    ratio = [law.joint_information(prior) / law.marginal_information(prior) for law, prior in laws]
    pairs = pairs.assign(gain=pairs["mean"] - pairs["mean_right"], ratio=ratio)
    ranked = [
        (dataset, group["gain"].rank().corr(group["ratio"].rank()))
        for dataset, group in pairs.groupby("dataset")
        if len(group) > 2
    ]
    return pd.DataFrame(ranked, columns=["dataset", "correlation"])


def inside(runs: pd.DataFrame, _evidence: Evidence) -> Any:
    """Return how far the told prior, if any, or else the true one lies inside the nearer end of each run's interval."""
    prior = runs["told"] if "told" in runs else runs["prior"].astype(float)
    return np.minimum(prior - runs["estimated_prior_low"], runs["estimated_prior_high"] - prior)


def told_wrongly(evidence: Evidence) -> pd.DataFrame:
    """Return the runs of bag-free twice, with a ``told`` prior that is wrong downwards and upwards."""
    runs = evidence.runs_of([FREE])
    sides = [runs.assign(told=runs["prior"].astype(float) + error) for error in (-TOLD_ERROR, TOLD_ERROR)]
    return pd.concat(sides, ignore_index=True)


CHECKS: dict[str, Check] = {
    "bags-beat-the-proposed-methods": compares(against_proposed),
    "bags-beat-the-published-numbers": compares(against_published),
    "bags-beat-every-other-method": compares(against_others),
    "bags-beat-every-other-method-significantly": significantly(against_others),
    "joint-information-is-the-gain": compares(of_methods((BEST,), "marginal-relu")),
    "gain-ranks-as-information": compares(gain_as_information, "correlation", 0.0),
    "bags-hold-their-accuracy": compares(of_runs(BEST), loss_from_best, margin, AT_MOST),
    "the-prior-need-not-be-known": compares(
        of_methods((FREE,), BEST), lambda pairs, _: pairs["mean_right"] - pairs["mean"], FREE_COSTS, AT_MOST
    ),
    "the-prior-is-estimated": compares(
        of_runs(FREE),
        lambda runs, _: (runs["estimated_prior"] - runs["prior"].astype(float)).abs(),
        PRIOR_ERROR,
        AT_MOST,
    ),
    "the-interval-holds-the-prior": compares(of_runs(FREE), inside, 0.0, AT_LEAST),
    "a-wrong-prior-is-noticed": compares(told_wrongly, inside, 0.0, BELOW),
}
# For the statements of ``claims.yaml``.
NUMBERS = {"free_costs": FREE_COSTS, "prior_error": PRIOR_ERROR, "told_error": TOLD_ERROR}
