"""A study of the choices that the paper leaves open: how much each alternative to the protocol changes each method.

Its figure and its tables show the same runs; `mdpu.pipeline.evaluate.sensitivity` computes the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from mdpu.learn.methods import load_method
from mdpu.pipeline.config import known
from mdpu.pipeline.evaluate.collect import read_histories
from mdpu.pipeline.evaluate.sensitivity import (
    ALTERNATIVE,
    JOINT_KEY,
    PANEL,
    SCOPE_KEY,
    SIDES_KEY,
    effects,
    paired_differences,
    published_panels,
    summarize_differences,
)
from mdpu.pipeline.experiments import FIGURE, Kind, check_base
from mdpu.pipeline.files import read_csv, write_csv
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import (
    LETTER,
    PAGE,
    draw_panels,
    entitle,
    legend_below,
    literal,
    save_figure,
    size_name,
)
from mdpu.pipeline.report.sections import figure_section
from mdpu.pipeline.report.style import method_style
from mdpu.pipeline.report.tables import write_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CAPTION = """\
Change of test accuracy, in points, when one choice that the paper leaves open differs from the protocol. A grey row
names the choice and, in brackets, the protocol's value. A large marker is the mean of the paired differences over
trials (same seed, and the same tuples unless the alternative draws its own). Its bar is one standard deviation to each
side, and a small marker is one trial. A vertical line is the paper's accuracy minus that of the protocol as it stands:
where an alternative's marker meets its method's line, the alternative gives the paper's number.
"""
LINEAR = 10.0  # points; where differences go beyond twice this, the axis is logarithmic outside of it
ROW_HEIGHT, LINE_HEIGHT = 0.135, 0.14  # inches, of a row and of a line of a title
CROWD = 8  # methods; where there are more, rows are as much higher
PANELS = 4  # side by side; where there are more, each dataset has a row
NONE = "–"
WORDS = ["Panel", "Key", "Protocol", "Alternative"]  # heads of what names a row of the table


class Choice(NamedTuple):
    """What readers call a key of the protocol, what the paper says of it (docs/explanation/protocol.md), its values."""

    title: str
    says: str = ""
    values: Mapping[str, str] = {}


POOLS = {"pool": "new draws", "remainder": "what the tuples left", "put-back": "that and the members"}
YES_NO = {"true": "yes", "false": "no"}
OPTIMIZERS = {"adam": "Adam (L2)", "adamw": "AdamW (decoupled)"}
AVERAGES = {"1": "the last", "all": "mean of all", "best": "best on test"}
STEMS = {"cifar": "3x3, stride 1", "imagenet": "7x7, stride 2"}
SCOPES = {"class": "each class", "part": "tuple and unlabeled part", "whole": "whole risk"}
# In the order of figure and tables.
CHOICES = {
    "n_counts": Choice("What n counts", "“number of training samples”; Fig. 4: “training sample group sizes”"),
    "n_unlabeled": Choice("Unlabeled images", "nothing"),
    "unlabeled": Choice("Unlabeled images are", values=POOLS),
    "replacement": Choice("Drawn with replacement", "nothing; Lemmas 5 and 6 are of independent draws", YES_NO),
    "overlap": Choice("Tuples and unlabeled share images", "nothing", YES_NO),
    "hidden": Choice("Hidden layers", "“a 300-unit three-layer perceptron”"),
    "batch_counts": Choice("What a batch counts", "batch size 3,000 (grey images), 256 (colour)"),
    "batch_size": Choice("Batch size"),
    "optimizer": Choice("Weight decay in", "nothing", OPTIMIZERS),
    "learning_rate": Choice("Learning rate", "chosen from {2e-5, 4e-5, 1e-3, 2e-3}; it does not say how, nor which"),
    "weight_decay": Choice("Weight decay", "chosen from {5e-4, 6e-4, 7e-4, 2e-3}"),
    "hyperparameters": Choice("Rate and decay", "“systematically determined for each dataset”"),
    "epochs": Choice("Epochs"),
    "precision": Choice("Precision"),
    "stem": Choice("Stem of the ResNet", "“ResNet-34 for color datasets”", STEMS),
    "prior_offset": Choice("Error of the told prior"),
    SCOPE_KEY: Choice(
        "Scope of the correction", "the whole risk (Eqs. 15, 16); partial risks in the proof of Theorem 3", SCOPES
    ),
    "average_last": Choice(
        "Epochs reported", "“averaged over 100 training epochs and three independent experimental trials”", AVERAGES
    ),
    "test_prior": Choice("Prior of the test set", "nothing; CIFAR-10 (0.60) and SVHN (0.61) are unbalanced"),
    SIDES_KEY: Choice("Class sides", "contradict the numbers for two EMNIST sets"),
    JOINT_KEY: Choice("Several at once"),
}


def choice(key: str) -> Choice:
    """Return what is said of a key of the protocol."""
    return CHOICES.get(key, Choice(key.replace("_", " ")))


def value_title(key: str, value: str, datasets: Mapping[str, str]) -> str:
    """Return what readers call a value of a key; `datasets` has titles by name."""
    if value in choice(key).values:
        return choice(key).values[value]
    if key == "average_last":
        return f"mean of the last {value}"
    if key == "hidden":
        return value.strip("[]").replace(", ", "-")
    return datasets.get(value, value) if key == SIDES_KEY else value


def ordered(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return the alternatives (key, base, value) of a table, in the order of `CHOICES`."""
    order = {key: position for position, key in enumerate(CHOICES)}
    alternatives = dict.fromkeys(table[list(ALTERNATIVE)].itertuples(index=False, name=None))
    return sorted(alternatives, key=lambda alternative: order.get(alternative[0], len(order)))


