"""Test accuracy along an axis: the number of tuples (the shape of Figure 4), their size, or how
wrong an assumption is.

``options: {along: ...}`` names it. ``n`` and ``tuple_size`` are axes of the grid; ``prior_offset``
and ``broken`` are keys of the protocol, in which alone the variants depart from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.methods import load_method
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report import drawing
from mdpu.pipeline.report.style import method_style
from mdpu.pipeline.show import Inputs, figure_kind, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    for name in definition["variant"] if len(definition["variant"]) > 1 else ():
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
    datasets = plan.titles(run.dataset for run in experiment.runs)
    return line_figure(accuracies, datasets, along)


def line_figure(accuracies: pd.DataFrame, datasets: Mapping[str, str], along: str) -> Figure:
    """Draw test accuracy against the column `along`: a panel per dataset, given titles by name,
    size, prior and n.
    """
    methods, controls = drawing.competitors_and_controls(accuracies)
    several = (
        accuracies.groupby("dataset")["n"].nunique().max() > 1
    )  # else n follows from the dataset
    held = [axis for axis in ("tuple_size", "prior", *(["n"] if several else [])) if axis != along]
    rows = sorted(set(accuracies[held].itertuples(index=False, name=None)))
    there = set(accuracies[["dataset", *held]].itertuples(index=False, name=None))
    panels = [(dataset, *row) for row in rows for dataset in datasets if (dataset, *row) in there]
    complete = len(datasets) > 1 and len(panels) == len(rows) * len(datasets)
    columns = len(datasets) if complete else drawing.panel_columns(len(panels))
    figure, axes = drawing.draw_panels(-(-len(panels) // columns), columns, 1.9, sharex=True)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    label, unit, _ = LABELS[along]
    for axis, key in zip(axes.flat, panels, strict=False):
        own = accuracies[accuracies["dataset"] == key[0]]
        shown = own[(own[held] == list(key[1:])).all(axis=1)]
        drawing.bands(axis, shown, "accuracy", methods, against=along)
        for control in controls:
            means = shown[shown["method"] == control].groupby(along)["accuracy"].mean()
            thin = {**method_style(control), "marker": "", "linewidth": 1}
            axis.plot(means.index, means, **thin, label=load_method(control).title)
        by_value = own.groupby([*held, "method", along])["accuracy"]
        means = by_value.mean()
        spread = by_value.std().fillna(0)
        is_control = means.index.get_level_values("method").isin(controls)
        ends = [*(means - spread)[~is_control], *(means + spread)[~is_control]]
        drawing.share_range([axis], ends, beyond=means[is_control])
        size, n, prior = shown[["tuple_size", "n", "prior"]].iloc[0]
        words = [] if along == "tuple_size" else [drawing.size_name(size).lower()]
        words += [f"$n$ = {n:,}"] if along == "tuple_size" or (several and along != "n") else []
        drawing.entitle(axis, drawing.literal(datasets[key[0]]), *words, f"$\\pi_+ = {prior}$")
        if along in PARTS:
            axis.locator_params(axis="x", nbins=5)
        else:
            axis.set_xticks(sorted(accuracies[along].unique()))
        axis.xaxis.set_major_formatter(lambda tick, _: f"{tick / unit:g}")
        axis.tick_params(labelbottom=True)
        axis.set_xlabel(label)
    for axis in axes[:, 0]:
        axis.set_ylabel("Test accuracy (%)")
    drawing.legend_below(figure)
    return figure


def caption(experiment: Experiment) -> str:
    """Return the caption of an experiment's figure."""
    return CAPTION.format(LABELS[experiment.options.get("along", "n")][2])


OPTIONS = {"along": {"title": "What accuracy is drawn along; n by default.", "enum": [*LABELS]}}
KIND = figure_kind(draw, caption, options=OPTIONS, check=check, single=("loss",))
