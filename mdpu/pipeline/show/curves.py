"""Training risk and test accuracy per epoch: the shape of Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from mdpu.pipeline.evaluate.collect import read_histories
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import (
    bands,
    competitors_and_controls,
    draw_panels,
    entitle,
    legend_below,
    literal,
    name_outside,
    panel_columns,
    reference_lines,
    share_range,
    size_name,
)
from mdpu.pipeline.show import Inputs, figure_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REFERENCE_EPOCHS = 10
STEEP = 0.1  # share of the epochs, the first ones, that do not decide the range of an axis
LINEAR_RISK = 1.0  # the risk axis is linear in [-1, 1] and logarithmic beyond: the URE's risk never stops falling


CAPTION = """\
Training risk (the uncorrected, unbiased estimate, averaged over the epoch's minibatches) and test accuracy
per epoch. A line is the mean over trials, its band one standard deviation to each side. Panels of one dataset have the
same axes, which leave out the steep first tenth of the epochs. Where the risk axis goes below -10 it is linear between
-1 and 1 and logarithmic beyond. Controls are horizontal lines at the mean of their last 10 epochs. One that lies
outside of the axis is named at its edge.
"""


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw an experiment of this kind."""
    histories = read_histories(experiment.runs, inputs["metrics"])
    return curves_figure(histories, plan.titles(run.dataset for run in experiment.runs))


def curves_figure(metrics: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw a panel of training risk above one of test accuracy per dataset, prior and tuple size."""
    keys = metrics[["dataset", "prior", "tuple_size"]].drop_duplicates()
    order = {dataset: place for place, dataset in enumerate(datasets)}
    panels = sorted(keys.itertuples(index=False, name=None), key=lambda key: (key[2], order[key[0]], key[1]))
    # As in the paper, each tuple size has rows of its own; a single dataset and prior has its sizes side by side.
    per_size = len(keys[["dataset", "prior"]].drop_duplicates())
    columns = panel_columns(per_size if per_size > 1 else len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = draw_panels(2 * rows, columns, 1.5, sharex=True)
    for axis in axes[-2:, len(panels) - columns * (rows - 1) :].flat:
        axis.set_axis_off()
    methods, controls = competitors_and_controls(metrics)
    drawn: dict[str, list[Panel]] = {}
    for place, (dataset, prior, size) in enumerate(panels):
        in_panel = (metrics["dataset"] == dataset) & (metrics["prior"] == prior) & (metrics["tuple_size"] == size)
        shown = metrics[in_panel].assign(accuracy=lambda rows: 100 * rows["accuracy"])
        risk, accuracy = axes[place // columns * 2 : place // columns * 2 + 2, place % columns]
        drawn.setdefault(dataset, []).append(_draw_panel(risk, accuracy, shown, methods, controls))
        n = ", ".join(f"{value:,}" for value in sorted(shown["n"].unique()))
        entitle(risk, literal(datasets[dataset]), size_name(size).lower(), f"$\\pi_+ = {prior}$", f"$n$ = {n}")
        accuracy.set_xlabel("Epoch")
        accuracy.locator_params(axis="x", integer=True)
        accuracy.tick_params(labelbottom=True)
        if place % columns == 0:
            risk.set_ylabel("Training risk")
            accuracy.set_ylabel("Test accuracy (%)")
        elif len(datasets) == 1:  # the row shares its axes
            risk.tick_params(labelleft=False)
            accuracy.tick_params(labelleft=False)
    for group in drawn.values():
        _share_axes(group, controls)
    legend_below(figure, axes[1, 0])
    return figure


class Panel(NamedTuple):
    """The two axes of a panel, the means that they show by method and epoch, and the accuracies of the controls."""

    risk: Axes
    accuracy: Axes
    means: pd.DataFrame
    controls: pd.Series


def _draw_panel(
    risk: Axes, accuracy: Axes, shown: pd.DataFrame, methods: Sequence[str], controls: Sequence[str]
) -> Panel:
    """Draw the histories of a panel, accuracies in percent."""
    bands(risk, shown, "risk", methods)
    bands(accuracy, shown, "accuracy", methods)
    last = shown[shown["epoch"] > shown["epoch"].max() - REFERENCE_EPOCHS]
    by_method = last.groupby("method")["accuracy"].mean()
    reference_lines(accuracy, by_method, controls)
    risk.axhline(0, color="0.4", linewidth=0.8)
    own = shown[shown["method"].isin(methods)]
    means = own.groupby(["method", "epoch"])[["risk", "accuracy"]].mean()
    return Panel(risk, accuracy, means, by_method.reindex(controls).dropna())


def _share_axes(panels: Sequence[Panel], controls: Sequence[str]) -> None:
    """Give the panels of one dataset the same vertical axes, wide enough for what differs after the first epochs."""
    means = pd.concat([panel.means for panel in panels])
    epochs = means.index.get_level_values("epoch")
    later = means[epochs > STEEP * epochs.max()]
    risks = later["risk"].tolist()
    if min(risks, default=0.0) < -10 * LINEAR_RISK:
        low = min(panel.risk.get_ylim()[0] for panel in panels)
        for panel in panels:
            panel.risk.set_yscale("symlog", linthresh=LINEAR_RISK)
            panel.risk.set_ylim(low, max(1.0, *risks))
    else:
        share_range([panel.risk for panel in panels], [*risks, 0.0])
    known = [value for panel in panels for value in panel.controls]
    share_range([panel.accuracy for panel in panels], later["accuracy"], beyond=known)
    for panel in panels:
        name_outside(panel.accuracy, panel.controls, controls)


KIND = figure_kind(draw, CAPTION, single=("variant", "n", "loss"))