Number = tuple[str, str | None]  # as it is shown, and the name of its cell


def table_rows(summary: pd.DataFrame, datasets: Mapping[str, str]) -> list[tuple[list[str], list[Number]]]:
    """Return the rows of the table of paired differences: four words, and a number per method.

    A panel and a key are named where they begin. Each panel begins with base's accuracies.
    """
    methods = list(dict.fromkeys(summary["method"]))
    rows = []
    for key_of_panel, panel in summary.groupby(list(PANEL), sort=False):
        dataset, size, n, prior = cast("tuple[str, int, int, str]", key_of_panel)
        title = f"{datasets[dataset]}, {size_name(size).lower()}, prior {prior}, n = {n:,}"
        own = panel.drop_duplicates("method")
        rows.append(
            (
                [title, "Accuracy of the protocol as it stands", "", ""],
                _numbers(own, methods, lambda cell: f"{cell['base_mean']:.2f} %", "base_cell"),
            )
        )
        previous = None
        for alternative in ordered(panel):
            key, base, value = alternative
            named = [choice(key).title, value_title(key, base, datasets)] if key != previous else ["", ""]
            chosen = panel[(panel[list(ALTERNATIVE)] == list(alternative)).all(axis=1)]
            numbers = _numbers(chosen, methods, _difference, "cell")
            rows.append((["", *named, value_title(key, value, datasets)], numbers))
            previous = key if key != JOINT_KEY else None
    return rows


def _numbers(
    cells: pd.DataFrame, methods: Sequence[str], show: Callable[[Mapping[Any, Any]], str], named: str
) -> list[Number]:
    """Return the number of each method, with the name of its cell in the column `named`."""
    by_method = cells.set_index("method").to_dict("index")
    return [(show(cell), cell[named]) if (cell := by_method.get(method)) else (NONE, None) for method in methods]


