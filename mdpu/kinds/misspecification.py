"""Accuracy against the error of the prior that the methods assume."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mdpu.kinds import figure_kind
from mdpu.learn.methods import load_method
from mdpu.report.drawing import competitors_and_controls, in_order, legend_below, reference_lines, size_name
from mdpu.report.style import method_style, use_house_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mdpu.study.grid import Experiment
    from mdpu.study.plan import Plan

CAPTION = """\
Test accuracy of methods that assume a wrong prior, against the error. A point is the mean over trials, its
bar one standard deviation to each side. The data are the same at every offset: tuples and unlabeled images
are drawn at the true prior. Controls use no prior and appear as horizontal lines.
"""


def draw(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path]) -> Figure:
    """Draw an experiment of this kind."""
    from mdpu.evaluate.collect import read_histories, run_accuracies

    accuracies = run_accuracies(read_histories(experiment.runs, inputs["metrics"]), plan.protocol.reporting())
    variants = dict.fromkeys(run.variant for run in experiment.runs)
    offsets = {name: plan.protocol.variant(name)["training"]["prior_offset"] for name in variants}
    datasets = plan.titles(run.dataset for run in experiment.runs)
    return misspecification_figure(in_order(accuracies, experiment), offsets, datasets)


def misspecification_figure(
    accuracies: pd.DataFrame, offsets: Mapping[str, float], datasets: Mapping[str, str]
) -> Figure:
    """Draw test accuracy against the offset of the prior that the methods were told.

    Parameters
    ----------
    accuracies : DataFrame
        As `mdpu.evaluate.collect.run_accuracies` returns it, of runs with one loss and one n per dataset.
    offsets : mapping
        Assumed minus true prior, by variant.
    datasets : mapping
        Titles by name, in order; one panel per dataset, tuple size and true prior.

    Returns
    -------
    Figure
        A point is the mean over trials, its bar one standard deviation to each side. Controls, which are
        told no prior, are reference lines.
    """
    import matplotlib.pyplot as plt

    use_house_style()
    shown = accuracies.assign(offset=accuracies["variant"].map(offsets))
    methods, controls = competitors_and_controls(shown)
    keys = ["dataset", "tuple_size", "prior"]
    panels = [
        (dataset, size, prior)
        for dataset in datasets
        for size, prior in sorted(set(shown.loc[shown["dataset"] == dataset, keys[1:]].itertuples(index=False)))
    ]
    count = max(1, len(panels))
    figure, axes = plt.subplots(1, count, figsize=(0.8 + 3.2 * count, 3.2), squeeze=False, sharey=True)
    for axis, (dataset, size, prior) in zip(axes[0], panels, strict=False):
        group = shown[(shown[keys] == [dataset, size, prior]).all(axis=1)]
        for method in methods:
            by_offset = group[group["method"] == method].groupby("offset")["accuracy"].agg(["mean", "std"])
            axis.errorbar(
                by_offset.index,
                by_offset["mean"],
                yerr=by_offset["std"].fillna(0),
                **method_style(method),
                markersize=4,
                capsize=2,
                label=load_method(method).title,
            )
        reference_lines(axis, group.groupby("method")["accuracy"].mean(), controls)
        axis.axvline(0, color="0.4", linewidth=0.8)
        name = size_name(size)
        axis.set_title(f"{datasets[dataset]}, {name.lower()}\n$\\pi_+ = {prior}$")
        axis.set_xlabel("Assumed minus true prior")
    axes[0, 0].set_ylabel("Test accuracy (%)")
    legend_below(figure, axes[0, 0])
    return figure


KIND = figure_kind(draw, CAPTION)
