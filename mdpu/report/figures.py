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
REFERENCE_EPOCHS = 10
LINEAR_RISK = 1.0  # the risk axis is linear in [-1, 1] and logarithmic beyond: the URE's falls for ever


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
    methods, controls = _competitors_and_controls(metrics)
    for column, (dataset, prior, size) in enumerate(panels):
        of_panel = (metrics["dataset"] == dataset) & (metrics["prior"] == prior) & (metrics["tuple_size"] == size)
        shown = metrics[of_panel]
        risk, accuracy = axes[0, column], axes[1, column]
        _bands(risk, shown, "risk", methods)
        in_percent = shown.assign(accuracy=100 * shown["accuracy"])
        _bands(accuracy, in_percent, "accuracy", methods)
        last = in_percent[in_percent["epoch"] > in_percent["epoch"].max() - REFERENCE_EPOCHS]
        _reference_lines(accuracy, last.groupby("method")["accuracy"].mean(), controls)
        risk.axhline(0, color="0.4", linewidth=0.8)
        if shown.loc[shown["method"].isin(methods), "risk"].min() < -10 * LINEAR_RISK:
            risk.set_yscale("symlog", linthresh=LINEAR_RISK)
        n = ", ".join(f"{value:,}" for value in sorted(shown["n"].unique()))
        name = SIZE_NAMES.get(size, f"{size}-tuples")
        risk.set_title(f"{datasets[dataset]}, {name.lower()}\n$\\pi_+ = {prior}$, $n = {n}$")
        accuracy.set_xlabel("Epoch")
    axes[0, 0].set_ylabel("Training risk (unbiased estimate)")
    axes[1, 0].set_ylabel("Test accuracy (%)")
    _legend_below(figure, axes[1, 0])
    return figure


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
    use_house_style()
    shown = accuracies.assign(offset=accuracies["variant"].map(offsets))
    methods, controls = _competitors_and_controls(shown)
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
        _reference_lines(axis, group.groupby("method")["accuracy"].mean(), controls)
        axis.axvline(0, color="0.4", linewidth=0.8)
        name = SIZE_NAMES.get(size, f"{size}-tuples")
        axis.set_title(f"{datasets[dataset]}, {name.lower()}\n$\\pi_+ = {prior}$")
        axis.set_xlabel("Assumed minus true prior")
    axes[0, 0].set_ylabel("Test accuracy (%)")
    _legend_below(figure, axes[0, 0])
    return figure


def _competitors_and_controls(metrics: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the methods of a table in order, those that are controls apart."""
    methods = list(dict.fromkeys(metrics["method"]))
    control = {method: load_method(method).control for method in methods}
    return [m for m in methods if not control[m]], [m for m in methods if control[m]]


def _reference_lines(axes: Axes, accuracies: pd.Series, controls: Sequence[str]) -> None:
    """Draw each control's accuracy, in percent and indexed by method, as a horizontal line."""
    for control in controls:
        if control in accuracies.index:
            style = method_style(control)
            axes.axhline(
                accuracies[control],
                color=style["color"],
                linestyle=style["linestyle"],
                linewidth=1,
                label=load_method(control).title,
            )


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))


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
