"""Training risk and test accuracy per epoch: the shape of Figure 3."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mdpu.kinds import figure_kind
from mdpu.report.drawing import bands, competitors_and_controls, legend_below, reference_lines, size_name
from mdpu.report.style import use_house_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mdpu.study.grid import Experiment
    from mdpu.study.plan import Plan

REFERENCE_EPOCHS = 10
COLUMNS = 4
LINEAR_RISK = 1.0  # the risk axis is linear in [-1, 1] and logarithmic beyond: the URE's risk never stops falling


CAPTION = """\
Training risk (the uncorrected, unbiased estimate, averaged over the epoch's minibatches) and test accuracy
per epoch. A line is the mean over trials, its band one standard deviation to each side. Where the risk axis
goes below -10 it is linear between -1 and 1 and logarithmic beyond. Controls are
horizontal lines at the mean of their last 10 epochs.
"""


def draw(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path]) -> Figure:
    """Draw an experiment of this kind."""
    from mdpu.evaluate.collect import read_histories

    return curves_figure(
        read_histories(experiment.runs, inputs["metrics"]), plan.titles(run.dataset for run in experiment.runs)
    )


def curves_figure(metrics: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw training risk and test accuracy per epoch, the shape of Figure 3.

    Parameters
    ----------
    metrics : DataFrame
        Histories of runs with one loss and one n per dataset.
    datasets : mapping
        Titles by name, in order; a panel of risk and one of accuracy per dataset, prior and tuple size.

    Returns
    -------
    Figure
        Risk above accuracy; a line is the mean over trials, its band one standard
        deviation to each side. Controls are reference lines at the mean of their last `REFERENCE_EPOCHS`.
    """
    import matplotlib.pyplot as plt

    use_house_style()
    keys = metrics[["dataset", "prior", "tuple_size"]].drop_duplicates()
    order = {dataset: place for place, dataset in enumerate(datasets)}
    panels = sorted(keys.itertuples(index=False, name=None), key=lambda key: (key[2], order[key[0]], key[1]))
    # As in the paper, each tuple size has rows of its own; a single dataset and prior has its sizes side by side.
    per_size = len(keys[["dataset", "prior"]].drop_duplicates())
    columns = min(COLUMNS, per_size if per_size > 1 else len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        2 * rows, columns, figsize=(0.8 + 3.2 * columns, 0.2 + 4.8 * rows), squeeze=False, sharex=True
    )
    for axis in axes[-2:, len(panels) - columns * (rows - 1) :].flat:
        axis.set_axis_off()
    methods, controls = competitors_and_controls(metrics)
    for place, (dataset, prior, size) in enumerate(panels):
        in_panel = (metrics["dataset"] == dataset) & (metrics["prior"] == prior) & (metrics["tuple_size"] == size)
        shown = metrics[in_panel]
        risk, accuracy = axes[place // columns * 2 : place // columns * 2 + 2, place % columns]
        bands(risk, shown, "risk", methods)
        in_percent = shown.assign(accuracy=100 * shown["accuracy"])
        bands(accuracy, in_percent, "accuracy", methods)
        last = in_percent[in_percent["epoch"] > in_percent["epoch"].max() - REFERENCE_EPOCHS]
        reference_lines(accuracy, last.groupby("method")["accuracy"].mean(), controls)
        risk.axhline(0, color="0.4", linewidth=0.8)
        if shown.loc[shown["method"].isin(methods), "risk"].min() < -10 * LINEAR_RISK:
            risk.set_yscale("symlog", linthresh=LINEAR_RISK)
        n = ", ".join(f"{value:,}" for value in sorted(shown["n"].unique()))
        name = size_name(size)
        risk.set_title(f"{datasets[dataset]}, {name.lower()}\n$\\pi_+ = {prior}$, $n = {n}$")
        accuracy.set_xlabel("Epoch")
        accuracy.tick_params(labelbottom=True)
        if place % columns == 0:
            risk.set_ylabel("Training risk (unbiased)")
            accuracy.set_ylabel("Test accuracy (%)")
    legend_below(figure, axes[1, 0])
    return figure


KIND = figure_kind(draw, CAPTION, single=("variant", "n", "loss"))
