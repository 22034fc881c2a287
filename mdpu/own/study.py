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
from sklearn.pipeline import Pipeline, make_pipeline

from mdpu import scores
from mdpu.data import UNLABELED, Indices, sample_of
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier
from mdpu.own.account import Column, few
from mdpu.own.columns import RESERVED, TableEncoder
from mdpu.own.groups import GroupData, make_reading, read_groups, read_rows
from mdpu.own.tables import suggest
from mdpu.pipeline.files import progress, read_json, write_csv, write_json, write_table
from mdpu.prior import without_repeats
from mdpu.saving import load, save

FOLDS = 5
PARTS = (8, 4, 2, 1)  # of the groups in training, the learning curve has an eighth, a quarter, a half, and all
LEAST = 20  # groups in such a part
LOOKED_AT = 200  # columns whose importance is measured, at most
SLICES = 5  # of a column by its values, which are compared to tell whether it may be important


@dataclass(frozen=True)
class Study:
    """A classifier, or the pipeline that ends in it, and what is known of it without labels.

    `importance` says by how much the AUC falls where a column's values are exchanged between rows: ``loss``, the mean
    over folds, ``low`` and ``high``, the least and the largest. For pictures it is empty. Of more
    than `LOOKED_AT` columns it has those that `rank_columns` names first; `n_columns` is the number
    of all.
    """

    data: GroupData  # as it was learned from: repeated unlabeled rows stand once
    estimator: Any
    classifier: Any  # the last step of the estimator
    held_out: NDArray[np.float64]  # scores (N,) of the rows by models that have not seen them
    warned: list[str]
    curve: list[tuple[int, scores.Estimate]]  # error rates by the number of groups in training
    measures: dict[str, scores.Estimate]
    calibration: pd.DataFrame
    importance: pd.DataFrame
    n_columns: int
    suspicion: scores.Suspicion

    @property
    def error(self) -> scores.Estimate:
        """The error rate."""
        return self.curve[-1][1]


