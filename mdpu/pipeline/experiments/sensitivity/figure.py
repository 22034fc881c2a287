"""How far each alternative to the protocol moves each method: a dot plot, one row per alternative."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.sensitivity import JOINT_KEY, PANEL, SIDES_KEY, paired_differences, published_panels
from mdpu.pipeline.experiments.sensitivity.tables import key_title, ordered, panels, value_title
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import LETTER, PAGE, draw_panels, entitle, legend_below, literal, size_name
from mdpu.pipeline.report.style import method_style

LINEAR = 10.0  # points; where differences go beyond twice this, the axis is logarithmic outside of it
ROW_HEIGHT = 0.135  # inches
PANELS = 4  # side by side; where there are more, each dataset has a row


def draw(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> Figure:
    """Draw an experiment of this kind from its histories."""
    differences = paired_differences(plan, experiment, metrics)
    datasets = plan.titles(run.dataset for run in experiment.runs)
    return sensitivity_figure(differences, published_panels(plan, experiment), datasets)


def sensitivity_figure(differences: pd.DataFrame, published: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw the change of accuracy against the protocol as it stands, one row per alternative.

    Parameters
    ----------
    differences : DataFrame
        As `mdpu.pipeline.evaluate.sensitivity.paired_differences` returns it.
    published : DataFrame
        The paper's cells: dataset, tuple_size, n, prior, method, published_mean.
    datasets : mapping
        Titles by name.

    Returns
    -------
    Figure
        One panel per dataset, tuple size, n and prior. A large marker is the mean over trials, its bar one
        standard deviation to each side, a small marker one trial; a vertical line is the paper's accuracy
        minus that of the protocol as it stands.
    """
    rows: list[tuple[str, tuple[str, str, str] | None]] = []
    previous = None
    for alternative in ordered(differences):
        key, base, value = alternative
        if key != previous:
            protocol_value = f" ({value_title(key, base, datasets)})" if key not in (JOINT_KEY, SIDES_KEY) else ""
            rows.append((f"{key_title(key)}{protocol_value}", None))
        rows.append((value_title(key, value, datasets), alternative))
        previous = key
    shown = panels(differences)
    methods = list(dict.fromkeys(differences["method"]))
    names = list(dict.fromkeys(panel[0] for panel in shown))
    if len(shown) > PANELS:
        places = {
            panel: (names.index(panel[0]), [p for p in shown if p[0] == panel[0]].index(panel)) for panel in shown
        }
    else:
        places = {panel: (0, column) for column, panel in enumerate(shown)}
    down, across = (max([0, *(place[side] for place in places.values())]) + 1 for side in (0, 1))
    # A page wide even if there is one panel, for the names of the rows.
    figure, axes = draw_panels(down, across, 0.7 + ROW_HEIGHT * max(4, len(rows)), PAGE, sharey=True)
    for axis in set(axes.flat) - {axes[place] for place in places.values()}:
        axis.set_visible(False)
    beside = 0.2 + 1.15 * LETTER * max((len(label) for label, _ in rows), default=0)  # bold letters are wider
    for panel, at in places.items():
        axis = axes[at]
        panel_differences = differences[(differences[list(PANEL)] == list(panel)).all(axis=1)]
        panel_published = published[(published[list(PANEL)] == list(panel)).all(axis=1)].set_index("method")
        for place, method in enumerate(methods):
            style = method_style(method)
            marker = {"color": style["color"], "marker": style["marker"] or "x", "linestyle": ""}  # controls have none
            method_differences = panel_differences[panel_differences["method"] == method]
            offset = 0.6 * ((place + 0.5) / len(methods) - 0.5)
            by_alternative = {
                name: group["difference"]
                for name, group in method_differences.groupby(["key", "base", "value"], sort=False)
            }
            for position, (_, row) in enumerate(rows):
                trials = by_alternative.get(row) if row else None
                if trials is None or trials.notna().sum() == 0:
                    continue
                heights = [position + offset] * len(trials)
                axis.plot(trials, heights, **marker, markersize=1.8, markeredgewidth=0, alpha=0.5)
                spread = trials.std() if trials.notna().sum() > 1 else 0.0
                axis.errorbar(trials.mean(), position + offset, xerr=spread, **marker, elinewidth=0.8, capsize=0)
            axis.plot([], [], **marker, label=load_method(method).title)
            if method in panel_published.index and len(method_differences):
                target = panel_published.loc[method, "published_mean"] - method_differences["base_accuracy"].mean()
                axis.axvline(
                    target,
                    color=style["color"],
                    linestyle=style["linestyle"],
                    linewidth=0.9,
                    alpha=0.8,
                    label=f"{load_method(method).title} in the paper",
                )
        axis.axvline(0, color="0.2", linewidth=0.9)
        if panel_differences["difference"].abs().max() > 2 * LINEAR:
            axis.set_xscale("symlog", linthresh=LINEAR)
            axis.xaxis.set_major_formatter("{x:g}")
        dataset, size, n, prior = panel
        entitle(
            axis,
            literal(datasets[dataset]),
            size_name(size).lower(),
            f"$\\pi_+ = {prior}$",
            f"$n$ = {n:,}",
            beside=beside,
        )
        axis.set_xlabel("Change (points)")
        for position, (_, row) in enumerate(rows):
            if row is None:
                axis.axhspan(position - 0.5, position + 0.5, color="0.94", linewidth=0, zorder=0)
    first = axes[0, 0]
    first.set_yticks(range(len(rows)), [literal(label) for label, _ in rows])
    for axis in axes[:, 0]:
        for label, (_, row) in zip(axis.get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if row is None else "normal")
    first.set_ylim(len(rows) - 0.5, -0.5)
    for axis in axes.flat:
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
    legend_below(figure, first)
    return figure
