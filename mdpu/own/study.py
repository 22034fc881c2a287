"""A classifier from groups, and what is known of it without labels."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from mdpu.data import UNLABELED, sample_of
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, TupleClassifier
from mdpu.own.account import few
from mdpu.own.columns import TableEncoder
from mdpu.own.cross_validation import (
    FOLDS,
    PARTS,
    Trainer,
    cross_validate,
    groups_in_training,
    large_parts,
    last_step,
)
from mdpu.own.findings import Study
from mdpu.own.groups import GroupData, take_rows
from mdpu.own.importance import MOST_COLUMNS, column_importance, parts_of_columns, rank_columns
from mdpu.own.judges import judge_of
from mdpu.own.rules import Rule
from mdpu.pipeline.files import progress
from mdpu.places import Places
from mdpu.prior import columns_apart
from mdpu.sample import without_repeats

# words of the classifier where groups and rows differ by more than the class
MISFIT = "the law fits at none"


def study_groups(
    data: GroupData,
    drop: Sequence[str] = (),
    *,
    curve_parts: Sequence[int] = PARTS,
    most_columns: int = MOST_COLUMNS,
    **parameters: Any,
) -> Study:
    """Train a classifier on groups, and find out what can be said about it.

    Parameters
    ----------
    data : GroupData
    drop : sequence of str
        Columns to leave out.
    curve_parts : sequence of int
        The learning curve has a point for one part of so many of the groups; the last is 1.
    most_columns : int
        Columns whose importance is measured, at most.
    **parameters
        Those of the classifier.
    """
    rule = data.rule or Rule()
    _check(data, rule, parameters)
    trainer = Trainer(data, rule)
    estimator = _estimator(data, drop, _classifier(data, rule, parameters))
    parts = large_parts(curve_parts, len(data.names))

    with progress("training", 1 + FOLDS * len(parts), "models") as bar:
        warned = _train_on_all(trainer, estimator, data)
        bar.update()
        classifier = last_step(estimator)
        data, rows = _without_repeats(data, estimator)
        groups = data.groups
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model of all groups has warned already
            validation = cross_validate(
                trainer, _as_learned(classifier), rows, groups, parts, bar.update
            )

    judge = judge_of(classifier, rule, rows, groups)
    held_out = validation.scores
    curve = [
        (round(groups_in_training(len(data.names), part)), judge.error(scores))
        for part, scores in validation.scores_by_part.items()
    ]
    suspicion = judge.suspicion(held_out)
    places, with_broken = judge.departures(validation, curve[-1][1], suspicion)
    columns = parts_of_columns(estimator, rows)
    ranked = rank_columns(rows, columns, held_out)
    looked_at = {name: columns[name] for name in ranked[:most_columns]}
    return Study(
        data=data,
        estimator=estimator,
        classifier=classifier,
        held_out=held_out,
        warned=warned,
        curve=curve,
        measures=judge.measures(held_out),
        calibration=judge.calibration(held_out),
        importance=column_importance(validation.models, rows, groups, looked_at, judge),
        n_columns=len(columns),
        suspicion=suspicion,
        rule=rule,
        places=places,
        alike=_alike(places, columns),
        with_broken=with_broken,
    )


def _check(data: GroupData, rule: Rule, parameters: dict[str, Any]) -> None:
    """Raise `UserError` where training would end in nothing that can be judged."""
    if len(data.names) < 2 * FOLDS:
        raise UserError(
            f"{len(data.names)} groups are too few; {2 * FOLDS} or more are needed to hold some out"
        )
    if 0 < data.report.distinct_unlabeled < FOLDS:
        raise UserError(
            f"{data.report.distinct_unlabeled} different unlabeled rows are too few; give as "
            "many as there are groups"
        )
    asked = [parameters.get(name) for name in ("prior", "guess_prior", "positive_by")]
    rule.check_identified(data.sizes.tolist(), asked[0], bool(asked[1]), asked[2])


def _classifier(data: GroupData, rule: Rule, parameters: dict[str, Any]) -> Any:
    """Return the classifier for a rule: that of the paper's law, or that of any other."""
    plain = {name: value for name, value in parameters.items() if name != "positive_by"}
    if rule.law == "dominant" and rule.counts is None:
        if parameters.get("positive_by") is not None:
            raise UserError(
                "positive_by is given, but the law dominant tells the classes apart; leave it out"
            )
        return MDPUClassifier(**plain | {"dominant": rule.dominant})
    if rule.counts is not None:
        return TupleClassifier(**parameters)
    return TupleClassifier(**parameters, law=rule.laws(data.sizes.tolist()))


