"""Figures, drawn from the tidy metrics alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mdpu.learn.methods import load_method
from mdpu.report.style import method_style, use_house_style

SIZE_NAMES = {1: "Points", 2: "Pairs", 3: "Triples"}
LINEAR_RISK = 1.0  # the risk axis is linear in [-1, 1] and logarithmic beyond: the URE's falls for ever


def curves_figure(metrics: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw training risk and test accuracy per epoch, the shape of Figure 3.

    Parameters
    ----------
    metrics : DataFrame
        Histories of runs with one prior, one loss, and one n per dataset.
    datasets : mapping
        Titles by name, in order; one column of panels per dataset and tuple size.

    Returns
    -------
    Figure
        Two rows of panels, risk above accuracy; a line is the mean over trials, its band one standard
        deviation to each side.
    """
    use_house_style()
    panels = [
        (dataset, size)
        for dataset in datasets
        for size in sorted(metrics.loc[metrics["dataset"] == dataset, "tuple_size"].unique())
    ]
    figure, axes = plt.subplots(
        2, max(1, len(panels)), figsize=(0.8 + 3.2 * max(1, len(panels)), 5), squeeze=False, sharex="col"
    )
    methods = list(dict.fromkeys(metrics["method"]))
    for column, (dataset, size) in enumerate(panels):
        shown = metrics[(metrics["dataset"] == dataset) & (metrics["tuple_size"] == size)]
        risk, accuracy = axes[0, column], axes[1, column]
        _bands(risk, shown, "risk", methods)
        _bands(accuracy, shown.assign(accuracy=100 * shown["accuracy"]), "accuracy", methods)
        risk.axhline(0, color="0.4", linewidth=0.8)
        if shown["risk"].min() < -10 * LINEAR_RISK:
            risk.set_yscale("symlog", linthresh=LINEAR_RISK)
        prior = ", ".join(sorted(shown["prior"].unique()))
        n = ", ".join(f"{value:,}" for value in sorted(shown["n"].unique()))
        name = SIZE_NAMES.get(size, f"{size}-tuples")
        risk.set_title(f"{datasets[dataset]}, {name.lower()}\n$\\pi_+ = {prior}$, $n = {n}$")
        accuracy.set_xlabel("Epoch")
    axes[0, 0].set_ylabel("Training risk (unbiased estimate)")
    axes[1, 0].set_ylabel("Test accuracy (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _bands(axes: Axes, metrics: pd.DataFrame, measure: str, methods: Sequence[str]) -> None:
    """Draw one measure per epoch: mean over trials as a line, one standard deviation as a band."""
    for method in methods:
        of_method = metrics[metrics["method"] == method]
        if of_method.empty:
            continue
        by_epoch = of_method.groupby("epoch")[measure].agg(["mean", "std"])
        style = method_style(method)
        epochs = by_epoch.index.to_numpy()
        axes.plot(
            epochs,
            by_epoch["mean"],
            color=style["color"],
            linestyle=style["linestyle"],
            marker=style["marker"],
            markevery=max(1, len(epochs) // 8),
            markersize=4,
            label=load_method(method).title,
        )
        spread = by_epoch["std"].fillna(0)
        axes.fill_between(
            epochs, by_epoch["mean"] - spread, by_epoch["mean"] + spread, color=style["color"], alpha=0.2, linewidth=0
        )
