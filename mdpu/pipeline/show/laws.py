"""Several laws of tuples: settings down the side, accuracy across, marginal against joint against
supervised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mdpu.law import Law
from mdpu.methods import load_method
from mdpu.pipeline.evaluate.collect import summarize
from mdpu.pipeline.evaluate.comparison import Trials, welch_interval
from mdpu.pipeline.evaluate.evidence import other_keys
from mdpu.pipeline.files import write_csv
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import draw_panels, entitle, legend_below, literal, size_name
from mdpu.pipeline.report.style import method_style
from mdpu.pipeline.show import FIGURE, Inputs, figure_kind, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = """\
Test accuracy by the law of the tuples, the mean over trials. Orange methods see the members of
tuples by themselves, blue ones the joint law of the members; the black line is training on true
labels. A bar leads from the best orange method to bag-relu. Where there is no orange mark, members
are positive as often as unlabeled images, and no risk of single members exists. Similar pairs at
1/2 do not say which class is which; the better of both is shown. A mark at the left edge lies
beyond it. The settings with the longest bars come first.
"""
REFERENCE = "bag-relu"
COLOURS = {"marginal": "#D55E00", "joint": "#0072B2", "control": "#000000"}
# of the bar from the best orange method to the blue one
BAR: dict[str, Any] = {"color": "#56B4E9", "linewidth": 4, "alpha": 0.5, "solid_capstyle": "butt"}
LEAST = 50.0  # percent; classes that are swapped lie below
SETTING = ["law", "tuple_size", "prior"]


def family(method: str) -> str:
    """Return what a method sees: ``marginal``, ``joint``, or ``control`` for true labels."""
    known = load_method(method)
    if known.control:
        return "control"
    return "marginal" if known.sees == "members" else "joint"


def setting_title(law: str, tuple_size: int, prior: str, usual: str) -> str:
    """Return what a setting is called, with the prior unless it is the `usual` one."""
    kind, *numbers = re.split(r"-(?=\d)", law)
    words = {"at-least": "at least {}", "exactly": "exactly {}", "between": "{} to {}"}
    group = f" of {tuple_size}" if kind in words else f" {size_name(tuple_size).lower()}"
    aside = "" if prior == usual else f", $\\pi_+ = {float(prior):.2g}$"
    return words.get(kind, law).format(*numbers) + group + aside


def law_cells(
    accuracies: pd.DataFrame, laws: Mapping[tuple[str, int], Law], level: float
) -> pd.DataFrame:
    """Return a row per cell, beside what its law, of `laws` by name and tuple size, says.

    The row has the axes of the cell and what `summarize` gives. Where neither law nor prior names
    the classes, accuracy is the better of both names. The t interval of the mean is ``low`` to
    ``high``. ``family`` is the method's. The information of a tuple, ``joint`` and ``marginal``, is
    in nats. ``above`` is `REFERENCE` less the method in points, with Welch's interval. All
    intervals have the `level`.
    """
    cells = summarize(accuracies.assign(accuracy=_named_accuracies(accuracies, laws)))
    cells["valid"] = cells["trials"] - cells["diverged"]
    half = _half_interval(cells, level)
    cells = cells.assign(
        low=cells["mean"] - half, high=cells["mean"] + half, family=cells["method"].map(family)
    )
    joint = []
    marginal = []
    for name, size, prior in cells[SETTING].itertuples(index=False):
        law = laws[name, size]
        joint.append(law.joint_information(float(prior)))
        marginal.append(law.marginal_information(float(prior)))
    cells = cells.assign(joint=joint, marginal=marginal)

    keys = other_keys("method")
    reference_cells = cells.loc[cells["method"] == REFERENCE, [*keys, "mean", "std", "valid"]]
    beside = cells[keys].merge(reference_cells, on=keys, how="left")
    reference = Trials(beside["mean"], beside["std"], beside["valid"])
    ours = Trials(cells["mean"], cells["std"], cells["valid"])
    low, high = welch_interval(reference, ours, level)
    above = beside["mean"] - cells["mean"]
    return cells.drop(columns="valid").assign(above=above, above_low=low, above_high=high)


def _named_accuracies(accuracies: pd.DataFrame, laws: Mapping[tuple[str, int], Law]) -> pd.Series:
    """Return the accuracy of each run, by the better names of the classes where neither law nor
    prior names them.
    """
    is_unnamed = []
    for law, size, prior in accuracies[SETTING].itertuples(index=False, name=None):
        is_unnamed.append(prior == "0.5" and laws[law, size].identifies() == ("mirror", 0.5))
    accuracy = accuracies["accuracy"]
    better = np.maximum(accuracy, 100 - accuracy)
    return accuracy.mask(np.array(is_unnamed), better)


def _half_interval(cells: pd.DataFrame, level: float) -> pd.Series:
    """Return how far the t interval of each cell's mean reaches to a side."""
    from scipy.stats import t

    freedom = (cells["valid"] - 1).clip(lower=1)
    return t.ppf((1 + level) / 2, freedom) * cells["std"] / np.sqrt(cells["valid"])


