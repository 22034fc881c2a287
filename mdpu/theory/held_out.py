"""Two estimates of a classifier's error from its answers on bags, without labels.

A classifier's answers on a tuple matter only through their number of positives, because positions are uniform. So the
shares of tuples with 0 .. M positive answers, and the share of positive answers among unlabeled images, are all that
either estimate needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpu.theory.joint import dominance, dominance_rate, fewest_positives
from mdpu.theory.law import risk_weights

Floats = NDArray[np.float64]


def member_risk(counts: ArrayLike, unlabeled: ArrayLike, prior: float) -> Floats:
    """Return the unbiased estimate of the error rate (Theorem 1, Eq. 11, with the 0-1 loss).

    Parameters
    ----------
    counts : array_like, shape (..., M + 1)
        Shares of tuples with 0 .. M positive answers.
    unlabeled : array_like, shape (...)
        Share of positive answers among unlabeled images.
    prior : float
        pi_+.

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    UserError
        If there is no member, or `prior` is out of range.
    """
    shares, rate = np.asarray(counts, np.float64), np.asarray(unlabeled, np.float64)
    size = shares.shape[-1] - 1
    member_rate = shares @ (np.arange(size + 1) / max(1, size))
    weights = risk_weights(size, prior)
    return np.asarray(
        weights.tuple_positive * (1 - member_rate)
        + weights.tuple_negative * member_rate
        + weights.unlabeled_positive * (1 - rate)
        + weights.unlabeled_negative * rate
    )


def bag_risk(counts: ArrayLike, unlabeled: ArrayLike, prior: float) -> Floats:
    """Return the PU estimate of the share of bags that are put on the wrong side (du Plessis et al., 2015).

    A bag is called dominant if at least half of its members are called positive. With "yes" for that answer, the
    estimate is Z P_T[no] + P_U[yes] - Z P_T[yes]. Unlabeled images are independent, so P_U[yes] follows from their
    share of positive answers. Parameters and errors are those of `member_risk`.
    """
    shares, rate = np.asarray(counts, np.float64), np.asarray(unlabeled, np.float64)
    size = shares.shape[-1] - 1
    yes = shares[..., fewest_positives(size) :].sum(axis=-1)
    unlabeled_yes = dominance(np.repeat(rate[..., None], size, axis=-1))
    return np.asarray(dominance_rate(size, prior) * (1 - 2 * yes) + unlabeled_yes)
