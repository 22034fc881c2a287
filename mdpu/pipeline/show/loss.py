"""Test accuracy under several losses: what Figure 5 is about.

The paper has a panel per loss. Here the losses of one dataset and method stand side by side in one
panel: the figure is transposed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report import drawing
from mdpu.pipeline.report.style import LOSS_STYLES
from mdpu.pipeline.show import Inputs, figure_kind, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas.core.groupby import SeriesGroupBy

TICK_LETTERS = 16
TICKS = 6  # at most, along the accuracies of a panel
CAPTION = """\
Test accuracy with each loss, side by side per dataset, so that points which coincide say that the
loss does not matter. A point is the mean over trials, its bar one standard deviation to each side;
trials that diverged are left out. The paper's figure has a panel per loss and all methods in it;
this one is transposed.
"""
DEAD_RAMP = """\
The ramp loss is the paper's as printed in Table I. It has no slope on points that are
misclassified, so URE, ReLU and ABS learn nothing with it, and their points stay near chance.
"""
PARTS_LEARN = """\
The correction of each part learns with it.
"""


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw an experiment of this kind."""
    datasets = plan.titles(experiment.datasets)
    return loss_figure(reported(plan, experiment, inputs["metrics"]), datasets)


def loss_figure(accuracies: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw the accuracies that each method (across) reaches with each loss, by tuple size and prior
    (down).

    The datasets of a panel stand from top to bottom. Where all trials of a loss diverged, the panel
    says so.
    """
    competitors, controls = drawing.competitors_and_controls(accuracies)
    methods = [*competitors, *controls]
    rows = sorted(set(accuracies[["tuple_size", "prior"]].itertuples(index=False, name=None)))
    losses = [loss for loss in LOSS_STYLES if loss in set(accuracies["loss"])]
    reach = 0.24 if len(losses) > 1 else 0.0
    offsets = dict(zip(losses, np.linspace(reach, -reach, len(losses)), strict=True))
    places = {dataset: -place for place, dataset in enumerate(datasets)}

    height = 0.5 + 0.36 * max(2, len(datasets))
    figure, axes = drawing.draw_panels(len(rows), len(methods), height, sharex=True, sharey=True)
    for row, (size, prior) in zip(axes, rows, strict=True):
        for axis, method in zip(row, methods, strict=True):
            key = [method, size, prior]
            in_panel = (accuracies[["method", "tuple_size", "prior"]] == key).all(axis=1)
            for loss, offset in offsets.items():
                of_loss = accuracies[in_panel & (accuracies["loss"] == loss)]
                _draw_loss(axis, loss, of_loss.groupby("dataset")["accuracy"], places, offset)
            _name_datasets(axis, datasets, places)
            size_words = drawing.size_name(size).lower()
            drawing.entitle(axis, load_method(method).title, size_words, f"$\\pi_+ = {prior}$")
    for axis in axes[-1]:
        axis.set_xlabel("Test accuracy (%)")
    drawing.legend_below(figure)
    return figure


def _draw_loss(
    axis: Axes,
    loss: str,
    accuracies: SeriesGroupBy[Any, Any],
    places: Mapping[str, int],
    offset: float,
) -> None:
    """Draw the accuracies with one loss, by dataset, beside the places of the datasets."""
    cells = accuracies.agg(["mean", "std"])
    heights = np.array([places[dataset] + offset for dataset in cells.index])
    # the loss knows its own, but would load torch
    title = loss.replace("-", " ").capitalize()
    points = {**LOSS_STYLES[loss], "linestyle": "none", "elinewidth": 1, "label": title}
    axis.errorbar(cells["mean"], heights, xerr=cells["std"].fillna(0), **points)
    for height in heights[cells["mean"].isna().to_numpy()]:
        axis.text(
            0.98,
            height,
            f"{title} diverged",
            ha="right",
            va="center",
            fontsize=7,
            transform=axis.get_yaxis_transform(),
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )


def _name_datasets(axis: Axes, datasets: Mapping[str, str], places: Mapping[str, int]) -> None:
    """Divide a panel by datasets, given titles by name, and name them on its left."""
    for place in range(1, len(datasets)):
        axis.axhline(0.5 - place, color="0.85", linewidth=0.6)
    axis.grid(visible=False, axis="y")
    axis.locator_params(axis="x", nbins=TICKS)
    labels = []
    for title in map(drawing.literal, datasets.values()):
        labels.append(textwrap.fill(title, TICK_LETTERS, max_lines=2, placeholder=" …"))
    axis.set_yticks(list(places.values()), labels=labels)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(0.5 - len(datasets), 0.5)


def caption(experiment: Experiment) -> str:
    """Return the caption of an experiment's figure."""
    on_ramp = {run.method for run in experiment.runs if run.loss == "ramp"}
    words = CAPTION
    if on_ramp:
        words += DEAD_RAMP
    if "relu-part" in on_ramp:
        words += PARTS_LEARN
    return words


KIND = figure_kind(draw, caption, single=("variant", "n"))
