"""What the figures share: who competes, reference lines, bands, and the legend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mdpu.files import replacing
from mdpu.learn.methods import load_method
from mdpu.report.style import method_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mdpu.study.grid import Experiment

SIZE_NAMES = {1: "Points", 2: "Pairs", 3: "Triples"}


def size_name(tuple_size: int) -> str:
    """Return what tuples of a size are called: Pairs, Triples, 4-tuples."""
    return SIZE_NAMES.get(tuple_size, f"{tuple_size}-tuples")


def in_order(accuracies: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Return the rows with the methods in the order that the experiment lists them in."""
    methods = list(dict.fromkeys(run.method for run in experiment.runs))
    return accuracies.sort_values("method", key=lambda column: column.map(methods.index), kind="stable")


def competitors_and_controls(metrics: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the methods of a table in order, those that are controls apart."""
    methods = list(dict.fromkeys(metrics["method"]))
    control = {method: load_method(method).control for method in methods}
    return [m for m in methods if not control[m]], [m for m in methods if control[m]]


def reference_lines(axes: Axes, accuracies: pd.Series, controls: Sequence[str]) -> None:
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


def legend_below(figure: Figure, axes: Axes) -> None:
    """Put the legend of `axes` below all of them, in as many columns as fit into the figure."""
    handles, labels = axes.get_legend_handles_labels()
    for columns in range(min(len(labels), 6), 0, -1):
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def save_figure(figure: Figure, path: Path) -> None:
    """Save a figure as SVG and, beside it, as PDF; the same figure is the same bytes whenever it is saved."""
    for file, metadata in ((path, {"Date": None}), (path.with_suffix(".pdf"), {"CreationDate": None})):
        with replacing(file) as temporary:
            figure.savefig(temporary, metadata=metadata)


def bands(axes: Axes, metrics: pd.DataFrame, measure: str, methods: Sequence[str], against: str = "epoch") -> None:
    """Draw one measure against a column: mean over trials as a line, one standard deviation as a band."""
    for method in methods:
        method_rows = metrics[metrics["method"] == method]
        if method_rows.empty:
            continue
        by_value = method_rows.groupby(against)[measure].agg(["mean", "std"])
        style = method_style(method)
        values = by_value.index.to_numpy()
        axes.plot(
            values,
            by_value["mean"],
            color=style["color"],
            linestyle=style["linestyle"],
            marker=style["marker"],
            markevery=max(1, len(values) // 8),
            markersize=4,
            label=load_method(method).title,
        )
        spread = by_value["std"].fillna(0)
        axes.fill_between(
            values, by_value["mean"] - spread, by_value["mean"] + spread, color=style["color"], alpha=0.2, linewidth=0
        )
