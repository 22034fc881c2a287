"""Test accuracy against the number of tuples: the shape of Figure 4."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mdpu.kinds import figure_kind
from mdpu.learn.methods import load_method
from mdpu.report.drawing import (
    bands,
    competitors_and_controls,
    draw_panels,
    entitle,
    in_order,
    legend_below,
    literal,
    share_range,
    size_name,
)
from mdpu.report.style import method_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mdpu.study.grid import Experiment
    from mdpu.study.plan import Plan

CAPTION = """\
Test accuracy against the number of tuples. A line is the mean over trials, its band one standard deviation to
each side; trials that diverged are left out. Controls, where they were run, are thin lines without a band. Panels of
one dataset have the same axes.
"""


def draw(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path]) -> Figure:
    """Draw an experiment of this kind."""
    from mdpu.evaluate.collect import read_histories, run_accuracies

    accuracies = run_accuracies(read_histories(experiment.runs, inputs["metrics"]), plan.protocol.reporting())
    return size_figure(in_order(accuracies, experiment), plan.titles(run.dataset for run in experiment.runs))


def size_figure(accuracies: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw test accuracy against the number of tuples.

    Parameters
    ----------
    accuracies : DataFrame
        As `mdpu.evaluate.collect.run_accuracies` returns it, of runs with one variant and one loss.
    datasets : mapping
        Titles by name, in order.

    Returns
    -------
    Figure
        A row of panels per tuple size and prior, a panel per dataset. A line is the mean over trials, its band
        one standard deviation to each side. Controls are thin lines without a band.
    """
    from matplotlib.ticker import FuncFormatter

    methods, controls = competitors_and_controls(accuracies)
    rows = sorted(set(accuracies[["tuple_size", "prior"]].itertuples(index=False, name=None)))
    if len(datasets) == 1:
        panels = [[(size, prior, dataset) for size, prior in rows for dataset in datasets]]
    else:
        panels = [[(size, prior, dataset) for dataset in datasets] for size, prior in rows]
    figure, axes = draw_panels(len(panels), len(panels[0]), 1.8, sharex=True)
    for dataset in datasets:
        same = [
            axes[row, column] for row, line in enumerate(panels) for column, key in enumerate(line) if key[2] == dataset
        ]
        means = accuracies[accuracies["dataset"] == dataset].groupby(["method", "tuple_size", "prior", "n"])["accuracy"]
        is_control = means.mean().index.get_level_values("method").isin(controls)
        share_range(same, means.mean()[~is_control], beyond=means.mean()[is_control])
    for row, line in enumerate(panels):
        for column, (size, prior, dataset) in enumerate(line):
            axis = axes[row, column]
            shown = accuracies[
                (accuracies["dataset"] == dataset) & (accuracies["tuple_size"] == size) & (accuracies["prior"] == prior)
            ]
            bands(axis, shown, "accuracy", methods, against="n")
            for control in controls:
                means = shown[shown["method"] == control].groupby("n")["accuracy"].mean()
                style = method_style(control)
                axis.plot(
                    means.index,
                    means,
                    color=style["color"],
                    linestyle=style["linestyle"],
                    linewidth=1,
                    label=load_method(control).title,
                )
            entitle(axis, literal(datasets[dataset]), size_name(size).lower(), f"$\\pi_+ = {prior}$")
            axis.set_xticks(sorted(accuracies["n"].unique()))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
            axis.tick_params(labelleft=column == 0 or len(datasets) > 1)  # the row of one dataset shares its axes
        axes[row, 0].set_ylabel("Test accuracy (%)")
    for axis in axes[-1]:
        axis.set_xlabel("Tuples $n$ (thousands)")
    legend_below(figure, axes[0, 0])
    return figure


KIND = figure_kind(draw, CAPTION, single=("variant", "loss"))
