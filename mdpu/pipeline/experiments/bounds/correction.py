"""How large is the bias of a corrected risk, and what does Theorem 3 say?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from mdpu.pipeline.experiments.bounds.mixture import (
    LOSS_BOUND,
    REACH,
    THRESHOLDS,
    Floats,
    estimates,
    expected,
    true_risk,
)
from mdpu.pipeline.experiments.bounds.question import Question, Simulation, Z, entitle_point, line, sample_name
from mdpu.pipeline.report.drawing import draw_panels, legend_below
from mdpu.pipeline.report.style import SERIES_STYLES
from mdpu.theory.bounds import Sample, Scope, bias_bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K = 0.0  # ReLU. The bias of another slope k below zero is 1 + k times as large, and so are the corrected bounds.
CAPTION = """\
Theorem 3 beside what happens, for ReLU. Left: the classifier of least risk. Its partial risk of the tuples is negative,
so the theorem does not apply. If the whole risk is corrected (Eqs. 15-16), the bias vanishes. If its two parts are
corrected, as in the theorem's proof, a bias remains. Right: a classifier whose partial risks are positive and equal, so
that the theorem applies. Where its printed bound runs below the observed bias, the bound is wrong. Bars are 95 %
intervals. Points without a negative estimate in any trial are left out.
"""
CLASSIFIERS = {"least risk": "least risk", "equal parts": "equal partial risks"}
SCOPES = {"whole": "whole", "part": "in parts"}


def thresholds(sample: Sample) -> dict[str, float]:
    """Return the threshold of least risk, and the one whose two partial risks are equal."""

    def difference(threshold: float) -> float:
        known = expected(sample, threshold)
        return known.tuple_risk - known.unlabeled_risk

    risks = [true_risk(sample.prior, threshold) for threshold in THRESHOLDS]
    return {
        "least risk": float(THRESHOLDS[int(np.argmin(risks))]),
        "equal parts": float(brentq(difference, -2 * REACH, 2 * REACH)),
    }


def measure(simulation: Simulation) -> pd.DataFrame:
    """Return the observed bias and its bounds at each point of the grid, classifier and scope."""
    rows = []
    for sample in simulation.samples():
        for classifier, threshold in thresholds(sample).items():
            name = f"correction/{classifier}/{sample_name(sample)}"
            tuples, unlabeled = estimates(sample, simulation.trials, name, threshold)
            known = expected(sample, threshold)
            corrected: dict[Scope, list[Floats]] = {"whole": [tuples + unlabeled], "part": [tuples, unlabeled]}
            for scope, parts in corrected.items():
                # f(x) - x, whose mean is the bias: the estimate itself has none.
                added = (1 + K) * np.sum([np.maximum(0.0, -part) for part in parts], axis=0)
                half = Z * added.std(ddof=1) / math.sqrt(simulation.trials)
                bounds = bias_bounds(sample, known.tuple_risk, known.unlabeled_risk, LOSS_BOUND, K, scope)
                rows.append(
                    {
                        "tuple_size": sample.tuple_size,
                        "prior": sample.prior,
                        "classifier": classifier,
                        "threshold": threshold,
                        "tuple_risk": known.tuple_risk,
                        "unlabeled_risk": known.unlabeled_risk,
                        "n": sample.n,
                        "trials": simulation.trials,
                        "scope": scope,
                        "bias": added.mean(),
                        "low": added.mean() - half,
                        "high": added.mean() + half,
                        "printed": bounds.printed,
                        "at_least": bounds.low,
                        "at_most": bounds.high,
                    }
                )
    return pd.DataFrame(rows)


def draw(rows: pd.DataFrame) -> Figure:
    """Draw bias and bounds against n: a row of panels per tuple size and prior, a panel per classifier."""
    points = list(rows.groupby(["tuple_size", "prior"]))
    figure, axes = draw_panels(len(points), 2, 1.9, sharex=True, sharey=True)
    for line_of_panels, ((size, prior), point) in zip(axes, points, strict=True):
        for axis, (classifier, words) in zip(line_of_panels, CLASSIFIERS.items(), strict=True):
            group = point[point["classifier"] == classifier]
            for style, (scope, how) in zip(SERIES_STYLES[1:], SCOPES.items(), strict=False):
                shown = group[group["scope"] == scope]
                seen = shown[shown["bias"] > 0]
                bars = np.array([seen["bias"] - seen["low"].clip(lower=1e-9), seen["high"] - seen["bias"]])
                axis.errorbar(seen["n"], seen["bias"], yerr=bars, label=f"{how}: observed", **style)
                bound = {**style, "marker": "", "linewidth": 0.9}
                line(axis, shown["n"], shown["at_most"], bound, f"{how}: corrected bound")
            first = group[group["scope"] == "part"]
            line(axis, first["n"], first["printed"], SERIES_STYLES[0], "Theorem 3, as printed")
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_ylim(1e-6, 30)
            entitle_point(axis, size, prior, words)
        line_of_panels[0].set_ylabel("Bias")
    for axis in axes[-1]:
        axis.set_xlabel("Tuples $n = n_U$")
    legend_below(figure, axes[0, 0])
    return figure


def table(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the table of the report: a row per tuple size, prior, classifier and scope."""
    smallest, largest = rows["n"].min(), rows["n"].max()
    header = [
        "Tuple size",
        "Prior",
        "Classifier",
        "Corrected",
        "Tuples' risk",
        f"Bias, n = {smallest:,}",
        f"Bias, n = {largest:,}",
        "Above printed bound",
        "Above corrected",
    ]
    body = []
    for (size, prior, classifier, scope), group in rows.groupby(
        ["tuple_size", "prior", "classifier", "scope"], sort=False
    ):
        biases = group.set_index("n")["bias"]
        body.append(
            [
                str(size),
                str(prior),
                CLASSIFIERS[str(classifier)],
                SCOPES[str(scope)],
                f"{group['tuple_risk'].iloc[0]:.2f}",
                *(f"{biases[n]:.2g}" if biases[n] > 0 else "not seen" for n in (smallest, largest)),
                "does not apply" if group["printed"].isna().all() else _exceeded(group, "printed"),
                _exceeded(group, "at_most"),
            ]
        )
    return header, body


def _exceeded(group: pd.DataFrame, bound: str) -> str:
    """Return the n at which the interval of the observed bias lies above a bound."""
    over = group.loc[group["low"] > group[bound], "n"]
    return f"at n = {', '.join(map(str, over))}" if len(over) else "never"


QUESTION = Question(measure, draw, table, CAPTION)
