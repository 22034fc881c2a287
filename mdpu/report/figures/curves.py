"""Training risk and test accuracy per epoch: the shape of Figure 3."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from mdpu.experiment import Experiment, Plan
from mdpu.report.figures.common import bands, competitors_and_controls, legend_below, reference_lines, size_name
from mdpu.report.style import use_house_style

REFERENCE_EPOCHS = 10
LINEAR_RISK = 1.0  # the risk axis is linear in [-1, 1] and logarithmic beyond: the URE's falls for ever


def draw(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> Figure:
    """Draw an experiment of this kind from its histories."""
    return curves_figure(metrics, plan.titles(run.dataset for run in experiment.runs))


def curves_figure(metrics: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw training risk and test accuracy per epoch, the shape of Figure 3.

    Parameters
    ----------
    metrics : DataFrame
        Histories of runs with one loss and one n per dataset.
    datasets : mapping
        Titles by name, in order; one column of panels per dataset, prior and tuple size.

    Returns
    -------
    Figure
        Two rows of panels, risk above accuracy; a line is the mean over trials, its band one standard
        deviation to each side. Controls are reference lines at the mean of their last `REFERENCE_EPOCHS`.
    """
    use_house_style()
    keys = metrics[["dataset", "prior", "tuple_size"]].drop_duplicates()
    panels = [
        panel for dataset in datasets for panel in sorted(keys[keys["dataset"] == dataset].itertuples(index=False))
    ]
    figure, axes = plt.subplots(
        2, max(1, len(panels)), figsize=(0.8 + 3.2 * max(1, len(panels)), 5), squeeze=False, sharex="col"
    )
    methods, controls = competitors_and_controls(metrics)
    for column, (dataset, prior, size) in enumerate(panels):
        of_panel = (metrics["dataset"] == dataset) & (metrics["prior"] == prior) & (metrics["tuple_size"] == size)
        shown = metrics[of_panel]
        risk, accuracy = axes[0, column], axes[1, column]
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
    axes[0, 0].set_ylabel("Training risk (unbiased estimate)")
    axes[1, 0].set_ylabel("Test accuracy (%)")
    legend_below(figure, axes[1, 0])
    return figure
