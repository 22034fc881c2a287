"""Test accuracy against what was collected: the number of tuples, the shape of Figure 4, or the size of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.experiments import figure_kind, reported
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import (
    bands,
    competitors_and_controls,
    draw_panels,
    entitle,
    legend_below,
    literal,
    share_range,
    size_name,
)
from mdpu.pipeline.report.style import method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = """\
Test accuracy against how many tuples there are, or against how many images each has. A line is the mean over trials,
its band one standard deviation to each side; trials that diverged are left out. Controls, where they were run, are thin
lines without a band. Panels of one dataset have the same axes.
"""

# What the figure can be drawn against: what its axis says, and how many make one on it.
AGAINST = {"n": ("Tuples $n$ (thousands)", 1000), "tuple_size": ("Tuple size $M$", 1)}


def draw(plan: Plan, experiment: Experiment) -> Figure:
    datasets = plan.titles(run.dataset for run in experiment.runs)
    return size_figure(reported(plan, experiment), datasets, experiment.options.get("against", "n"))


def size_figure(accuracies: pd.DataFrame, datasets: Mapping[str, str], against: str = "n") -> Figure:
    """Draw test accuracy `against` ``n`` or ``tuple_size``: a row of panels per prior and value of the other."""
    methods, controls = competitors_and_controls(accuracies)
    (other,) = AGAINST.keys() - {against}
    label, unit = AGAINST[against]
    rows = sorted(set(accuracies[[other, "prior"]].itertuples(index=False, name=None)))
    shape = (len(rows), len(datasets)) if len(datasets) > 1 else (1, len(rows))
    figure, axes = draw_panels(*shape, 1.8, sharex=True)
    panels = list(zip(axes.flat, [(*row, dataset) for row in rows for dataset in datasets], strict=True))
    for dataset in datasets:
        own = accuracies[accuracies["dataset"] == dataset]
        means = own.groupby(["method", other, "prior", against])["accuracy"].mean()
        is_control = means.index.get_level_values("method").isin(controls)
        share_range([axis for axis, key in panels if key[2] == dataset], means[~is_control], beyond=means[is_control])
    for axis, (value, prior, dataset) in panels:
        shown = accuracies[
            (accuracies["dataset"] == dataset) & (accuracies[other] == value) & (accuracies["prior"] == prior)
        ]
        bands(axis, shown, "accuracy", methods, against=against)
        for control in controls:
            means = shown[shown["method"] == control].groupby(against)["accuracy"].mean()
            thin = {**method_style(control), "marker": "", "linewidth": 1}
            axis.plot(means.index, means, **thin, label=load_method(control).title)
        which = size_name(value).lower() if other == "tuple_size" else f"$n = {value:,}$".replace(",", "{,}")
        entitle(axis, literal(datasets[dataset]), which, f"$\\pi_+ = {prior}$")
        axis.set_xticks(sorted(accuracies[against].unique()))
        axis.xaxis.set_major_formatter(lambda tick, _: f"{tick / unit:g}")
        axis.tick_params(labelleft=len(datasets) > 1 or axis is axes[0, 0])  # the row of one dataset shares its axes
    for axis in axes[:, 0]:
        axis.set_ylabel("Test accuracy (%)")
    for axis in axes[-1]:
        axis.set_xlabel(label)
    legend_below(figure, axes[0, 0])
    return figure


KEYS = {"against": {"title": "What accuracy is drawn against; n by default.", "enum": [*AGAINST]}}
KIND = figure_kind(draw, CAPTION, keys=KEYS, single=("variant", "loss"))
