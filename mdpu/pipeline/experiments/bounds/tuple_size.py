"""Which tuple size should one collect, if a number of images is to be put into tuples?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mdpu.pipeline.experiments.bounds.mixture import ASSUMPTIONS, THRESHOLDS, estimates, expected, true_risk
from mdpu.pipeline.experiments.bounds.question import DELTA, Question, Simulation, Z, line, sample_name
from mdpu.pipeline.report.drawing import draw_panels, legend_below
from mdpu.pipeline.report.style import SERIES_STYLES
from mdpu.theory.bounds import Sample, error_bounds
from mdpu.theory.joint import joint_information, marginal_information

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = """\
Tuples of different sizes at equal numbers of images. Top left: what a tuple says about the classes of its members, in
nats per image, if classes are separable and all members are seen together. Top right: the share of this that is left
if each member is seen by itself, as the paper's estimators do. Bottom: the paper's estimator on two Gaussian classes.
Left, the standard deviation of the risk estimate at the classifier of least risk. Right, the mean excess risk of the
threshold with the least estimated risk. Points, M = 1, are images known to be positive. The table names the best size
of two or more members.
"""
PANELS = {
    "joint": "Joint law: nats per image",
    "kept": "Share kept by marginals (%)",
    "deviation": "Deviation of the estimate",
    "excess": "Mean excess risk",
}


def measure(simulation: Simulation) -> pd.DataFrame:
    """Return information, scatter and error at each point of the grid, in which n counts images.

    There are as many unlabeled images as images in tuples.
    """
    rows = []
    for size in simulation.tuple_size:
        for prior in simulation.prior:
            risks = np.array([true_risk(prior, threshold) for threshold in THRESHOLDS])
            joint, marginal = joint_information(size, prior), marginal_information(size, prior)
            for images in simulation.n:
                sample = Sample(size, prior, max(1, images // size), images)
                name = f"tuple size/{sample_name(sample)}"
                tuples, unlabeled = estimates(sample, simulation.trials, name, THRESHOLDS)
                excess = risks[(tuples + unlabeled).argmin(axis=1)] - risks.min()
                bounds = error_bounds(sample, ASSUMPTIONS, DELTA)
                rows.append(
                    {
                        "tuple_size": size,
                        "prior": prior,
                        "images": images,
                        "n": sample.n,
                        "trials": simulation.trials,
                        "joint": joint / size,
                        "marginal": marginal / size,
                        "kept": 100 * marginal / joint,
                        "deviation": expected(sample, float(THRESHOLDS[risks.argmin()])).deviation,
                        "excess": excess.mean(),
                        "half": Z * excess.std(ddof=1) / math.sqrt(simulation.trials),
                        "printed": bounds.printed,
                        "corrected": bounds.corrected,
                    }
                )
    return pd.DataFrame(rows)


def draw(rows: pd.DataFrame) -> Figure:
    """Draw the four measures against the tuple size, a line per prior, at the largest number of images."""
    figure, axes = draw_panels(2, 2, 2.0, sharex=True)
    most = rows["images"].max()
    for axis, (column, label) in zip(axes.flat, PANELS.items(), strict=True):
        for place, (prior, group) in enumerate(rows[rows["images"] == most].groupby("prior")):
            line(
                axis,
                group["tuple_size"],
                group[column],
                SERIES_STYLES[place % len(SERIES_STYLES)],
                f"$\\pi_+ = {prior}$",
            )
        axis.set_ylabel(label)
        axis.set_xticks(sorted(rows["tuple_size"].unique()))
        if column != "kept":
            axis.set_yscale("log")
    for axis in axes[-1]:
        axis.set_xlabel("Tuple size $M$")
        axis.set_title(f"{most:,} images in tuples")
    legend_below(figure, axes[0, 0])
    return figure


def table(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the table of the report: per prior, the best tuple size with more than one member by each measure."""
    header = [
        "Prior",
        "Images",
        "Joint law",
        "Marginals",
        "Scatter of the estimate",
        "Theorem 2, corrected",
        "Excess risk, observed",
    ]
    body = []
    for (prior, images), group in rows[rows["tuple_size"] > 1].groupby(["prior", "images"]):
        sizes = group.set_index("tuple_size")
        best = [sizes["joint"].idxmax(), sizes["marginal"].idxmax()]
        best += [sizes[column].idxmin() for column in ("deviation", "corrected", "excess")]
        body.append([str(prior), f"{images:,}", *map(str, best)])
    return header, body


QUESTION = Question(measure, draw, table, CAPTION)