def _difference(cell: Mapping[Any, Any]) -> str:
    """Return a difference with its deviation over trials."""
    if math.isnan(cell["difference"]):
        return "diverged"
    spread = "" if math.isnan(cell["std"]) else f" ± {cell['std']:.2f}"
    note = f" ({cell['diverged']} diverged)" if cell["diverged"] else ""
    return f"{cell['difference']:+.2f}{spread}{note}"


def header(summary: pd.DataFrame) -> list[str]:
    """Return the heads of the table's columns."""
    return [*WORDS, *(load_method(method).title for method in dict.fromkeys(summary["method"]))]


def choice_rows(summary: pd.DataFrame, datasets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return `effects` in the order of `CHOICES`, with what the paper ``says`` and what was ``chosen``."""
    by_key: dict[str, dict[Any, Any]] = {row["key"]: row for row in effects(summary).to_dict("records")}
    return [
        {
            **by_key[key],
            "title": choice(key).title,
            "says": choice(key).says,
            "chosen": "" if key == JOINT_KEY else value_title(key, by_key[key]["base"], datasets),
        }
        for key in dict.fromkeys(key for key, _, _ in ordered(summary))
        if key in by_key
    ]


def sensitivity_figure(differences: pd.DataFrame, published: pd.DataFrame, datasets: Mapping[str, str]) -> Figure:
    """Draw the change of accuracy against the protocol as it stands: a dot plot, one row per alternative.

    A panel per dataset, tuple size, n and prior. A large marker is the mean over trials, its bar one standard deviation
    to each side, a small marker one trial; a vertical line is the paper's accuracy minus that of the protocol.
    """
    rows = _rows(differences, datasets)
    panels = list(dict.fromkeys(differences[list(PANEL)].itertuples(index=False, name=None)))
    names = dict.fromkeys(panel[0] for panel in panels)
    lines = [[p for p in panels if p[0] == name] for name in names] if len(panels) > PANELS else [panels]
    # A page wide even if there is one panel, for the names of the rows.
    methods = list(dict.fromkeys(differences["method"]))
    height = 0.7 + ROW_HEIGHT * max(4, len(rows) * max(1, len(methods) / CROWD))
    figure, axes = draw_panels(len(lines), max(1, *map(len, lines)), height, PAGE, sharey=True)
    beside = 0.2 + 1.15 * LETTER * max((len(label) for label, _ in rows), default=0)  # bold letters are wider
    for line, across in zip(lines, axes, strict=True):
        for axis in across[len(line) :]:
            axis.set_visible(False)
        for panel, axis in zip(line, across, strict=False):
            shown = differences[(differences[list(PANEL)] == list(panel)).all(axis=1)]
            targets = published[(published[list(PANEL)] == list(panel)).all(axis=1)].set_index("method")
            _draw_panel(axis, rows, shown, targets["published_mean"], methods)
            dataset, size, n, prior = panel
            words = literal(datasets[dataset]), size_name(size).lower(), f"$\\pi_+ = {prior}$", f"$n$ = {n:,}"
            entitle(axis, *words, beside=beside)
    tall = max(axis.get_title().count("\n") for axis in axes.flat) - 1  # lines that the height has no room for
    figure.set_figheight(figure.get_figheight() + LINE_HEIGHT * max(0, tall) * len(lines))
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


Row = tuple[str, tuple[str, str, str] | None]


def _rows(differences: pd.DataFrame, datasets: Mapping[str, str]) -> list[Row]:
    """Return the label of each row and its alternative; None for one that names a key."""
    rows: list[Row] = []
    previous = None
    for alternative in ordered(differences):
        key, base, value = alternative
        if key != previous:
            protocol_value = f" ({value_title(key, base, datasets)})" if key not in (JOINT_KEY, SIDES_KEY) else ""
            rows.append((f"{choice(key).title}{protocol_value}", None))
        rows.append((value_title(key, value, datasets), alternative))
        previous = key
    return rows


def _draw_panel(axis: Any, rows: list[Row], shown: pd.DataFrame, published: pd.Series, methods: list[str]) -> None:
    """Draw one panel: `published` are the paper's accuracies by method."""
    for place, method in enumerate(methods):
        style, title = method_style(method), load_method(method).title
        marker = {"color": style["color"], "marker": style["marker"] or "x", "linestyle": ""}  # controls have none
        own = shown[shown["method"] == method]
        offset = 0.6 * ((place + 0.5) / len(methods) - 0.5)
        by_alternative = dict(list(own.groupby(list(ALTERNATIVE), sort=False)["difference"]))
        for position, (_, alternative) in enumerate(rows):
            trials = by_alternative.get(alternative) if alternative else None
            if trials is None or trials.notna().sum() == 0:
                continue
            small = {**marker, "markersize": 1.8, "markeredgewidth": 0, "alpha": 0.5}
            axis.plot(trials, [position + offset] * len(trials), **small)
            spread = trials.std() if trials.notna().sum() > 1 else 0.0
            axis.errorbar(trials.mean(), position + offset, xerr=spread, **marker, elinewidth=0.8, capsize=0)
        axis.plot([], [], **marker, label=title)
        if method in published.index and len(own):
            line = {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 0.9, "alpha": 0.8}
            axis.axvline(published[method] - own["base_accuracy"].mean(), **line, label=f"{title} in the paper")
    axis.axvline(0, color="0.2", linewidth=0.9)
    if shown["difference"].abs().max() > 2 * LINEAR:
        axis.set_xscale("symlog", linthresh=LINEAR)
        axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("Change (points)")
    for position, (_, alternative) in enumerate(rows):
        if alternative is None:
            axis.axhspan(position - 0.5, position + 0.5, color="0.94", linewidth=0, zorder=0)


def check(definition: Mapping[str, Any], config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if a reporting is unknown, or base is missing."""
    for reporting in definition.get("options", {}).get("reporting", []):
        known(reporting, config["definitions"].get("reportings", {}), f"{where}.options.reporting")
    check_base(definition, where)


def make(plan: Plan, experiment: Experiment) -> None:
    """Draw the study, and write the differences as CSV and LaTeX."""
    differences = paired_differences(plan, experiment, read_histories(experiment.runs, plan.layout.metrics))
    summary = summarize_differences(differences, plan.config["comparison"]["level"])
    datasets = plan.titles(run.dataset for run in experiment.runs)
    out = plan.layout.results / "sensitivity" / f"{experiment.name}.csv"
    write_csv(summary, out)
    shown = table_rows(summary, datasets)
    rows = [[*words, *(text.removesuffix(" %") for text, _ in numbers)] for words, numbers in shown]
    write_rows(out, experiment.title, CAPTION, header(summary), len(WORDS), rows)
    figure = sensitivity_figure(differences, published_panels(plan, experiment), datasets)
    save_figure(figure, plan.layout.figure(experiment.name))


def section(plan: Plan, experiment: Experiment) -> dict[str, Any]:
    """Return a study for the template: its figure and its tables."""
    titles = plan.titles(plan.config["definitions"]["datasets"])
    summary = read_csv(plan.layout.results / "sensitivity" / f"{experiment.name}.csv")
    return {
        **figure_section(plan, experiment, CAPTION),
        "template": "sections/sensitivity.html.j2",
        "choices": choice_rows(summary, titles),
        "header": header(summary),
        "rows": [{"words": words, "numbers": numbers} for words, numbers in table_rows(summary, titles)],
        "level": f"{100 * plan.config['comparison']['level']:g} %",
    }


KIND = Kind(
    make=make,
    section=section,
    reads=("metrics",),
    files=(*FIGURE, "sensitivity/{name}.csv", "sensitivity/{name}.tex"),
    single=("n", "loss"),
    keys={
        "reporting": {
            "title": "Reportings that it compares, of definitions.reportings.",
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "string"},
        }
    },
    check=check,
)
