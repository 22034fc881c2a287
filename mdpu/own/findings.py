"""What is known of a classifier from a user's own files, without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mdpu import scores
from mdpu.own.groups import GroupData
from mdpu.own.rules import Rule
from mdpu.places import Places


@dataclass(frozen=True)
class Study:
    """A classifier, or the pipeline that ends in it, and what is known of it without labels.

    `importance` says by how much the AUC falls where a column's values are exchanged between rows:
    ``loss``, the mean over folds, ``low`` and ``high``, the least and the largest. For pictures it
    is empty. Of more than `MOST_COLUMNS` columns it has those that `rank_columns` names first;
    `n_columns` is the number of all.
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
    rule: Rule
    places: Places | None  # None where numbers of positives are known
    alike: tuple[str, ...]  # columns in which rows of a group are alike
    with_broken: scores.Estimate | None  # the error rate if groups break the rule, where some do

    @property
    def error(self) -> scores.Estimate:
        """The error rate, if all is as the rule says."""
        return self.curve[-1][1]

    @property
    def from_places(self) -> bool:
        """Whether groups seem to come from places that differ, so that no single number is said."""
        return self.places is not None and (self.places.shares_differ or self.places.columns_differ)

    @property
    def shown(self) -> scores.Estimate:
        """The error rate with all that speaks against the rule."""
        if self.from_places:
            assert self.places is not None
            return self.places.error
        return self.error if self.with_broken is None else self.with_broken

    @property
    def absurd(self) -> bool:
        """Whether groups and unlabeled rows differ by more than the class, and by more than places
        do, so that no estimate holds.
        """
        estimate = self.classifier.prior_estimate_
        misfits = estimate is not None and estimate.verdict == "does not fit"
        return misfits or self.shown.high < 0 or self.shown.low > 1

    @property
    def constant(self) -> float:
        """How often one answer for all rows is right."""
        return max(self.classifier.prior_, 1 - self.classifier.prior_)
