"""Several laws of tuples: settings down the side, accuracy across, marginal against joint against
supervised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    from scipy.stats import t

    settings = accuracies[SETTING].itertuples(index=False, name=None)
    unnamed = [
        prior == "0.5" and laws[law, size].identifies() == ("mirror", 0.5)
        for law, size, prior in settings
    ]
    accuracy = accuracies["accuracy"]
    cells = summarize(
        accuracies.assign(
            accuracy=accuracy.mask(np.array(unnamed), np.maximum(accuracy, 100 - accuracy))
        )
    )
    cells["valid"] = valid = cells["trials"] - cells["diverged"]
    half = t.ppf((1 + level) / 2, (valid - 1).clip(lower=1)) * cells["std"] / np.sqrt(valid)
    cells = cells.assign(
        low=cells["mean"] - half, high=cells["mean"] + half, family=cells["method"].map(family)
    )
    law_and_prior = [
        (laws[law, size], float(prior))
        for law, size, prior in cells[SETTING].itertuples(index=False)
    ]
    cells["joint"] = [law.joint_information(prior) for law, prior in law_and_prior]
    cells["marginal"] = [law.marginal_information(prior) for law, prior in law_and_prior]
    others = other_keys("method")
    reference_cells = cells[cells["method"] == REFERENCE][[*others, "mean", "std", "valid"]]
    beside = cells[others].merge(reference_cells, on=others, how="left")
    reference = Trials(beside["mean"], beside["std"], beside["valid"])
    low, high = welch_interval(reference, Trials(cells["mean"], cells["std"], valid), level)
    return cells.drop(columns="valid").assign(
        above=beside["mean"] - cells["mean"], above_low=low, above_high=high
    )


def laws_figure(cells: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw what `law_cells` returns, a panel per dataset, given titles by name in order."""
    usual = cells["prior"].mode()[0]
    best = cells[cells["family"] == "marginal"].groupby([*SETTING, "dataset"])["mean"].max()
    joint = cells[cells["method"] == REFERENCE].set_index([*SETTING, "dataset"])["mean"]
    gains = (joint - best).dropna().groupby(SETTING).mean().sort_values(ascending=False)
    settings = dict.fromkeys([*gains.index, *cells[SETTING].itertuples(index=False, name=None)])
    places = {setting: -place for place, setting in enumerate(settings)}
    figure, axes = draw_panels(1, len(datasets), 0.9 + 0.21 * len(places), width=7.0, sharey=True)
    for axis, (dataset, title) in zip(axes[0], datasets.items(), strict=True):
        shown = cells[cells["dataset"] == dataset]
        for setting, place in places.items():
            ends = best.get((*setting, dataset)), joint.get((*setting, dataset))
            if None not in ends:
                axis.plot(
                    ends,
                    [place, place],
                    color="#56B4E9",
                    linewidth=4,
                    alpha=0.5,
                    solid_capstyle="butt",
                )
        for method in dict.fromkeys(shown["method"]):
            of = family(method)
            seen = shown[shown["method"] == method].dropna(subset="mean")
            heights = [
                places[setting] for setting in seen[SETTING].itertuples(index=False, name=None)
            ]
            look: dict[str, Any] = {
                "color": COLOURS[of],
                "markerfacecolor": COLOURS[of] if of == "joint" else "none",
            }
            look |= {"marker": "|" if of == "control" else method_style(method)["marker"]}
            look |= {
                "markersize": 9 if of == "control" else 6 if method == REFERENCE else 4.5,
                "linestyle": "none",
            }
            label = load_method(method).title
            axis.plot(
                seen["mean"].clip(lower=LEAST),
                heights,
                **look,
                clip_on=False,
                zorder=3,
                label=label,
            )
        entitle(axis, literal(title), beside=1.4)
        axis.set(xlim=(LEAST, 100), xlabel="Test accuracy (%)", ylim=(0.6 - len(places), 0.6))
        labels = [
            setting_title(str(law), int(size), str(prior), usual) for law, size, prior in places
        ]
        axis.set_yticks(list(places.values()), labels=labels)
        axis.tick_params(axis="y", length=0)
    legend_below(figure)
    return figure


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw the cells of an experiment of this kind, and write them as CSV."""
    laws = {
        (run.law, run.tuple_size): plan.law(run) or Law.dominant(run.tuple_size)
        for run in experiment.runs
    }
    cells = law_cells(
        reported(plan, experiment, inputs["metrics"]), laws, plan.config["comparison"]["level"]
    )
    write_csv(cells, plan.layout.table(experiment.name))
    place = experiment.methods.index
    cells = cells.sort_values("method", key=lambda methods: methods.map(place), kind="stable")
    return laws_figure(cells, plan.titles(experiment.datasets))


KIND = figure_kind(
    draw, CAPTION, files=(*FIGURE, "tables/{name}.csv"), single=("variant", "loss"), laws=True
)