def fit_groups(
    source: Any,
    out: Path,
    group: str | Sequence[str],
    drop: Sequence[str],
    options: dict[str, Any],
    **parameters: Any,
) -> Study:
    """Write a classifier and its groups, ranked, to a folder; return what is known of it.

    `source`, `group` and `options` are the arguments of `read_groups`, `parameters` those of `MDPUClassifier`; `drop`
    names columns to leave out.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; name a folder")
    data = read_groups(source, group, **options)
    data = with_columns(data, drop)
    print(data.account, data.report, sep="\n", file=sys.stderr)
    study = study_groups(data, drop, **parameters)
    for text in study.warned:
        print(f"warning: {text}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    save(study.estimator, out / "classifier.skops")
    rows, ranked = study.data.rows, study.suspicion.tuples
    held = {"shape": rows.shape[1:]}
    if isinstance(rows, pd.DataFrame):
        encoder = study.estimator[0]
        held = {"columns": [*encoder.kinds_], "text": encoder.categories()}
    write_json(out / "rows.json", held)
    ranked = ranked.assign(tuple=[data.names[place] for place in ranked["tuple"]]).rename(columns={"tuple": "group"})
    write_csv(ranked, out / "groups.csv")
    return study


def with_columns(data: GroupData, drop: Sequence[str]) -> GroupData:
    """Return data whose account says which columns training uses and leaves out, and why."""
    if not isinstance(data.rows, pd.DataFrame):
        return data
    names = [column for column in data.account.columns if column.kind == "group"]
    encoder = TableEncoder(drop).fit(data.rows)
    return replace(data, account=replace(data.account, columns=names + encoder.columns()))


def predict_rows(model: Path, source: Any, out: Path, options: dict[str, Any]) -> None:
    """Write new rows with their answers, -1 or +1, and probabilities of +1, as CSV or Parquet.

    For pictures and arrays, file names and places stand for the rows.
    """
    if not (model / "rows.json").exists():
        raise UserError(f"{model} is not a folder that fit wrote")
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(f"{out} is neither a .csv nor a .parquet file; answers are written as one of these")
    held, classifier = read_json(model / "rows.json"), load(model / "classifier.skops")
    shape = held.get("shape", ())
    size, mode = None, None
    if len(shape) > 1:
        size = shape[:2]
        mode = "RGB" if len(shape) == 3 else "L"
    needed = held.get("columns", [])
    files = {name: options.pop(name) for name in ("table", "file") if name in options}
    reading = make_reading(options)
    read = read_rows(source, **files, size=size, mode=mode, needed=needed, text=held.get("text", ()), reading=reading)
    rows = read.rows
    if not len(rows) or isinstance(rows, pd.DataFrame) != ("columns" in held):
        raise UserError(f"{source} has no rows, or not those of the training: a table for pictures, or the reverse")
    shown = pd.DataFrame({"row": range(len(rows))})
    account = read.account
    if read.files is not None:
        shown = pd.DataFrame({"file": [os.path.relpath(path, source) for path in read.files]})
    if read.raw is not None:
        _check_columns(source, [*map(str, rows)], needed)
        shown, rows = read.raw, rows[needed]
        account = replace(account, columns=[_used(column, needed) for column in account.columns])
    print(account, file=sys.stderr)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shown = shown.assign(answer=classifier.predict(rows), probability=classifier.predict_proba(rows)[:, 1].round(9))
    for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)):
        print(f"warning: {text}", file=sys.stderr)
    if out.suffix == ".parquet":
        mixed = [name for name, column in shown.items() if len({*map(type, column.dropna())}) > 1]
        write_table(shown.astype(dict.fromkeys(mixed, str)), out)
    else:
        write_csv(shown, out, digits=15)
    print(f"{len(shown)} answers are in {out}", file=sys.stderr)


def _check_columns(source: Any, names: Sequence[str], needed: Sequence[str]) -> None:
    """Raise `UserError` unless new rows have the columns of the training, and none that answers get."""
    lacking = [name for name in needed if name not in names]
    if lacking:
        hint = suggest(lacking[0], names)
        raise UserError(f"{source} lacks the columns {few(lacking)}, which the classifier was trained on{hint}")
    if {*RESERVED} & {*names}:
        raise UserError(f"{source} has a column answer or probability; rename it, because answers get these names")


def _used(column: Column, needed: Sequence[str]) -> Column:
    """Return a column of new rows, which is used if the classifier was trained on it."""
    if column.name in needed:
        return column
    return replace(column, used=False, reason="the classifier was not trained on it")


def study_groups(data: GroupData, drop: Sequence[str] = (), **parameters: Any) -> Study:
    """Train a classifier on groups, and find out what can be said about it."""
    if len(data.names) < 2 * FOLDS:
        raise UserError(f"{len(data.names)} groups are too few; {2 * FOLDS} or more are needed to hold some out")
    n = len(data.names) * (FOLDS - 1) / FOLDS
    parts = [part for part in PARTS if part == 1 or n / part >= LEAST]
    total = 1 + FOLDS * len(parts)
    with progress("training", total, "models") as bar, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = _estimator(data, drop, MDPUClassifier(**parameters))
        estimator.fit(data.rows, data.groups)
        bar.update()
        data, rows = _without_repeats(data, estimator)
        groups = data.groups
        warned = [str(one.message).replace("tuple", "group") for one in caught if issubclass(one.category, UserWarning)]
        classifier = _last(estimator)
        known = {"prior": classifier.prior_, "compare_prior": False}
        if classifier.learner == "auto":
            known["learner"] = classifier.learner_.name
        told = clone(classifier).set_params(**known)
        found = {part: np.empty(len(groups)) for part in parts}
        models = []
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
    parts_of = _parts_of_columns(estimator, rows)
    looked_at = rank_columns(rows, parts_of, found[1])[:LOOKED_AT]
    return Study(
        data,
        estimator,
        classifier,
        found[1],
        [*dict.fromkeys(warned)],
        [(round(n / part), _error(classifier, own, groups)) for part, own in found.items()],
        scores.scores_without_labels(judged, rows, groups),
        scores.calibration_without_labels(judged, rows, groups),
        _importance(models, rows, groups, {name: parts_of[name] for name in looked_at}),
        len(parts_of),
        scores.suspicious(judged, rows, groups),
    )


def _last(estimator: Any) -> Any:
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _take(rows: Any, places: Indices) -> Any:
    return rows.iloc[places] if isinstance(rows, pd.DataFrame) else rows[places]


def _estimator(data: GroupData, drop: Sequence[str], classifier: Any) -> Any:
    """Return what is trained: the classifier, or for a table a pipeline that makes numbers of its columns first."""
    if isinstance(data.rows, pd.DataFrame):
        return make_pipeline(TableEncoder(tuple(drop)), classifier)
    if drop:
        raise UserError(f"there are no columns to leave out ({', '.join(drop)}): the rows are no table")
    return classifier


def _without_repeats(data: GroupData, estimator: Any) -> tuple[GroupData, Any]:
    """Return data in which repeated unlabeled rows stand once, and their rows as the classifier gets them."""
    rows = estimator[0].transform(data.rows) if isinstance(estimator, Pipeline) else data.rows
    sample = without_repeats(rows, sample_of(data.groups))
    kept = np.sort(np.concatenate([np.flatnonzero(data.groups != UNLABELED), sample.unlabeled]))
    return data.take(kept), _take(rows, kept)


def _error(classifier: Any, held_out: NDArray[np.float64], groups: Indices) -> scores.Estimate:
    """Return the error rate that scores of folds are estimated to have, as `risk_estimate` does."""
    sample, profile = sample_of(groups), scores.estimated_profile(classifier)

    def at(prior: float) -> dict[str, scores.Estimate]:
        return {"risk": scores.estimated_risk(held_out > 0, sample, prior, classifier.law_of, 0.95)}

    return scores.with_uncertain_prior(at, classifier.prior_, profile, 0.95)["risk"]


def _parts_of_columns(estimator: Any, rows: Any) -> dict[str, list[int]]:
    """Return the places of what each column became in the rows that a model takes.

    Pictures have no columns.
    """
    if rows.ndim != 2:
        return {}
    names = [str(place) for place in range(rows.shape[1])]
    if isinstance(estimator, Pipeline):
        names = estimator[0].sources()
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return places


def rank_columns(
    rows: Any,
    parts_of: dict[str, list[int]],
    held_out: NDArray[np.float64],
) -> list[str]:
    """Return the columns, those first whose values go along most with the scores (N,) of the rows.

    The values of a column are cut into `SLICES`, with another for missing ones. What counts is how
    far the mean scores of the slices lie from one another. Pictures have no columns.
    """
    if not parts_of:
        return []
    shares = pd.DataFrame(np.asarray(rows)).rank(pct=True).to_numpy()
    slices = np.ceil(np.nan_to_num(shares) * SLICES).astype(np.int64)
    between = np.array([_between(column, held_out) for column in slices.T])
    told = {name: between[places].max() for name, places in parts_of.items()}
    return sorted(told, key=lambda name: -told[name])


def _between(slices: Indices, values: NDArray[np.float64]) -> float:
    """Return the sum of squares of values (N,) between slices."""
    counts = np.bincount(slices)
    sums = np.bincount(slices, values - values.mean())
    return float((sums**2 / np.maximum(counts, 1)).sum())


def _importance(
    models: list[tuple[Any, Indices]], rows: Any, groups: Indices, parts_of: dict[str, list[int]]
) -> pd.DataFrame:
    """Return by how much the AUC of each fold falls where a column is permuted."""
    if not parts_of:
        return pd.DataFrame({"column": [], "loss": [], "low": [], "high": []})
    lost = [_lost(model, _take(rows, held), groups[held], parts_of) for model, held in models]
    low, mean, high = np.min(lost, axis=0), np.mean(lost, axis=0), np.max(lost, axis=0)
    return pd.DataFrame({"column": [*parts_of], "loss": mean, "low": low, "high": high})


def _lost(model: Any, rows: Any, groups: Indices, parts_of: dict[str, list[int]]) -> list[float]:
    """Return the AUC on held-out rows less that with each column permuted, its parts alike."""
    auc = scores.auc_of_scores(model, rows, groups)
    whole = auc(model.decision_function(rows))
    values = np.array(rows)
    order = np.random.default_rng(0).permutation(len(values))
    lost = []
    for places in parts_of.values():
        permuted: Any = values.copy()
        permuted[:, places] = values[:, places][order]
        if isinstance(rows, pd.DataFrame):
            permuted = pd.DataFrame(permuted, columns=rows.columns)
        lost.append(whole - auc(model.decision_function(permuted)))
    return lost
