"""A classifier from a user's own files, what is known of it without labels, and predictions for new
rows.

``python -m mdpu fit`` and ``predict`` call this; ``docs/how-to/from-files.md`` shows them. All
numbers about a classifier come from folds of whole groups: each row is scored by a model that has
seen neither it nor its group, unless the row stands in another group, too.
"""

from __future__ import annotations

import copy
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline

from mdpu import scores
from mdpu.data import UNLABELED, Indices, sample_of
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, TupleClassifier
from mdpu.own.account import Column, few
from mdpu.own.columns import RESERVED, TableEncoder
from mdpu.own.counted import Counted, doubtful, known_prior
from mdpu.own.doubts import doubts_of
from mdpu.own.findings import Study
from mdpu.own.groups import (
    GroupData,
    make_reading,
    read_groups,
    read_rows,
    rows_of_groups,
    take_rows,
    with_rule,
)
from mdpu.own.rules import Rule
from mdpu.own.tables import suggest
from mdpu.pipeline.files import progress, read_json, write_csv, write_json, write_table
from mdpu.places import HeldOut, Places, error_with_broken, judge_places
from mdpu.prior import columns_apart
from mdpu.sample import without_repeats
from mdpu.saving import load, save

FOLDS = 5
# of the groups in training, the learning curve has an eighth, a quarter, a half, and all
PARTS = (8, 4, 2, 1)
LEAST = 20  # groups in such a part
LOOKED_AT = 200  # columns whose importance is measured, at most
SLICES = 5  # of a column by its values, which are compared to tell whether it may be important
# words of the classifier where groups and rows differ by more than the class
MISFIT = "the law fits at none"


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
    data = read_groups(source, group, **options)
    rule = replace(data.rule or Rule(), dominant=parameters.pop("dominant", "positive"))
    data = with_columns(with_rule(data, rule), drop)
    print(data.account, data.report, sep="\n", file=sys.stderr)
    study = study_groups(data, drop, **parameters)
    for text in [*study.warned, *(doubt.text for doubt in doubts_of(study))]:
        print(f"warning: {text}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    save(study.estimator, out / "classifier.skops")
    rows = study.data.rows
    held = {"shape": rows.shape[1:]}
    if isinstance(rows, pd.DataFrame):
        encoder = study.estimator[0]
        held = {"columns": [*encoder.kinds_], "text": encoder.categories()}
    write_json(out / "rows.json", {**held, "rule": str(study.rule)})
    write_csv(_ranked(study), out / "groups.csv")
    return study


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
    if not (model / "rows.json").exists():
        raise UserError(f"{model} is not a folder that fit wrote")
    if out.suffix not in (".csv", ".parquet"):
        raise UserError(
            f"{out} is neither a .csv nor a .parquet file; answers are written as one of these"
        )
    held = read_json(model / "rows.json")
    classifier = load(model / "classifier.skops")
    shape = held.get("shape", ())
    size = None
    mode = None
    if len(shape) > 1:
        size = shape[:2]
        mode = "RGB" if len(shape) == 3 else "L"
    needed = held.get("columns", [])
    files = {name: options.pop(name) for name in ("table", "file") if name in options}
    reading = make_reading(options)
    read = read_rows(
        source,
        **files,
        size=size,
        mode=mode,
        needed=needed,
        text=held.get("text", ()),
        reading=reading,
    )
    rows = read.rows
    if not len(rows) or isinstance(rows, pd.DataFrame) != ("columns" in held):
        raise UserError(
            f"{source} has no rows, or not those of the training: a table for pictures, or the "
            "reverse"
        )
    shown = pd.DataFrame({"row": range(len(rows))})
    account = read.account
    if read.files is not None:
        shown = pd.DataFrame({"file": [os.path.relpath(path, source) for path in read.files]})
    if read.raw is not None:
        _check_columns(source, [*map(str, rows)], needed)
        shown, rows = read.raw, rows[needed]
        account = replace(account, columns=[_used(column, needed) for column in account.columns])
    print(account, file=sys.stderr)
    if "rule" in held:
        print(f"the classifier learned from groups by this rule: {held['rule']}", file=sys.stderr)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shown = shown.assign(
            answer=classifier.predict(rows),
            probability=classifier.predict_proba(rows)[:, 1].round(9),
        )
    for text in dict.fromkeys(user_warnings(caught)):
        print(f"warning: {text}", file=sys.stderr)
    if out.suffix == ".parquet":
        mixed = [name for name, column in shown.items() if len({*map(type, column.dropna())}) > 1]
        write_table(shown.astype(dict.fromkeys(mixed, str)), out)
    else:
        write_csv(shown, out, digits=15)
    print(f"{len(shown)} answers are in {out}", file=sys.stderr)


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


def study_groups(data: GroupData, drop: Sequence[str] = (), **parameters: Any) -> Study:
    """Train a classifier on groups, and find out what can be said about it."""
    rule = data.rule or Rule()
    _check(data, rule, parameters)
    n = len(data.names) * (FOLDS - 1) / FOLDS
    parts = [part for part in PARTS if part == 1 or n / part >= LEAST]
    total = 1 + FOLDS * len(parts)
    with (
        progress("training", total, "models") as bar,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        trainer = Trainer(data, rule)
        estimator = _estimator(data, drop, _classifier(data, rule, parameters))
        try:
            trainer.fit(estimator, data.rows, data.groups)
        except UserError as error:
            raise UserError(_in_groups(str(error), data, estimator)) from None
        bar.update()
        whole = data
        data, rows = _without_repeats(data, estimator)
        groups = data.groups
        texts = user_warnings(caught)
        warned = [_in_groups(text, whole, estimator) for text in texts]
        classifier = _last(estimator)
        known = {"prior": classifier.prior_, "compare_prior": False}
        if classifier.learner == "auto":
            known["learner"] = classifier.learner_.name
        fixed = clone(classifier).set_params(**known)
        scores_of = {part: np.empty(len(groups)) for part in parts}
        models = []
        for kept, held in _folds(FOLDS, rows, groups):
            for part in parts:
                chosen = kept
                if part > 1:
                    chosen = kept[next(_folds(part, kept, groups[kept]))[1]]
                model = trainer.fit(clone(fixed), take_rows(rows, chosen), groups[chosen])
                scores_of[part][held] = model.decision_function(take_rows(rows, held))
                bar.update()
            models.append((model, held))
    judge = (
        CountedJudge(classifier, rule, groups) if rule.counts else Judge(classifier, rows, groups)
    )
    parts_of = _parts_of_columns(estimator, rows)
    looked_at = rank_columns(rows, parts_of, scores_of[1])[:LOOKED_AT]
    suspicion = judge.suspicion(scores_of[1])
    folds = np.zeros(len(groups), np.int64)
    for fold, (_, held) in enumerate(models):
        folds[held] = fold
    curve = [(round(n / part), judge.error(held_out)) for part, held_out in scores_of.items()]
    places, with_broken = judge.departures(scores_of[1], folds, curve[-1][1], suspicion)
    return Study(
        data,
        estimator,
        classifier,
        scores_of[1],
        [*dict.fromkeys(warned)],
        curve,
        judge.measures(scores_of[1]),
        judge.calibration(scores_of[1]),
        _importance(models, rows, groups, {name: parts_of[name] for name in looked_at}, judge),
        len(parts_of),
        suspicion,
        rule,
        places,
        _alike(places, parts_of),
        with_broken,
    )


def user_warnings(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Return the texts of warnings that are meant for users."""
    return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


def _alike(places: Places | None, parts_of: dict[str, list[int]]) -> tuple[str, ...]:
    """Return the names of the columns that are alike within groups."""
    if places is None or not places.columns_differ:
        return ()
    names = {place: name for name, columns in parts_of.items() for place in columns}
    return tuple(dict.fromkeys(names[place] for place in places.columns if place in names))


def _check(data: GroupData, rule: Rule, parameters: dict[str, Any]) -> None:
    """Raise `UserError` where training would end in nothing that can be judged."""
    if len(data.names) < 2 * FOLDS:
        raise UserError(
            f"{len(data.names)} groups are too few; {2 * FOLDS} or more are needed to hold some out"
        )
    asked = [parameters.get(name) for name in ("prior", "guess_prior", "positive_by")]
    rule.check_identified(data.sizes.tolist(), asked[0], bool(asked[1]), asked[2])


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
    shown = few([f"{name} ({area:.2f})" for name, area in areas.items()])
    misfit = (
        f"{text.partition(MISFIT)[0]}{MISFIT}, so they differ by more than the class, or groups "
        "break the rule"
    )
    return (
        f"{misfit}; the columns that tell them apart best are {shown}: leave out one that says "
        f"where a row comes from, such as by --drop {shlex.quote(next(iter(areas)))}"
    )


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


class Trainer:
    """Trains classifiers on parts of the data by its rule."""

    def __init__(self, data: GroupData, rule: Rule):
        self.numbers = np.unique(data.groups[data.groups != UNLABELED])
        self.rule = rule

    def fit(self, estimator: Any, rows: Any, groups: Indices) -> Any:
        """Train a classifier, or a pipeline that ends in one, on rows (N, ...) of groups (N,)."""
        if self.rule.counts is None:
            return estimator.fit(rows, groups)
        held = np.unique(groups[groups != UNLABELED])
        counts = self.rule.take(np.searchsorted(self.numbers, held)).counts
        if isinstance(estimator, Pipeline):  # whose fit takes no list of groups
            rows = estimator[:-1].fit_transform(rows)
        classifier = _last(estimator)
        if (groups == UNLABELED).any():
            classifier.fit(rows, groups, counts=counts)
        else:
            classifier.fit(rows_of_groups(rows, groups), counts=counts)
        return estimator


def _folds(count: int, rows: Any, groups: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield the places of the rows to train on and to hold out, in folds that cut no group."""
    if (groups == UNLABELED).any():
        return scores.TupleKFold(count).split(rows, groups)
    return iter(GroupKFold(count, shuffle=True, random_state=0).split(groups, groups=groups))


class Judge:
    """What groups of a law, and unlabeled rows, say of scores (N,) by models that had not seen
    them.
    """

    def __init__(self, classifier: Any, rows: Any, groups: Indices):
        self.classifier = classifier
        self.rows = rows
        self.groups = groups

    def _judged(self, held_out: NDArray[np.float64]) -> Any:
        judged = copy.copy(self.classifier)
        judged.decision_function = lambda X: held_out
        return judged

    def error(self, held_out: NDArray[np.float64]) -> scores.Estimate:
        """Return the error rate."""
        return _error(self.classifier, held_out, self.groups)

    def measures(self, held_out: NDArray[np.float64]) -> dict[str, scores.Estimate]:
        """Return AUC, balanced accuracy, precision and recall."""
        return scores.scores_without_labels(self._judged(held_out), self.rows, self.groups)

    def calibration(self, held_out: NDArray[np.float64]) -> pd.DataFrame:
        """Return the share of positives by probability."""
        return scores.calibration_without_labels(self._judged(held_out), self.rows, self.groups)

    def suspicion(self, held_out: NDArray[np.float64]) -> scores.Suspicion:
        """Return the groups, the most suspicious first."""
        return scores.suspicious(self._judged(held_out), self.rows, self.groups)

    def departures(
        self,
        held_out: NDArray[np.float64],
        folds: Indices,
        error: scores.Estimate,
        suspicion: scores.Suspicion,
    ) -> tuple[Places | None, scores.Estimate | None]:
        """Return what speaks for groups from places that differ; and the error rate if groups break
        the rule, where some certainly do.
        """
        held = HeldOut(
            held_out,
            sample_of(self.groups),
            self.classifier.law_of,
            error,
            self.classifier.prior_,
            scores.estimated_profile(self.classifier),
            folds,
        )
        places = judge_places(held, self.rows)
        number = suspicion.number
        if number is None or number.low <= 0 or self.classifier.broken:
            return places, None
        return places, error_with_broken(held)

    def auc_of(self, model: Any, rows: Any, groups: Indices) -> Callable[[Any], float]:
        """Return the AUC as a function of a model's scores of held-out rows."""
        return scores.auc_of_scores(model, rows, groups)


class CountedJudge:
    """What groups with known numbers of positives say of scores (N,), as `Judge`."""

    def __init__(self, classifier: Any, rule: Rule, groups: Indices):
        prior = known_prior(groups, rule)
        self.prior = classifier.prior_ if prior is None else prior
        self.profile = scores.estimated_profile(classifier)
        self.rule = rule
        self.groups = groups

    def _at(self, prior: float) -> Counted:
        return Counted.of(self.groups, self.rule, prior)

    def error(self, held_out: NDArray[np.float64]) -> scores.Estimate:
        """Return the error rate."""
        yes = (held_out > 0).astype(float)

        def at(prior: float) -> dict[str, scores.Estimate]:
            return {"risk": self._at(prior).error(yes)}

        return scores.with_uncertain_prior(at, self.prior, self.profile, 0.95)["risk"]

    def measures(self, held_out: NDArray[np.float64]) -> dict[str, scores.Estimate]:
        """Return AUC, balanced accuracy, precision and recall."""

        def at(prior: float) -> dict[str, scores.Estimate]:
            return self._at(prior).measures(held_out)

        return scores.with_uncertain_prior(at, self.prior, self.profile, 0.95)

    def calibration(self, held_out: NDArray[np.float64]) -> pd.DataFrame:
        """Return the share of positives by probability."""
        return self._at(self.prior).calibration(held_out)

    def suspicion(self, held_out: NDArray[np.float64]) -> scores.Suspicion:
        """Return the groups, the most suspicious first."""
        return doubtful(held_out, self.groups, self.rule, self.prior)

    def departures(
        self,
        held_out: NDArray[np.float64],
        folds: Indices,
        error: scores.Estimate,
        suspicion: scores.Suspicion,
    ) -> tuple[None, None]:
        """Return nothing: numbers that are known of each group leave no law to compare with, and
        how many of them are wrong cannot be told.
        """
        return None, None

    def auc_of(self, model: Any, rows: Any, groups: Indices) -> Callable[[Any], float]:
        """Return the AUC as a function of a model's scores of held-out rows."""
        numbers = np.unique(self.groups[self.groups != UNLABELED])
        held = np.unique(groups[groups != UNLABELED])
        rule = self.rule.take(np.searchsorted(numbers, held))
        counted = Counted.of(groups, rule, self.prior)
        return lambda held_out: counted.auc(np.asarray(held_out, np.float64)).value


def _last(estimator: Any) -> Any:
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


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


def _without_repeats(data: GroupData, estimator: Any) -> tuple[GroupData, Any]:
    """Return data in which repeated unlabeled rows stand once, and their rows as the classifier
    gets them.
    """
    rows = estimator[0].transform(data.rows) if isinstance(estimator, Pipeline) else data.rows
    if not (data.groups == UNLABELED).any():
        return data, rows
    sample = without_repeats(rows, sample_of(data.groups))
    kept = np.sort(np.concatenate([np.flatnonzero(data.groups != UNLABELED), sample.unlabeled]))
    return data.take(kept), take_rows(rows, kept)


def _error(classifier: Any, held_out: NDArray[np.float64], groups: Indices) -> scores.Estimate:
    """Return the error rate that scores of folds are estimated to have, as `risk_estimate` does."""
    sample = sample_of(groups)
    profile = scores.estimated_profile(classifier)

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
    importance = {name: between[places].max() for name, places in parts_of.items()}
    return sorted(importance, key=lambda name: -importance[name])


def _between(slices: Indices, values: NDArray[np.float64]) -> float:
    """Return the sum of squares of values (N,) between slices."""
    counts = np.bincount(slices)
    sums = np.bincount(slices, values - values.mean())
    return float((sums**2 / np.maximum(counts, 1)).sum())


def _importance(
    models: list[tuple[Any, Indices]],
    rows: Any,
    groups: Indices,
    parts_of: dict[str, list[int]],
    judge: Judge | CountedJudge,
) -> pd.DataFrame:
    """Return by how much the AUC of each fold falls where a column is permuted."""
    if not parts_of:
        return pd.DataFrame({"column": [], "loss": [], "low": [], "high": []})
    lost = [
        _lost(model, take_rows(rows, held), groups[held], parts_of, judge) for model, held in models
    ]
    low = np.min(lost, axis=0)
    mean = np.mean(lost, axis=0)
    high = np.max(lost, axis=0)
    return pd.DataFrame({"column": [*parts_of], "loss": mean, "low": low, "high": high})


def _lost(
    model: Any,
    rows: Any,
    groups: Indices,
    parts_of: dict[str, list[int]],
    judge: Judge | CountedJudge,
) -> list[float]:
    """Return the AUC on held-out rows less that with each column permuted, its parts alike."""
    auc = judge.auc_of(model, rows, groups)
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
