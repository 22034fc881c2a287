"""How large is the error of what is learned, how does it fall with n, and what does Theorem 2 say?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import linregress, t

from mdpu.pipeline.experiments.bounds.mixture import ASSUMPTIONS, THRESHOLDS, estimates, true_risk
from mdpu.pipeline.experiments.bounds.question import DELTA, Question, Simulation, entitle_point, line, sample_name
from mdpu.pipeline.report.drawing import draw_panels, legend_below, panel_columns
from mdpu.pipeline.report.style import SERIES_STYLES
from mdpu.theory.bounds import error_bounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = f"""\
Theorem 2 beside what happens. The model is the threshold with the least estimated risk. Its excess risk is at most
twice the largest deviation of an estimate from its risk, over all thresholds. Observed lines are
{100 * (1 - DELTA):g} % quantiles over trials, because the bounds hold with that probability. The theorem's rate, n to
the power of -1/2, is that of the deviation. The excess risk itself falls faster, because the risk is smooth at its
minimum. Slopes below are those of means against n on logarithmic axes, with 95 % intervals.
"""
QUANTITIES = {
    "printed": "Theorem 2, as printed",
    "corrected": "Theorem 2, corrected",
    "deviation": "Twice the largest deviation, observed",
    "excess": "Excess risk, observed",
}


def measure(simulation: Simulation) -> pd.DataFrame:
    """Return quantiles and means of the observed errors, and the bounds of Theorem 2, at each point of the grid."""
    rows = []
    for sample in simulation.samples():
        risks = np.array([true_risk(sample.prior, threshold) for threshold in THRESHOLDS])
        tuples, unlabeled = estimates(sample, simulation.trials, f"error/{sample_name(sample)}", THRESHOLDS)
        estimated = tuples + unlabeled  # (trials, T)
        deviation = 2 * np.abs(estimated - risks).max(axis=1)
        excess = risks[estimated.argmin(axis=1)] - risks.min()
        bounds = error_bounds(sample, ASSUMPTIONS, DELTA)
        rows.append(
            {
                "tuple_size": sample.tuple_size,
                "prior": sample.prior,
                "n": sample.n,
                "trials": simulation.trials,
                "deviation": np.quantile(deviation, 1 - DELTA),
                "excess": np.quantile(excess, 1 - DELTA),
                "mean_deviation": deviation.mean(),
                "mean_excess": excess.mean(),
                "printed": bounds.printed,
                "by_tuples": bounds.by_tuples,
                "by_members": bounds.by_members,
                "corrected": bounds.corrected,
            }
        )
    return pd.DataFrame(rows)


def slope(n: pd.Series, values: pd.Series) -> tuple[float, float, float]:
    """Return the slope of log values against log n, and its 95 % interval from the scatter around the line."""
    fit = linregress(np.log(n), np.log(values))
    half = t.ppf(0.975, len(n) - 2) * fit.stderr
    return fit.slope, fit.slope - half, fit.slope + half


def draw(rows: pd.DataFrame) -> Figure:
    """Draw bounds and observed errors against n, a panel per tuple size and prior."""
    panels = list(rows.groupby(["tuple_size", "prior"]))
    columns = panel_columns(len(panels))
    figure, axes = draw_panels(-(-len(panels) // columns), columns, 2.1, sharex=True, sharey=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, ((size, prior), group) in zip(axes.flat, panels, strict=False):
        for style, (column, label) in zip(SERIES_STYLES, QUANTITIES.items(), strict=False):
            line(axis, group["n"], group[column], style, label)
        axis.set_xscale("log")
        axis.set_yscale("log")
        entitle_point(axis, size, prior)
    for axis in axes.flat[len(panels) - columns : len(panels)]:
        axis.set_xlabel("Tuples $n = n_U$")
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("Excess risk")
    legend_below(figure, axes[0, 0])
    return figure


def table(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the table of the report: a row per tuple size and prior."""
    header = [
        "Tuple size",
        "Prior",
        "Slope of the deviation",
        "Slope of the excess risk",
        "Corrected bound / deviation",
        "Corrected / printed bound",
    ]
    body = []
    for (size, prior), group in rows.groupby(["tuple_size", "prior"]):
        slopes = [
            "{:.2f} ({:.2f} to {:.2f})".format(*slope(group["n"], group[name]))
            for name in ("mean_deviation", "mean_excess")
        ]
        ratio, printed = group["corrected"] / group["deviation"], group["corrected"] / group["printed"]
        body.append(
            [str(size), str(prior), *slopes, f"{ratio.min():.1f} to {ratio.max():.1f}", f"{printed.iloc[0]:.2f}"]
        )
    return header, body


QUESTION = Question(measure, draw, table, CAPTION)
