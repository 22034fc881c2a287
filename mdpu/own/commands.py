"""From a user's own files to a classifier, and from new rows to answers.

``python -m mdpu fit`` and ``predict`` call this; ``docs/how-to/from-files.md`` shows them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.errors import UserError
from mdpu.own.account import Account, Column, few
from mdpu.own.columns import RESERVED, TableEncoder
from mdpu.own.doubts import doubts_of
from mdpu.own.findings import Study
from mdpu.own.groups import (
    GroupData,
    Source,
    make_reading,
    read_groups,
    read_rows,
    with_rule,
)
from mdpu.own.rules import Rule
from mdpu.own.study import study_groups, user_warnings
from mdpu.own.tables import suggest
from mdpu.pipeline.files import read_json, write_csv, write_json, write_table
from mdpu.saving import load, save

CLASSIFIER = "classifier.skops"
ROWS = "rows.json"  # how the rows of the training looked


def fit_groups(
    source: Any,
    out: Path,
    group: str | Sequence[str],
    drop: Sequence[str],
    options: dict[str, Any],
    **parameters: Any,
) -> Study:
    """Write a classifier and its groups, ranked, to a folder; return what is known of it.

    `source`, `group` and `options` are the arguments of `read_groups`, `parameters` those of
    `MDPUClassifier` and ``positive_by`` of `TupleClassifier`; `drop` names columns to leave out.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; name a folder")
    data = read_groups(source, group, drop=drop, **options)
    rule = replace(data.rule or Rule(), dominant=parameters.pop("dominant", "positive"))
    data = with_columns(with_rule(data, rule), drop)
    print(data.account, data.report, sep="\n", file=sys.stderr)

    study = study_groups(data, drop, **parameters)
    for text in [*study.warned, *(doubt.text for doubt in doubts_of(study))]:
        print(f"warning: {text}", file=sys.stderr)

    out.mkdir(parents=True, exist_ok=True)
    save(study.estimator, out / CLASSIFIER)
    write_json(out / ROWS, _rows_of_training(study))
    write_csv(_ranked(study), out / "groups.csv")
    return study


def _rows_of_training(study: Study) -> dict[str, Any]:
    """Return what has to be known of the rows of the training to read new ones."""
    rows = study.data.rows
    described = {"shape": rows.shape[1:]}
    if isinstance(rows, pd.DataFrame):
        encoder = study.estimator[0]
        described = {"columns": [*encoder.kinds_], "text": encoder.categories()}
    return {**described, "rule": str(study.rule)}


def _ranked(study: Study) -> pd.DataFrame:
    """Return the groups by name, the most suspicious first; those of a table with the line of their
    first row.
    """
    data = study.data
    ranked = study.suspicion.tuples.rename(columns={"tuple": "group"})
    places = ranked["group"].to_numpy()
    ranked["group"] = [data.names[place] for place in places]
    if isinstance(data.rows, pd.DataFrame):
        firsts = np.unique(data.groups, return_index=True)[1][-len(data.names) :]
        ranked["line"] = data.lines[firsts][places]
    return ranked


def with_columns(data: GroupData, drop: Sequence[str]) -> GroupData:
    """Return data whose account says which columns training uses and leaves out, and why."""
    if not isinstance(data.rows, pd.DataFrame):
        return data
    names = [column for column in data.account.columns if column.kind in ("group", "count")]
    encoder = TableEncoder(drop).fit(data.rows)
    return replace(data, account=replace(data.account, columns=names + encoder.columns()))


def predict_rows(model: Path, source: Any, out: Path, options: dict[str, Any]) -> None:
    """Write new rows with their answers, -1 or +1, and probabilities of +1, as CSV or Parquet.

    For pictures and arrays, file names and places stand for the rows.
    """
    if not (model / ROWS).exists():
        raise UserError(f"{model} is not a folder that fit wrote")
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(
            f"{out} is neither a .csv nor a .parquet file; answers are written as one of these"
        )
    trained = read_json(model / ROWS)
    classifier = load(model / CLASSIFIER)
    read = _read_new_rows(source, trained, options)
    rows, answers, account = _in_columns_of_training(source, read, trained)
    print(account, file=sys.stderr)
    if "rule" in trained:
        rule = trained["rule"]
        print(f"the classifier learned from groups by this rule: {rule}", file=sys.stderr)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answers = answers.assign(
            answer=classifier.predict(rows),
            probability=classifier.predict_proba(rows)[:, 1].round(9),
        )
    for text in dict.fromkeys(user_warnings(caught)):
        print(f"warning: {text}", file=sys.stderr)
    _write_answers(answers, out)
    print(f"{len(answers)} answers are in {out}", file=sys.stderr)


def _read_new_rows(source: Any, trained: dict[str, Any], options: dict[str, Any]) -> Source:
    """Return what a source of new rows holds, read as the rows of the training were."""
    of_pictures: dict[str, Any] = {}
    reading = dict(options)
    for name in ("table", "file"):
        if name in reading:
            of_pictures[name] = reading.pop(name)
    shape = trained.get("shape", ())
    if len(shape) > 1:  # pictures (H, W), or (H, W, 3)
        of_pictures["size"] = shape[:2]
        of_pictures["mode"] = "RGB" if len(shape) == 3 else "L"
    read = read_rows(
        source,
        **of_pictures,
        needed=trained.get("columns", []),
        text=trained.get("text", ()),
        reading=make_reading(reading),
    )
    if not len(read.rows) or isinstance(read.rows, pd.DataFrame) != ("columns" in trained):
        raise UserError(
            f"{source} has no rows, or not those of the training: a table for pictures, or the "
            "reverse"
        )
    return read


def _in_columns_of_training(
    source: Any, read: Source, trained: dict[str, Any]
) -> tuple[Any, pd.DataFrame, Account]:
    """Return rows as the classifier takes them, the table that answers are added to, and the
    account.
    """
    if read.raw is not None:
        needed = trained["columns"]
        _check_columns(source, [*map(str, read.rows)], needed)
        columns = [_used(column, needed) for column in read.account.columns]
        return read.rows[needed], read.raw, replace(read.account, columns=columns)

    answers: dict[str, Any] = {"row": range(len(read.rows))}
    if read.files is not None:
        answers = {"file": [os.path.relpath(path, source) for path in read.files]}
    return read.rows, pd.DataFrame(answers), read.account


def _write_answers(answers: pd.DataFrame, out: Path) -> None:
    """Write a table; columns of several types become text, which Parquet needs."""
    if out.suffix == ".csv":
        write_csv(answers, out, digits=15)
        return
    mixed = [name for name, column in answers.items() if len({*map(type, column.dropna())}) > 1]
    write_table(answers.astype(dict.fromkeys(mixed, str)), out)


def _check_columns(source: Any, names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise `UserError` unless new rows have the columns of the training, and none that answers
    get.
    """
    lacking = [name for name in needed if name not in names]
    if lacking:
        hint = suggest(lacking[0], names)
        raise UserError(
            f"{source} lacks the columns {few(lacking)}, which the classifier was trained on{hint}"
        )
    if {*RESERVED} & {*names}:
        raise UserError(
            f"{source} has a column answer or probability; rename it, because answers get these "
            "names"
        )


def _used(column: Column, needed: Sequence[str]) -> Column:
    """Return a column of new rows, which is used if the classifier was trained on it."""
    if column.name in needed:
        return column
    return replace(column, used=False, reason="the classifier was not trained on it", remedy="")