def laws_figure(cells: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw what `law_cells` returns, a panel per dataset, given titles by name in order."""
    usual = cells["prior"].mode()[0]
    keys = [*SETTING, "dataset"]
    marginal = cells[cells["family"] == "marginal"].groupby(keys)["mean"].max()
    joint = cells[cells["method"] == REFERENCE].set_index(keys)["mean"]
    gains = (joint - marginal).dropna().groupby(SETTING).mean().sort_values(ascending=False)
    settings = dict.fromkeys([*gains.index, *_settings(cells)])
    places = {setting: -place for place, setting in enumerate(settings)}
    labels = []
    for law, size, prior in places:
        labels.append(setting_title(str(law), int(size), str(prior), usual))

    height = 0.9 + 0.21 * len(places)
    figure, axes = draw_panels(1, len(datasets), height, width=7.0, sharey=True)
    for axis, (dataset, title) in zip(axes[0], datasets.items(), strict=True):
        for setting, place in places.items():
            ends = marginal.get((*setting, dataset)), joint.get((*setting, dataset))
            if None not in ends:
                axis.plot(ends, [place, place], **BAR)
        _draw_methods(axis, cells[cells["dataset"] == dataset], places)
        entitle(axis, literal(title), beside=1.4)
        axis.set(xlim=(LEAST, 100), xlabel="Test accuracy (%)", ylim=(0.6 - len(places), 0.6))
        axis.set_yticks(list(places.values()), labels=labels)
        axis.tick_params(axis="y", length=0)
    legend_below(figure)
    return figure


def _settings(cells: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Return the law, tuple size and prior of each cell."""
    return cells[SETTING].itertuples(index=False, name=None)


def _draw_methods(axis: Axes, cells: pd.DataFrame, places: Mapping[tuple[Any, ...], int]) -> None:
    """Draw a mark for each cell of one dataset, at the place of its setting."""
    for method in dict.fromkeys(cells["method"]):
        of_method = cells[cells["method"] == method].dropna(subset="mean")
        axis.plot(
            of_method["mean"].clip(lower=LEAST),
            [places[setting] for setting in _settings(of_method)],
            **_mark(method),
            clip_on=False,
            zorder=3,
            label=load_method(method).title,
        )


def _mark(method: str) -> dict[str, Any]:
    """Return how the mark of a method looks: filled for the joint law, a stroke for a control."""
    sees = family(method)
    colour = COLOURS[sees]
    mark = {"color": colour, "markerfacecolor": "none", "linestyle": "none"}
    if sees == "control":
        return {**mark, "marker": "|", "markersize": 9}
    if sees == "joint":
        mark["markerfacecolor"] = colour
    size = 6 if method == REFERENCE else 4.5
    return {**mark, "marker": method_style(method)["marker"], "markersize": size}


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw the cells of an experiment of this kind, and write them as CSV."""
    laws = {
        (run.law, run.tuple_size): plan.law(run) or Law.dominant(run.tuple_size)
        for run in experiment.runs
    }
    accuracies = reported(plan, experiment, inputs["metrics"])
    cells = law_cells(accuracies, laws, plan.config["comparison"]["level"])
    write_csv(cells, plan.layout.table(experiment.name))
    place = experiment.methods.index
    cells = cells.sort_values("method", key=lambda methods: methods.map(place), kind="stable")
    return laws_figure(cells, plan.titles(experiment.datasets))


KIND = figure_kind(
    draw, CAPTION, files=(*FIGURE, "tables/{name}.csv"), single=("variant", "loss"), laws=True
)
