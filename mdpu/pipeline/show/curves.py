"""Training risk and test accuracy per epoch: the shape of Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.collect import read_histories
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report import drawing
from mdpu.pipeline.report.style import method_style
from mdpu.pipeline.show import Inputs, figure_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_KEYS = ("dataset", "prior", "tuple_size")
REFERENCE_EPOCHS = 10
STEEP = 0.1  # share of the epochs, the first ones, that do not decide the range of an axis
SMOOTHED = 0.09  # share of the epochs that a point of a curve averages
# the risk axis is linear in [-1, 1] and logarithmic beyond: the URE's risk never stops falling
LINEAR_RISK = 1.0
CAPTION = """\
Training risk (the uncorrected, unbiased estimate, averaged over the epoch's minibatches) and test
accuracy per epoch, each a running mean over a tenth of the epochs. A thick line is the mean over
trials, a thin one a trial. Panels of one dataset have the same axes, whose ranges fit the epochs
after the first tenth. Where the risk axis goes below -10 it is linear between -1 and 1 and
logarithmic beyond.
"""
OF_CONTROLS = """\
A control is a horizontal line at the mean of its last 10 epochs, or is named above an axis that
ends before it.
"""


class Panel(NamedTuple):
    """Axes of risk and of accuracy, the accuracies of controls, and those of trials after the steep
    first epochs.
    """

    risk: Axes
    accuracy: Axes
    controls: pd.Series
    later: Sequence[float]


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw an experiment of this kind."""
    histories = read_histories(experiment.runs, inputs["metrics"])
    datasets = plan.titles(experiment.datasets)
    return curves_figure(histories, datasets)


def curves_figure(metrics: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw a panel of training risk above one of test accuracy per dataset, prior and tuple
    size.
    """
    metrics = metrics.assign(accuracy=100 * metrics["accuracy"])
    methods, controls = drawing.competitors_and_controls(metrics)
    panels, columns = _arrange(metrics, datasets)
    rows = -(-len(panels) // columns)
    figure, axes = drawing.draw_panels(2 * rows, columns, 1.5, sharex=True)
    in_last_row = len(panels) - columns * (rows - 1)
    for axis in axes[-2:, in_last_row:].flat:
        axis.set_axis_off()

    by_dataset: dict[str, list[Panel]] = {}
    for place, key in enumerate(panels):
        row, column = divmod(place, columns)
        risk, accuracy = axes[2 * row : 2 * row + 2, column]
        in_panel = metrics[(metrics[list(PANEL_KEYS)] == list(key)).all(axis=1)]
        panel = _draw_panel(risk, accuracy, in_panel, methods, controls)

        dataset, prior, size = key
        by_dataset.setdefault(dataset, []).append(panel)
        n = ", ".join(f"{value:,}" for value in sorted(in_panel["n"].unique()))
        words = drawing.size_name(size).lower(), f"$\\pi_+ = {prior}$", f"$n$ = {n}"
        drawing.entitle(risk, drawing.literal(datasets[dataset]), *words)
        if column == 0:
            risk.set_ylabel("Training risk")
            accuracy.set_ylabel("Test accuracy (%)")
    competing = metrics[metrics["method"].isin(methods)]
    for dataset, of_dataset in by_dataset.items():
        _share_axes(of_dataset, competing[competing["dataset"] == dataset])
    drawing.legend_below(figure)
    return figure


def _arrange(
    metrics: pd.DataFrame, datasets: Mapping[str, str]
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the `PANEL_KEYS` of the panels in order, and how many make a row.

    As in the paper, each tuple size has rows of its own; a single dataset and prior has its sizes
    side by side.
    """
    places = list(datasets)

    def order(panel: tuple[Any, ...]) -> tuple[Any, ...]:
        dataset, prior, size = panel
        return size, places.index(dataset), prior

    keys = metrics[list(PANEL_KEYS)].itertuples(index=False, name=None)
    panels = sorted(set(keys), key=order)
    of_a_size = {(dataset, prior) for dataset, prior, _ in panels}
    across = len(of_a_size) if len(of_a_size) > 1 else len(panels)
    return panels, drawing.panel_columns(across)


def _draw_panel(
    risk: Axes,
    accuracy: Axes,
    metrics: pd.DataFrame,
    methods: Sequence[str],
    controls: Sequence[str],
) -> Panel:
    """Draw the training risk of methods, and their accuracy beside that of controls."""
    _smoothed(risk, metrics, "risk", methods)
    later = _smoothed(accuracy, metrics, "accuracy", methods)
    last = metrics[metrics["epoch"] > metrics["epoch"].max() - REFERENCE_EPOCHS]
    of_controls = last.groupby("method")["accuracy"].mean().reindex(controls).dropna()
    drawing.reference_lines(accuracy, of_controls)
    risk.axhline(0, color="0.4", linewidth=0.8)
    accuracy.set_xlabel("Epoch")
    accuracy.locator_params(axis="x", integer=True)
    accuracy.tick_params(labelbottom=True)
    return Panel(risk, accuracy, of_controls, later)


def _smoothed(
    axis: Axes, metrics: pd.DataFrame, measure: str, methods: Sequence[str]
) -> list[float]:
    """Draw running means of a measure: a thin line for each trial, a thick one for all trials of a
    method.

    Returns the values of the thin lines after the steep first epochs.
    """
    later: list[float] = []
    for method in methods:
        of_method = metrics[metrics["method"] == method]
        trials = of_method.pivot(index="epoch", columns="seed", values=measure)
        if trials.empty:
            continue
        window = max(1, round(SMOOTHED * len(trials)))
        smooth = trials.rolling(window, center=True, min_periods=1).mean()
        smooth = smooth.iloc[:: max(1, window // 3)]
        style = method_style(method)
        title = load_method(method).title
        axis.plot(smooth.index, smooth, color=style["color"], linewidth=0.4, alpha=0.5)
        every = max(1, len(smooth) // 8)
        axis.plot(smooth.index, smooth.mean(axis=1), **style, markevery=every, label=title)
        after = smooth[smooth.index > STEEP * trials.index.max()]
        later += after.to_numpy().ravel().tolist()
    return later


def _share_axes(panels: Sequence[Panel], metrics: pd.DataFrame) -> None:
    """Give the panels of one dataset the same vertical axes, wide enough for what differs after the
    first epochs.
    """
    later = metrics[metrics["epoch"] > STEEP * metrics["epoch"].max()]
    means = later.groupby(["prior", "tuple_size", "method", "epoch"])["risk"].mean()
    lowest = means.min()
    if lowest < -10 * LINEAR_RISK:
        for panel in panels:
            panel.risk.set_yscale("symlog", linthresh=LINEAR_RISK)
            panel.risk.set_ylim(1.2 * lowest, max(1.0, means.max()))
    else:
        drawing.share_range([panel.risk for panel in panels], [*means, 0.0])

    accuracies = [value for panel in panels for value in panel.later]
    drawing.share_range([panel.accuracy for panel in panels], accuracies)
    for panel in panels:
        drawing.name_outside(panel.accuracy, panel.controls)


def caption(experiment: Experiment) -> str:
    """Return the caption of an experiment's figure."""
    methods = {run.method for run in experiment.runs}
    has_control = any(load_method(method).control for method in methods)
    return CAPTION + OF_CONTROLS if has_control else CAPTION


KIND = figure_kind(draw, caption, single=("variant", "n", "loss"))
