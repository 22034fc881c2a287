"""Is the risk estimate unbiased, and does it scatter as the theory says (Theorem 1)?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from mdpu.pipeline.experiments.bounds.mixture import estimates, expected, true_risk
from mdpu.pipeline.experiments.bounds.question import Question, Simulation, Z, line, sample_name
from mdpu.pipeline.report.drawing import draw_panels, legend_below, size_name
from mdpu.pipeline.report.style import SERIES_STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THRESHOLD = 0.0
CAPTION = """\
Theorem 1 on two Gaussian classes whose risk is known. Left: the mean error of the risk estimate with its 95 % interval,
in units of the standard deviation of one estimate. One in twenty such intervals is expected to miss zero. Right: the
standard deviation of one estimate. Markers are observed, and lines follow from the law of the tuples.
"""


def measure(simulation: Simulation) -> pd.DataFrame:
    """Return mean error and standard deviation of the risk estimate at each point of the grid."""
    rows = []
    for sample in simulation.samples():
        tuples, unlabeled = estimates(sample, simulation.trials, f"unbiased/{sample_name(sample)}", THRESHOLD)
        risk = true_risk(sample.prior, THRESHOLD)
        errors = tuples + unlabeled - risk
        half = Z * errors.std(ddof=1) / math.sqrt(simulation.trials)
        rows.append(
            {
                "tuple_size": sample.tuple_size,
                "prior": sample.prior,
                "n": sample.n,
                "trials": simulation.trials,
                "risk": risk,
                "error": errors.mean(),
                "low": errors.mean() - half,
                "high": errors.mean() + half,
                "observed_deviation": errors.std(ddof=1),
                "deviation": expected(sample, THRESHOLD).deviation,
            }
        )
    return pd.DataFrame(rows)


def draw(rows: pd.DataFrame) -> Figure:
    """Draw mean errors and standard deviations against the prior, a line per tuple size."""
    figure, ((left, right),) = draw_panels(1, 2, 2.1)
    sizes = sorted(rows["tuple_size"].unique())
    priors = sorted(rows["prior"].unique())
    step = (priors[1] - priors[0] if len(priors) > 1 else 0.1) / (len(sizes) + 2)
    for place, (size, group) in enumerate(rows[rows["n"] == rows["n"].max()].groupby("tuple_size")):
        style = SERIES_STYLES[place % len(SERIES_STYLES)]
        label = size_name(int(str(size)))
        left.errorbar(
            group["prior"] + (place - (len(sizes) - 1) / 2) * step,
            group["error"] / group["deviation"],
            yerr=(group["high"] - group["low"]) / 2 / group["deviation"],
            color=style["color"],
            marker=style["marker"],
            linestyle="none",
            label=label,
        )
        line(right, group["prior"], group["deviation"], {**style, "marker": ""}, label)
        line(right, group["prior"], group["observed_deviation"], {**style, "linestyle": "none"}, label)
    left.axhline(0, color="0.4", linewidth=0.8)
    left.set_ylabel("Mean error / deviation")
    left.set_title("The estimate is unbiased")
    right.set_yscale("log")
    right.set_ylabel("Standard deviation")
    right.set_title(f"Its scatter, $n = n_U = {rows['n'].max()}$")
    for axis in (left, right):
        axis.set_xticks(priors)
        axis.set_xlabel(r"Class prior $\pi_+$")
    legend_below(figure, left)
    return figure


def table(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the table of the report: a row per tuple size."""
    header = [
        "Tuple size",
        "Priors",
        "Intervals that hold zero",
        "Largest error / its standard error",
        "Observed / expected deviation",
    ]
    body = []
    for size, group in rows.groupby("tuple_size"):
        holds = (group["low"] <= 0) & (group["high"] >= 0)
        errors = (2 * Z * group["error"] / (group["high"] - group["low"])).abs()
        ratios = group["observed_deviation"] / group["deviation"]
        body.append(
            [
                str(size),
                str(len(group)),
                str(holds.sum()),
                f"{errors.max():.2f}",
                f"{ratios.min():.3f} to {ratios.max():.3f}",
            ]
        )
    return header, body


QUESTION = Question(measure, draw, table, CAPTION)
