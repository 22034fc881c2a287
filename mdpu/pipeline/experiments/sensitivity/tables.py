"""What a sensitivity study says, in words and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.sensitivity import ALTERNATIVE, JOINT_KEY, PANEL, SCOPE_KEY, SIDES_KEY, effects
from mdpu.pipeline.report.drawing import size_name

Cell = Mapping[Any, Any]  # a row of the summary

# In the order of figure and tables.
KEY_TITLES = {
    "n_counts": "What n counts",
    "n_unlabeled": "Unlabeled images",
    "replacement": "Drawn with replacement",
    "overlap": "Tuples and unlabeled share images",
    "hidden": "Hidden layers",
    "batch_counts": "What a batch counts",
    "batch_size": "Batch size",
    "optimizer": "Weight decay in",
    "learning_rate": "Learning rate",
    "weight_decay": "Weight decay",
    "hyperparameters": "Rate and decay",
    "epochs": "Epochs",
    "precision": "Precision",
    "stem": "Stem of the ResNet",
    "prior_offset": "Error of the told prior",
    SCOPE_KEY: "Scope of the correction",
    "average_last": "Epochs reported",
    "test_prior": "Prior of the test set",
    SIDES_KEY: "Class sides",
    JOINT_KEY: "Several at once",
}
# What the paper says of a choice, as docs/explanation/protocol.md gives it.
PAPER_SAYS = {
    "n_counts": "“number of training samples”; Fig. 4: “training sample group sizes”",
    "n_unlabeled": "nothing",
    "replacement": "nothing; Lemmas 5 and 6 are of independent draws",
    "overlap": "nothing",
    "hidden": "“a 300-unit three-layer perceptron”",
    "batch_counts": "batch size 3,000 (grey images), 256 (colour)",
    "optimizer": "nothing",
    "learning_rate": "chosen from {2e-5, 4e-5, 1e-3, 2e-3}; it does not say how, nor which",
    "weight_decay": "chosen from {5e-4, 6e-4, 7e-4, 2e-3}",
    "stem": "“ResNet-34 for color datasets”",
    "hyperparameters": "“systematically determined for each dataset”",
    SCOPE_KEY: "the whole risk (Eqs. 15, 16); partial risks in the proof of Theorem 3",
    "average_last": "“averaged over 100 training epochs and three independent experimental trials”",
    "test_prior": "nothing; CIFAR-10 (0.60) and SVHN (0.61) are unbalanced",
    SIDES_KEY: "contradict the numbers for two EMNIST sets",
}
_VALUES = {
    ("replacement", "true"): "yes",
    ("replacement", "false"): "no",
    ("overlap", "true"): "yes",
    ("overlap", "false"): "no",
    ("optimizer", "adam"): "Adam (L2)",
    ("optimizer", "adamw"): "AdamW (decoupled)",
    ("average_last", "1"): "the last",
    ("average_last", "all"): "mean of all",
    ("average_last", "best"): "best on test",
    ("stem", "cifar"): "3x3, stride 1",
    ("stem", "imagenet"): "7x7, stride 2",
    (SCOPE_KEY, "class"): "each class",
    (SCOPE_KEY, "part"): "tuple and unlabeled part",
    (SCOPE_KEY, "whole"): "whole risk",
}


def key_title(key: str) -> str:
    """Return what readers call a key of the protocol."""
    return KEY_TITLES.get(key, key.replace("_", " "))


def value_title(key: str, value: str, datasets: Mapping[str, str]) -> str:
    """Return what readers call a value of a key; `datasets` has titles by name."""
    if (key, value) in _VALUES:
        return _VALUES[key, value]
    if key == "average_last":
        return f"mean of the last {value}"
    if key == "hidden":
        return value.strip("[]").replace(", ", "-")
    if key == SIDES_KEY:
        return datasets.get(value, value)
    return value


def ordered(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return the alternatives (key, base, value) of a table, in the order of `KEY_TITLES`."""
    order = {key: position for position, key in enumerate(KEY_TITLES)}
    alternatives = list(dict.fromkeys(table[list(ALTERNATIVE)].itertuples(index=False, name=None)))
    return sorted(alternatives, key=lambda alternative: order.get(alternative[0], len(order)))


