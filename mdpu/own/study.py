"""A classifier from a user's own files, what is known of it without labels, and predictions for new rows.

``python -m mdpu fit`` and ``predict`` call this; ``docs/how-to/from-files.md`` shows them. All numbers about a
classifier come from folds of whole groups: each row is scored by a model that has seen neither it nor its group, unless
the row stands in another group, too.
"""

from __future__ import annotations

import copy
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.inspection import permutation_importance
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from mdpu import scores
from mdpu.data import UNLABELED, Indices, sample_of
from mdpu.errors import UserError, printable
from mdpu.estimator import MDPUClassifier
from mdpu.own.groups import GroupData, as_numbers, read_groups, read_rows
from mdpu.pipeline.files import progress, read_json, write_csv, write_json, write_table
from mdpu.prior import without_repeats
from mdpu.saving import load, save

FOLDS = 5
PARTS = (8, 4, 2, 1)  # of the groups in training, the learning curve has an eighth, a quarter, a half, and all
LEAST = 20  # groups in such a part
KINDS = {"min_frequency": 10, "max_categories": 30}  # categories of a column of text; all others count as one
NAMES = 0.5  # share of different values in a column of text, from which on it names rows
SCORED = 1000  # columns times folds whose importance is measured, at most


@dataclass(frozen=True)
class Study:
    """A classifier, or the pipeline that ends in it, and what is known of it without labels.

    `importance` says by how much the AUC falls where a column's values are exchanged between rows: ``loss``, the mean
    over folds, ``low`` and ``high``, the least and the largest. For pictures it is empty.
    """

    data: GroupData  # as it was learned from: repeated unlabeled rows stand once
    left_out: list[str]  # columns
    estimator: Any
    classifier: Any  # the last step of the estimator
    held_out: NDArray[np.float64]  # scores (N,) of the rows by models that have not seen them
    warned: list[str]
    curve: list[tuple[int, scores.Estimate]]  # error rates by the number of groups in training
    measures: dict[str, scores.Estimate]
    calibration: pd.DataFrame
    importance: pd.DataFrame
    suspicion: scores.Suspicion

    @property
    def error(self) -> scores.Estimate:
        """The error rate."""
        return self.curve[-1][1]