def _estimator(data: GroupData, drop: Sequence[str], classifier: Any) -> Any:
    """Return what is trained: the classifier, or for a table a pipeline that makes numbers of its
    columns first.
    """
    if isinstance(data.rows, pd.DataFrame):
        return make_pipeline(TableEncoder(tuple(drop)), classifier)
    if drop:
        raise UserError(
            f"there are no columns to leave out ({', '.join(drop)}): the rows are no table"
        )
    return classifier


def _train_on_all(trainer: Trainer, estimator: Any, data: GroupData) -> list[str]:
    """Train on all groups; return the warnings, each once, in the words of the command."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            trainer.fit(estimator, data.rows, data.groups)
        except UserError as error:
            raise UserError(_in_groups(str(error), data, estimator)) from None
    texts = [_in_groups(text, data, estimator) for text in user_warnings(caught)]
    return [*dict.fromkeys(texts)]


def user_warnings(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the texts of warnings that are meant for users."""
    return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


def _in_groups(text: str, data: GroupData, estimator: Any) -> str:
    """Return a sentence of the classifier in the words of the command, with the columns to leave
    out.
    """
    text = text.replace("tuple", "group")
    if (
        MISFIT not in text
        or not isinstance(estimator, Pipeline)
        or not (data.groups == UNLABELED).any()
    ):
        return text
    rows = estimator[0].transform(data.rows)
    sources = estimator[0].sources()
    members = np.flatnonzero(data.groups != UNLABELED)
    unlabeled = np.flatnonzero(data.groups == UNLABELED)
    apart = columns_apart(rows.to_numpy(), members, unlabeled)
    areas: dict[str, float] = {}
    for place, area in apart:
        areas.setdefault(sources[place], area)
    named = few([f"{name} ({area:.2f})" for name, area in areas.items()])
    misfit = (
        f"{text.partition(MISFIT)[0]}{MISFIT}, so they differ by more than the class, or groups "
        "break the rule"
    )
    return (
        f"{misfit}; the columns that tell them apart best are {named}: leave out one that says "
        f"where a row comes from, such as by --drop {shlex.quote(next(iter(areas)))}"
    )


def _as_learned(classifier: Any) -> Any:
    """Return an untrained classifier that takes the prior and the learner of a trained one."""
    known = {"prior": classifier.prior_, "compare_prior": False}
    if classifier.learner == "auto":
        known["learner"] = classifier.learner_.name
    return clone(classifier).set_params(**known)


def _without_repeats(data: GroupData, estimator: Any) -> tuple[GroupData, Any]:
    """Return data in which repeated unlabeled rows stand once, and their rows as the classifier
    gets them.
    """
    rows = data.rows
    if isinstance(estimator, Pipeline):
        rows = estimator[0].transform(rows)
    members = np.flatnonzero(data.groups != UNLABELED)
    if len(members) == len(data.groups):
        return data, rows

    sample = without_repeats(rows, sample_of(data.groups))
    kept = np.sort(np.append(members, sample.unlabeled))
    return data.take(kept), take_rows(rows, kept)


def _alike(places: Places | None, parts_of: dict[str, list[int]]) -> tuple[str, ...]:
    """Return the names of the columns that are alike within groups."""
    if places is None or not places.columns_differ:
        return ()
    names = {place: name for name, columns in parts_of.items() for place in columns}
    return tuple(dict.fromkeys(names[place] for place in places.columns if place in names))
