"""What it costs to choose the epoch, or hyper-parameters, without labels: regret against the best, by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.choice import choose_epochs, choose_settings, summarize_regret
from mdpu.pipeline.experiments import check_base, rows_kind
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import size_name

if TYPE_CHECKING:
    import pandas as pd

WAYS = ("protocol", "bags", "members")
KEYS = {
    "among": {
        "title": "What is chosen: an epoch of each run, or a variant of each trial.",
        "enum": ["epochs", "variants"],
    }
}
EPOCHS = """\
Regret in points: the accuracy of the best epoch minus that of the epoch chosen, on the half of the test images from
which no bag is drawn. The last epochs are the protocol's mean. The other two choices use 2,000 held-out tuples and
2,000 unlabeled images of the other half, and no label: the epoch with the lowest estimated error of bags, or of their
members. A number is the mean over cells and trials; in brackets is the largest of a cell.
"""
VARIANTS = """\
Regret in points: the accuracy with the best hyper-parameters minus that with those chosen, on the half of the test
images from which no bag is drawn; both are means of the last epochs. The protocol's are those of every other table.
The other two choices use 2,000 held-out tuples and 2,000 unlabeled images of the other half, and no label: the
hyper-parameters with the lowest estimated error of bags, or of their members. They are chosen trial by trial. A number
is the mean over cells and trials; in brackets is the largest of a cell. Tried are {tried}.
"""
HEADERS = {
    "epochs": ["Tuples", "Method", "Runs", "Best epoch, %", "Last epochs", "By bags", "By members"],
    "variants": ["Tuples", "Method", "Trials", "Best, %", "By the protocol", "By bags", "By members"],
}


def among(experiment: Experiment) -> str:
    """Return what is chosen: ``epochs`` of a run, or ``variants`` of a trial."""
    return str(experiment.options.get("among", "epochs"))


def caption(experiment: Experiment) -> str:
    """Return what the table shows."""
    if among(experiment) == "epochs":
        return EPOCHS
    return VARIANTS.format(tried=", ".join(dict.fromkeys(run.variant for run in experiment.runs)))


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if variants are chosen among, and the base is missing."""
    if definition.get("options", {}).get("among") == "variants":
        check_base(definition, where)


def regrets(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the regret of each cell."""
    variants = dict.fromkeys(run.variant for run in experiment.runs)
    offsets = {name: plan.protocol.variant(name)["training"]["prior_offset"] for name in variants}
    average = plan.protocol.reporting()["average_last"]
    choose = choose_epochs if among(experiment) == "epochs" else choose_settings
    return summarize_regret(choose(metrics, offsets, average if isinstance(average, int) else 10))


def table_rows(_plan: Plan, experiment: Experiment, cells: pd.DataFrame) -> list[list[str]]:
    """Return a row of strings per tuple size and method, in the experiment's order."""
    rows = []
    for size in sorted({run.tuple_size for run in experiment.runs}):
        for method in dict.fromkeys(run.method for run in experiment.runs):
            group = cells[(cells["tuple_size"] == size) & (cells["method"] == method)]
            if group.empty:
                continue
            trials = group["trials"]
            means = {way: (group[way] * trials).sum() / trials.sum() for way in ("best", *WAYS)}
            regrets = [f"{means[way]:.2f} ({group[way].max():.2f})" for way in WAYS]
            title = load_method(method).title
            rows.append([size_name(size), title, str(int(trials.sum())), f"{means['best']:.2f}", *regrets])
    return rows


KIND = rows_kind(regrets, table_rows, caption, lambda experiment: HEADERS[among(experiment)], keys=KEYS, check=check)
