"""Estimated class priors beside the true ones, and how often a wrong one is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.learn.method import NetworkMethod
from mdpu.learn.methods import load_method
from mdpu.pipeline.config import all_values
from mdpu.pipeline.experiments import rows_kind
from mdpu.pipeline.plan import AXES, Experiment, Plan
from mdpu.pipeline.report.drawing import size_name

CAPTION = """\
The class prior that a method estimates from tuples and unlabeled images alone, with its interval from a bootstrap over
held-out bags. Error is the estimate minus the true prior, its mean over trials and in brackets the largest. Held: the
intervals that hold the true prior. Noticed: the intervals that leave out a told prior that is wrong by so much, upwards
or downwards, which is when the fit test warns. Unknown: the estimates that say themselves that the sample tells nothing
of the prior.
"""
ERRORS = (0.05, 0.1)
HEADER = ["Dataset", "Tuples", "n", "Prior", "Trials", "Error", "Held", *(f"Noticed {e}" for e in ERRORS), "Unknown"]


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` unless every method estimates the prior."""
    for name in all_values(definition["method"]):
        method = load_method(name)
        if not isinstance(method, NetworkMethod) or not method.estimates_prior:
            raise UserError(f"{where}.method: {name} estimates no prior; bag-free does")


def estimates(_plan: Plan, _experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the estimate of each run."""
    names = ["estimated_prior", "estimated_prior_low", "estimated_prior_high", "estimated_prior_known"]
    return metrics.loc[metrics["epoch"] == 1, [*AXES, *names]]


def table_rows(plan: Plan, _experiment: Experiment, runs: pd.DataFrame) -> list[list[str]]:
    """Return a row of strings per dataset, tuple size, n and prior."""
    keys = ["dataset", "tuple_size", "n", "prior"]
    titles, rows = plan.titles(runs["dataset"]), []
    for _, cell in runs.groupby(keys, sort=False):
        dataset, size, n, prior = (cell[key].iloc[0] for key in keys)
        true, trials = float(prior), len(cell)
        error = (cell["estimated_prior"] - true).to_numpy()
        held = _inside(cell, true).sum()
        noticed = [sum(int((~_inside(cell, true + side * wrong)).sum()) for side in (-1, 1)) for wrong in ERRORS]
        unknown = int((cell["estimated_prior_known"] == 0).sum())
        rows.append(
            [
                titles[dataset],
                size_name(size),
                f"{n:,}",
                str(prior),
                str(trials),
                f"{_signed(error.mean())} ({_signed(error[abs(error).argmax()])})",
                f"{held} of {trials}",
                *(f"{count} of {2 * trials}" for count in noticed),
                str(unknown),
            ]
        )
    return rows


def _signed(error: float) -> str:
    """Return an error with its sign; one that rounds to zero is positive."""
    return f"{round(error, 3) + 0.0:+.3f}"


def _inside(cell: pd.DataFrame, prior: float) -> pd.Series:
    """Return whether each interval holds a prior."""
    return cell["estimated_prior_low"].le(prior) & cell["estimated_prior_high"].ge(prior)


KIND = rows_kind(
    estimates, table_rows, lambda _: CAPTION, lambda _: HEADER, single=("variant", "loss", "method"), check=check
)
