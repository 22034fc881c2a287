"""Test accuracy along an axis: the number of tuples (the shape of Figure 4), their size, or how
wrong an assumption is.

``options: {along: ...}`` names it. ``n`` and ``tuple_size`` are axes of the grid; ``prior_offset``
and ``broken`` are keys of the protocol, in which alone the variants depart from it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.methods import load_method
from mdpu.pipeline.config import grids
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report import drawing
from mdpu.pipeline.report.style import method_style
from mdpu.pipeline.show import Inputs, figure_kind, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas.core.groupby import DataFrameGroupBy

CAPTION = """\
Test accuracy against {}. A line is the mean over trials, its band one standard deviation to each
side; trials that diverged are left out. Controls, where they were run, are thin lines without a
band. Panels of one dataset have the same axes.
"""
# The label of the axis, how many make one on it, and its words in the caption.
LABELS = {
    "n": ("Tuples $n$ (thousands)", 1000, "the number of tuples"),
    "tuple_size": ("Tuple size $M$", 1, "the size of tuples"),
    "prior_offset": ("Assumed minus true prior", 1, "the error of the prior that methods are told"),
    "broken": (
        "Share of broken tuples",
        1,
        "the share of tuples that hold fewer positives than negatives",
    ),
}
PARTS = {"prior_offset": "training", "broken": "sampling"}  # of the protocol, where the key stands


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if a variant departs in another key than the one that it is drawn along."""
    key = definition.get("options", {}).get("along", "n")
    variants = {name for grid in grids(definition) for name in grid["variant"]}
    if len(variants) == 1:
        return
    for name in sorted(variants):
        departures = config["definitions"]["variants"].get(name) or {}
        if any(set(values) != {key} for values in departures.values()):
            raise UserError(f"{where}.variant: {name} changes the protocol in more than {key}")


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw an experiment of this kind."""
    accuracies = reported(plan, experiment, inputs["metrics"])
    along = experiment.options.get("along", "n")
    if along in PARTS:
        offsets = {
            name: plan.protocol.variant(name)[PARTS[along]][along]
            for name in set(accuracies["variant"])
        }
        accuracies[along] = accuracies["variant"].map(offsets)
    datasets = plan.titles(experiment.datasets)
    return line_figure(accuracies, datasets, along)


def line_figure(accuracies: pd.DataFrame, datasets: Mapping[str, str], along: str) -> Figure:
    """Draw test accuracy against the column `along`: a panel per dataset, given titles by name,
    size, prior and n.
    """
    methods, controls = drawing.competitors_and_controls(accuracies)
    n_follows = accuracies.groupby("dataset")["n"].nunique().max() == 1  # from the dataset
    axes_of_panels = [axis for axis in ("tuple_size", "prior", "n") if axis != along]
    if n_follows and along != "n":
        axes_of_panels.remove("n")

    panels, columns = _arrange(accuracies, datasets, axes_of_panels)
    figure, axes = drawing.draw_panels(-(-len(panels) // columns), columns, 1.9, sharex=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (dataset, *values) in zip(axes.flat, panels, strict=False):
        of_dataset = accuracies[accuracies["dataset"] == dataset]
        points = of_dataset[(of_dataset[axes_of_panels] == values).all(axis=1)]
        drawing.bands(axis, points, methods, along)
        _draw_controls(axis, points, along, controls)
        _fit_height(axis, of_dataset.groupby([*axes_of_panels, "method", along]), controls)
        words = _setting(points, along, with_n=along == "tuple_size" or "n" in axes_of_panels)
        drawing.entitle(axis, drawing.literal(datasets[dataset]), *words)
        _label_ticks(axis, sorted(accuracies[along].unique()), along)
    for axis in axes[:, 0]:
        axis.set_ylabel("Test accuracy (%)")
    drawing.legend_below(figure)
    return figure


def _arrange(
    accuracies: pd.DataFrame, datasets: Mapping[str, str], axes_of_panels: list[str]
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the panels, each a dataset and its values on the axes, and how many make a row.

    A row has a panel of each dataset, if there is one of each for all values.
    """
    columns = accuracies[["dataset", *axes_of_panels]]
    measured = set(columns.itertuples(index=False, name=None))
    values = sorted({row[1:] for row in measured})
    panels = []
    for axes, dataset in itertools.product(values, datasets):
        if (dataset, *axes) in measured:
            panels.append((dataset, *axes))
    if len(datasets) > 1 and len(panels) == len(values) * len(datasets):
        return panels, len(datasets)
    return panels, drawing.panel_columns(len(panels))


def _draw_controls(axis: Axes, points: pd.DataFrame, along: str, controls: Sequence[str]) -> None:
    """Draw the means of the controls as thin lines."""
    for control in controls:
        means = points[points["method"] == control].groupby(along)["accuracy"].mean()
        thin = {**method_style(control), "marker": "", "linewidth": 1}
        axis.plot(means.index, means, **thin, label=load_method(control).title)


def _fit_height(axis: Axes, points: DataFrameGroupBy[Any, Any], controls: Sequence[str]) -> None:
    """Let the height of a panel fit the points of its dataset; means of controls may be beyond."""
    accuracies = points["accuracy"]
    means = accuracies.mean()
    spread = accuracies.std().fillna(0)
    is_control = means.index.get_level_values("method").isin(controls)
    low = (means - spread)[~is_control]
    high = (means + spread)[~is_control]
    drawing.share_range([axis], [*low, *high], beyond=means[is_control])


def _setting(points: pd.DataFrame, along: str, with_n: bool) -> list[str]:
    """Return the words of a panel's title that say its setting."""
    size, n, prior = points[["tuple_size", "n", "prior"]].iloc[0]
    words = []
    if along != "tuple_size":
        words.append(drawing.size_name(size).lower())
    if with_n:
        words.append(f"$n$ = {n:,}")
    return [*words, f"$\\pi_+ = {prior}$"]


def _label_ticks(axis: Axes, values: Sequence[Any], along: str) -> None:
    """Label the axis that panels share, with ticks at the values of a grid's axis."""
    label, unit, _ = LABELS[along]
    if along in PARTS:
        axis.locator_params(axis="x", nbins=5)
    else:
        axis.set_xticks(values)
    axis.xaxis.set_major_formatter(lambda tick, _: f"{tick / unit:g}")
    axis.tick_params(labelbottom=True)
    axis.set_xlabel(label)


def caption(experiment: Experiment) -> str:
    """Return the caption of an experiment's figure."""
    return CAPTION.format(LABELS[experiment.options.get("along", "n")][2])


OPTIONS = {"along": {"title": "What accuracy is drawn along; n by default.", "enum": [*LABELS]}}
KIND = figure_kind(draw, caption, options=OPTIONS, check=check, single=("loss",))
