"""Accuracy against how wrong an assumption is: the prior that methods are told, or that every tuple is dominant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.learn.methods import load_method
from mdpu.pipeline.experiments import figure_kind, reported
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import (
    competitors_and_controls,
    draw_panels,
    entitle,
    legend_below,
    literal,
    panel_columns,
    reference_lines,
    size_name,
)
from mdpu.pipeline.report.style import method_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = """\
Test accuracy where an assumption is wrong, against how wrong it is. A point is the mean over trials, its bar one
standard deviation to each side. The training data are drawn alike: along the error of the assumed prior they are the
same, and along the share of broken tuples, those with fewer positives than negatives, the rest follows the law.
Controls assume nothing and appear as horizontal lines.
"""
# Keys of the protocol that are wrong on purpose: their part, and what the axis says.
ALONG = {"prior_offset": ("training", "Assumed minus true prior"), "broken": ("sampling", "Share of broken tuples")}


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` unless every variant departs in the key alone that the figure is drawn along."""
    key = definition.get("options", {}).get("along", "prior_offset")
    for name in definition["variant"]:
        departures = config["definitions"]["variants"].get(name) or {}
        if any(set(values) != {key} for values in departures.values()):
            raise UserError(f"{where}.variant: {name} departs from the protocol in something else than {key}")


def draw(plan: Plan, experiment: Experiment) -> Figure:
    variants = dict.fromkeys(run.variant for run in experiment.runs)
    key = experiment.options.get("along", "prior_offset")
    part, label = ALONG[key]
    offsets = {name: plan.protocol.variant(name)[part][key] for name in variants}
    datasets = plan.titles(run.dataset for run in experiment.runs)
    return misspecification_figure(reported(plan, experiment), offsets, datasets, label)


def misspecification_figure(
    accuracies: pd.DataFrame, offsets: Mapping[str, float], datasets: Mapping[str, str], label: str
) -> Figure:
    """Draw test accuracy against how wrong an assumption of the methods is, in `offsets` by variant.

    There is a panel per dataset, tuple size and true prior.
    """
    shown = accuracies.assign(offset=accuracies["variant"].map(offsets))
    methods, controls = competitors_and_controls(shown)
    keys, order = ["dataset", "tuple_size", "prior"], list(datasets)
    panels = sorted(set(shown[keys].itertuples(index=False)), key=lambda panel: (order.index(panel[0]), *panel[1:]))
    count = max(1, len(panels))
    columns = panel_columns(count)
    figure, axes = draw_panels(-(-count // columns), columns, 2.1, sharex=True, sharey=True)
    for axis in axes.flat[count:]:
        axis.set_axis_off()
    for axis, (dataset, size, prior) in zip(axes.flat, panels, strict=False):
        group = shown[(shown[keys] == [dataset, size, prior]).all(axis=1)]
        for method in methods:
            by_offset = group[group["method"] == method].groupby("offset")["accuracy"].agg(["mean", "std"])
            axis.errorbar(
                by_offset.index,
                by_offset["mean"],
                yerr=by_offset["std"].fillna(0),
                **method_style(method),
                label=load_method(method).title,
            )
        reference_lines(axis, group.groupby("method")["accuracy"].mean(), controls)
        axis.axvline(0, color="0.4", linewidth=0.8)
        entitle(axis, literal(datasets[dataset]), size_name(size).lower(), f"$\\pi_+ = {prior}$")
    for axis in axes.flat[max(0, count - columns) : count]:
        axis.set_xlabel(label)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.locator_params(axis="x", nbins=5)
        axis.tick_params(labelbottom=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("Test accuracy (%)")
    legend_below(figure, axes[0, 0])
    return figure


KEYS = {"along": {"title": "The key of the protocol that is wrong on purpose, and the axis.", "enum": [*ALONG]}}
KIND = figure_kind(draw, CAPTION, keys=KEYS, check=check)