def fit_groups(
    source: Any, out: Path, group: str, drop: Sequence[str], files: dict[str, Any], **parameters: Any
) -> Study:
    """Write a classifier and its groups, ranked, to a folder; return what is known of it.

    `source`, `group` and `files` are the arguments of `read_groups`, `parameters` those of `MDPUClassifier`; `drop`
    names columns to leave out.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; name a folder")
    data = read_groups(source, group, **files)
    print(data.report, file=sys.stderr)
    study = study_groups(data, drop, **parameters)
    if study.left_out:
        print(f"left out: {', '.join(study.left_out)}", file=sys.stderr)
    for text in study.warned:
        print(f"warning: {text}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    save(study.estimator, out / "classifier.skops")
    rows, ranked = study.data.rows, study.suspicion.tuples
    held = {"shape": rows.shape[1:]}
    if isinstance(rows, pd.DataFrame):
        held = {"columns": [*rows], "text": [*rows.select_dtypes(exclude=["number", "bool"])]}
    write_json(out / "rows.json", held)
    ranked = ranked.assign(tuple=[data.names[place] for place in ranked["tuple"]]).rename(columns={"tuple": "group"})
    write_csv(ranked, out / "groups.csv")
    return study


def predict_rows(model: Path, source: Any, out: Path, files: dict[str, Any]) -> None:
    """Write new rows with their answers, -1 or +1, and probabilities of +1, as CSV or Parquet.

    For pictures and arrays, file names and places stand for the rows.
    """
    if not (model / "rows.json").exists():
        raise UserError(f"{model} is not a folder that fit wrote")
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(f"{out} is neither a .csv nor a .parquet file; answers are written as one of these")
    held, classifier = read_json(model / "rows.json"), load(model / "classifier.skops")
    shape = held.get("shape", ())
    size, mode = (shape[:2], "RGB" if len(shape) == 3 else "L") if len(shape) > 1 else (None, None)
    rows, _, paths = read_rows(source, **files, size=size, mode=mode, text=held.get("text", ()))
    if not len(rows) or isinstance(rows, pd.DataFrame) != ("columns" in held):
        raise UserError(f"{source} has no rows, or not those of the training: a table for pictures, or the reverse")
    shown = pd.DataFrame({"row": range(len(rows))})
    if paths is not None:
        shown = pd.DataFrame({"file": [os.path.relpath(own, source) for own in paths]})
    if columns := held.get("columns"):
        if lacking := [name for name in columns if name not in rows]:
            raise UserError(f"{source} lacks the columns {', '.join(lacking)}, which the classifier was trained on")
        if {"answer", "probability"} & {*rows}:
            raise UserError(f"{source} has a column answer or probability; rename it, because answers get these names")
        shown, rows = rows, _plain(rows[columns], held["text"])
        if str(source).endswith(".csv"):
            shown = pd.read_csv(source, dtype=str, keep_default_na=False)  # as it stands there, such as 007 and NA
    shown = shown.assign(answer=classifier.predict(rows), probability=classifier.predict_proba(rows)[:, 1].round(9))
    write_table(shown, out) if out.suffix == ".parquet" else write_csv(shown, out, digits=15)
    print(f"{len(shown)} answers are in {out}", file=sys.stderr)


def study_groups(data: GroupData, drop: Sequence[str] = (), **parameters: Any) -> Study:
    """Train a classifier on groups, and find out what can be said about it."""
    if len(data.names) < 2 * FOLDS:
        raise UserError(f"{len(data.names)} groups are too few; {2 * FOLDS} or more are needed to hold some out")
    n = len(data.names) * (FOLDS - 1) / FOLDS
    parts = [part for part in PARTS if part == 1 or n / part >= LEAST]
    total = 1 + FOLDS * len(parts)
    with progress("training", total, "models") as bar, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data, left_out, estimator = _prepared(data, drop, MDPUClassifier(**parameters))
        rows, groups = data.rows, data.groups
        found, models = {part: np.empty(len(groups)) for part in parts}, []
        estimator.fit(rows, groups)
        bar.update()
        warned = [str(one.message).replace("tuple", "group") for one in caught if issubclass(one.category, UserWarning)]
        classifier, told = _last(estimator), clone(estimator)
        known = {"prior": classifier.prior_, "compare_prior": False, "learner": classifier.learner_.name}
        _last(told).set_params(**known)
        for kept, held in scores.TupleKFold(FOLDS).split(rows, groups):
            for part in parts:
                chosen = kept
                if part > 1:
                    chosen = kept[next(scores.TupleKFold(part).split(kept, groups[kept]))[1]]
                model = clone(told).fit(_take(rows, chosen), groups[chosen])
                found[part][held] = model.decision_function(_take(rows, held))
                bar.update()
            models.append((model, held))
    judged = copy.copy(classifier)
    judged.decision_function = lambda X: found[1]
    return Study(
        data,
        left_out,
        estimator,
        classifier,
        found[1],
        [*dict.fromkeys(warned)],
        [(round(n / part), _error(classifier, own, groups)) for part, own in found.items()],
        scores.scores_without_labels(judged, rows, groups),
        scores.calibration_without_labels(judged, rows, groups),
        _importance(models, rows, groups),
        scores.suspicious(judged, rows, groups),
    )


def _last(estimator: Any) -> Any:
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _take(rows: Any, places: Indices) -> Any:
    return rows.iloc[places] if isinstance(rows, pd.DataFrame) else rows[places]


def _plain(frame: pd.DataFrame, text: Sequence[str]) -> pd.DataFrame:
    """Return a frame of doubles and of columns of text, in which a missing one is a text of its own."""
    columns: dict[Any, Any] = {}
    numbers = as_numbers(frame.drop(columns=[*text]))
    for name, column in frame.items():
        if name in text:
            columns[name] = column.astype(object).fillna("missing").map(str)
            continue
        try:
            columns[name] = numbers[name].astype(np.float64)
            if np.isinf(columns[name]).any():
                raise ValueError("it holds an infinite one")
        except (TypeError, ValueError) as error:
            raise UserError(f"column {name} holds no numbers, as in training ({printable(str(error))[:100]})") from None
    return pd.DataFrame(columns, index=frame.index)


def _prepared(data: GroupData, drop: Sequence[str], classifier: Any) -> tuple[GroupData, list[str], Any]:
    """Return data whose repeated unlabeled rows stand once, columns that are left out, and what is to be trained."""
    rows, left_out, estimator = data.rows, [*drop], classifier
    if drop and not isinstance(rows, pd.DataFrame):
        raise UserError(f"there are no columns to leave out ({', '.join(drop)}): the rows are no table")
    if isinstance(rows, pd.DataFrame):
        if lacking := [name for name in drop if name not in rows]:
            raise UserError(f"there is no column {', '.join(lacking)} to leave out")
        rows = as_numbers(rows.drop(columns=left_out))
        if reserved := {"answer", "probability"} & {*rows}:
            raise UserError(f"rename the column {', '.join(sorted(reserved))}: predict gives answers these names")
        text = [*rows.select_dtypes(exclude=["number", "bool"])]
        rows = _plain(rows, text)
        names = [one for one in text if rows[one].nunique() > max(KINDS["max_categories"], NAMES * len(rows))]
        rows, left_out, kinds = rows.drop(columns=names), left_out + names, [one for one in text if one not in names]
        if rows.empty:
            raise UserError(f"no column is left to learn from; left out: {', '.join(left_out)}")
        if kinds:
            hot = OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False, **KINDS)
            encoder = make_column_transformer((hot, kinds), remainder="passthrough", verbose_feature_names_out=False)
            estimator = make_pipeline(encoder.set_output(transform="pandas"), classifier)
    sample = without_repeats(rows, sample_of(data.groups))
    kept = np.sort(np.concatenate([np.flatnonzero(data.groups != UNLABELED), sample.unlabeled]))
    files = None if data.files is None else [data.files[place] for place in kept]
    return replace(data, rows=_take(rows, kept), groups=data.groups[kept], files=files), left_out, estimator


def _error(classifier: Any, held_out: NDArray[np.float64], groups: Indices) -> scores.Estimate:
    """Return the error rate that scores of folds are estimated to have, as `risk_estimate` does."""
    sample, profile = sample_of(groups), scores.estimated_profile(classifier)

    def at(prior: float) -> dict[str, scores.Estimate]:
        return {"risk": scores.estimated_risk(held_out > 0, sample, prior, classifier.law_of, 0.95)}

    return scores.with_uncertain_prior(at, classifier.prior_, profile, 0.95)["risk"]


def _importance(models: list[tuple[Any, Indices]], rows: Any, groups: Indices) -> pd.DataFrame:
    """Return by how much the AUC of each fold falls where a column is permuted; pictures have no columns to show."""
    names = [*map(str, getattr(rows, "columns", range(rows.shape[1])))] if rows.ndim == 2 else []
    if not names:
        return pd.DataFrame({"column": [], "loss": [], "low": [], "high": []})
    auc, lost = scores.LabelFreeScorer("auc"), []
    for model, held in models[: max(1, SCORED // len(names))]:
        own = permutation_importance(model, _take(rows, held), groups[held], scoring=auc, n_repeats=1, random_state=0)
        lost.append(own.importances_mean)
    low, mean, high = np.min(lost, axis=0), np.mean(lost, axis=0), np.max(lost, axis=0)
    return pd.DataFrame({"column": names, "loss": mean, "low": low, "high": high})