def panels(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the panels (dataset, tuple size, n, prior) of a table in order."""
    return list(dict.fromkeys(table[list(PANEL)].itertuples(index=False, name=None)))


def panel_title(panel: Sequence[Any], datasets: Mapping[str, str]) -> str:
    """Return dataset, kind of tuples, prior and n of a panel."""
    dataset, size, n, prior = panel
    return f"{datasets[dataset]}, {size_name(size).lower()}, prior {prior}, n = {n:,}"


def sensitivity_rows(summary: pd.DataFrame, datasets: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the table of paired differences.

    Parameters
    ----------
    summary : DataFrame
        As `mdpu.pipeline.evaluate.sensitivity.summarize_differences` returns it.
    datasets : mapping
        Titles by name.

    Returns
    -------
    header : list of str
    rows : list of list of str
        Panel, key, base's value, alternative, and per method the mean difference ± its deviation in points;
        a panel and a key are named where they begin. Each panel begins with base's accuracies.
    """
    rows = []
    for panel, alternative, cells in _layout(summary):
        if alternative is None:
            title = panel_title(panel, datasets)
            rows.append([title, "Accuracy of the protocol as it stands", "", "", *map(_accuracy, cells)])
            previous = None
        else:
            key, base, value = alternative
            named = [key_title(key), value_title(key, base, datasets)] if key != previous else ["", ""]
            rows.append(["", *named, value_title(key, value, datasets), *map(_difference, cells)])
            previous = key if key != JOINT_KEY else None
    methods = [load_method(method).title for method in _methods(summary)]
    return ["Panel", "Key", "Protocol", "Alternative", *methods], rows


def sensitivity_cells(summary: pd.DataFrame) -> list[list[str | None]]:
    """Return, for each row of `sensitivity_rows` and each method, the name of the cell that the number is of."""
    return [
        [None if cell is None else str(cell["base_cell" if alternative is None else "cell"]) for cell in cells]
        for _, alternative, cells in _layout(summary)
    ]


def _methods(summary: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(summary["method"]))


def _layout(
    summary: pd.DataFrame,
) -> Iterator[tuple[tuple[Any, ...], tuple[str, str, str] | None, list[Cell | None]]]:
    """Yield the table's rows: the panel, the alternative (None where base's accuracies stand), a cell per method."""
    methods = _methods(summary)
    cells = {tuple(cell[key] for key in (*ALTERNATIVE, *PANEL, "method")): cell for cell in summary.to_dict("records")}
    for panel in panels(summary):
        panel_cells = summary[(summary[list(PANEL)] == list(panel)).all(axis=1)]
        bases = {cell["method"]: cell for cell in panel_cells.drop_duplicates("method").to_dict("records")}
        yield panel, None, [bases.get(method) for method in methods]
        for alternative in ordered(panel_cells):
            yield panel, alternative, [cells.get((*alternative, *panel, method)) for method in methods]


NONE = "–"


def _accuracy(cell: Cell | None) -> str:
    return NONE if cell is None else f"{cell['base_mean']:.2f} %"


def _difference(cell: Cell | None) -> str:
    if cell is None:
        return NONE
    if math.isnan(cell["difference"]):
        return "diverged"
    spread = "" if math.isnan(cell["std"]) else f" ± {cell['std']:.2f}"
    note = f" ({cell['diverged']} diverged)" if cell["diverged"] else ""
    return f"{cell['difference']:+.2f}{spread}{note}"


def choice_rows(summary: pd.DataFrame, datasets: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what the report says of each open choice.

    Parameters
    ----------
    summary : DataFrame
        As `mdpu.pipeline.evaluate.sensitivity.summarize_differences` returns it.
    datasets : mapping
        Titles by name.

    Returns
    -------
    list of dict
        Rows of `mdpu.pipeline.evaluate.sensitivity.effects` in the order of `KEY_TITLES`, each with ``title``, what the
        paper ``says`` (empty for several choices at once), and what was ``chosen``.
    """
    rows: list[dict[Any, Any]] = effects(summary).to_dict("records")
    by_key = {row["key"]: row for row in rows}
    order = list(dict.fromkeys(key for key, _, _ in ordered(summary)))
    return [
        {
            **by_key[key],
            "title": key_title(key),
            "says": PAPER_SAYS.get(key, ""),
            "chosen": "" if key == JOINT_KEY else value_title(key, by_key[key]["base"], datasets),
        }
        for key in order
        if key in by_key
    ]
