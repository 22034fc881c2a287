"""What groups say of scores, without labels: by their law, or by what is known of each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu import scores
from mdpu.data import Indices, numbers_of, sample_of
from mdpu.own.counted import LEVEL, Counted, doubtful, known_prior
from mdpu.own.cross_validation import CrossValidation
from mdpu.own.rules import Rule
from mdpu.places import HeldOut, Places, error_with_broken, judge_places


def judge_of(classifier: Any, rule: Rule, rows: Any, groups: Indices) -> Judge | CountedJudge:
    """Return the judge for a rule."""
    if rule.counts:
        return CountedJudge(classifier, rule, groups)
    return Judge(classifier, rows, groups)


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
        """Return the error rate, as `risk_estimate` does."""
        sample = scores.of_pool(self.classifier, sample_of(self.groups))
        profile = scores.estimated_profile(self.classifier)
        law_of = self.classifier.law_of

        def at(prior: float) -> dict[str, scores.Estimate]:
            return {"risk": scores.estimated_risk(held_out > 0, sample, prior, law_of, LEVEL)}

        return scores.with_uncertain_prior(at, self.classifier.prior_, profile, LEVEL)["risk"]

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
        validation: CrossValidation,
        error: scores.Estimate,
        suspicion: scores.Suspicion,
    ) -> tuple[Places | None, scores.Estimate | None]:
        """Return what speaks for groups from places that differ; and the error rate if groups break
        the rule, where some certainly do.
        """
        held = HeldOut(
            validation.scores,
            scores.of_pool(self.classifier, sample_of(self.groups)),
            self.classifier.law_of,
            error,
            self.classifier.prior_,
            scores.estimated_profile(self.classifier),
            validation.folds,
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

        return scores.with_uncertain_prior(at, self.prior, self.profile, LEVEL)["risk"]

    def measures(self, held_out: NDArray[np.float64]) -> dict[str, scores.Estimate]:
        """Return AUC, balanced accuracy, precision and recall."""

        def at(prior: float) -> dict[str, scores.Estimate]:
            return self._at(prior).measures(held_out)

        return scores.with_uncertain_prior(at, self.prior, self.profile, LEVEL)

    def calibration(self, held_out: NDArray[np.float64]) -> pd.DataFrame:
        """Return the share of positives by probability."""
        return self._at(self.prior).calibration(held_out)

    def suspicion(self, held_out: NDArray[np.float64]) -> scores.Suspicion:
        """Return the groups, the most suspicious first."""
        return doubtful(held_out, self.groups, self.rule, self.prior)

    def departures(
        self,
        validation: CrossValidation,
        error: scores.Estimate,
        suspicion: scores.Suspicion,
    ) -> tuple[None, None]:
        """Return nothing: numbers that are known of each group leave no law to compare with, and
        how many of them are wrong cannot be told.
        """
        return None, None

    def auc_of(self, model: Any, rows: Any, groups: Indices) -> Callable[[Any], float]:
        """Return the AUC as a function of a model's scores of held-out rows."""
        places = np.searchsorted(numbers_of(self.groups), numbers_of(groups))
        rule = self.rule.take(places)
        counted = Counted.of(groups, rule, self.prior)
        return lambda held_out: counted.auc(np.asarray(held_out, np.float64)).value
