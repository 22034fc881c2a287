"""The class prior, estimated from tuples and unlabeled images alone (``docs/explanation/bags.md``, Theorem 2).

A network is trained without the prior on a part of the sample. The held-out bags then determine the prior: scale and
shift maximise the likelihood of their tuples, log q - log Z(m), under r = sigmoid(scale * g + shift), where m is the
mean of r over the held-out unlabeled images. The estimate is this m. Scale and shift correct the distortion of r by a
network that memorises its tuples, so the estimate hardly depends on the epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi2

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import TINY, Law
from mdpu.learn.evaluation import HeldOut
from mdpu.learn.fitting import fit_each
from mdpu.learn.methods import bag_contrast
from mdpu.learn.task import PriorEstimate, Settings, Task
from mdpu.learn.tuning import hold_out
from mdpu.randomness import Stream

Floats = NDArray[np.float64]
CONTRAST = bag_contrast.__name__.rpartition(".")[2].replace("_", "-")
SHARE_OF_EPOCHS = 0.3
BOUND = 30.0  # of scaled scores: beyond it r is within 1e-13 of 0 or 1


@dataclass(frozen=True)
class Calibration:
    """Scale and shift of scores that maximise the likelihood of held-out tuples.

    Attributes
    ----------
    prior : float
        m, the mean of r over the unlabeled images.
    information : float
        Mean log-likelihood ratio of a tuple to M unlabeled images, in nats: what was learned about q.
    scale, shift : float
    """

    prior: float
    information: float
    scale: float
    shift: float


def calibrate(
    tuples: Floats, unlabeled: Floats, start: tuple[float, float] = (1.0, 0.0), law: Law | None = None
) -> Calibration:
    """Return the scale and shift of scores that maximise the likelihood of tuples.

    Parameters
    ----------
    tuples : ndarray, shape (n, M)
        Scores of the members of tuples that the network was not trained on.
    unlabeled : ndarray, shape (n_U,)
        Scores of unlabeled images that it was not trained on.
    start : (float, float)
        Scale and shift to start from.
    law : Law, optional
        The paper's by default.
    """
    size = tuples.shape[1]
    law = law or Law.dominant(size)

    def negative_likelihood(parameters: Floats) -> tuple[float, Floats]:
        scale, shift = float(np.exp(parameters[0])), float(parameters[1])
        tuple_scores, unlabeled_scores = (np.clip(scale * g + shift, -BOUND, BOUND) for g in (tuples, unlabeled))
        r, u = expit(tuple_scores), expit(unlabeled_scores)
        q = np.maximum(law.passes(r, 1.0 - r)[0], TINY)
        prior = float(u.mean())
        rate = max(law.rate(prior), TINY)
        # Derivatives by the shift, and by log scale, which is g times scale times that.
        by_score = law.slopes(r) * expit(-tuple_scores) * r / q[:, None]
        rate_slope = float(law.slopes(np.full(size, prior)).sum()) / rate
        by_prior = u * expit(-unlabeled_scores)
        by_scale = (by_score * tuples).sum(axis=1).mean() - rate_slope * (by_prior * unlabeled).mean()
        by_shift = by_score.sum(axis=1).mean() - rate_slope * by_prior.mean()
        return float(np.log(rate) - np.log(q).mean()), -np.array([scale * by_scale, by_shift])

    fitted = minimize(negative_likelihood, [np.log(start[0]), start[1]], jac=True, method="BFGS")
    scale, shift = float(np.exp(fitted.x[0])), float(fitted.x[1])
    prior = float(expit(np.clip(scale * unlabeled + shift, -BOUND, BOUND)).mean())
    return Calibration(prior, -float(fitted.fun), scale, shift)


class HeldOutBags(HeldOut):
    """Calibrates on held-out bags after each epoch, and keeps the scores of the epoch with the highest likelihood.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    held : TupleData
        Held-out tuples of one size, and unlabeled images among the images.
    law : Law, optional
    """

    def __init__(self, images: NDArray[Any], held: TupleData, law: Law | None = None) -> None:
        super().__init__(images, held, ("held_out_prior", "held_out_information"), self._calibrate)
        self._law = law
        self._shape = held.tuples.shape
        self._epoch = 0
        self.best: tuple[Calibration, int, Floats, Floats] | None = None

    def _calibrate(self, member_scores: torch.Tensor, unlabeled_scores: torch.Tensor) -> torch.Tensor:
        """Return the calibrated prior and the information of the one model, (1, 2)."""
        members, unlabeled = (scores[0].double().cpu().numpy() for scores in (member_scores, unlabeled_scores))
        tuples = members.reshape(self._shape)
        calibration = calibrate(tuples, unlabeled, law=self._law)
        self._epoch += 1
        if self.best is None or calibration.information > self.best[0].information:
            self.best = calibration, self._epoch, tuples, unlabeled
        return torch.tensor([[calibration.prior, calibration.information]])


def estimate_prior(
    images: NDArray[Any],
    sample: TupleData,
    settings: Settings,
    *,
    held_out: float = 0.2,
    level: float = 0.95,
    resamples: int = 200,
    seed: int | str = 0,
    device: torch.device | str = "auto",
    advance: Callable[[int], None] = lambda task_epochs: None,
    law: Law | None = None,
) -> PriorEstimate:
    """Estimate the class prior from tuples and unlabeled images alone.

    Parameters
    ----------
    images : ndarray, shape (N, ...)
    sample : TupleData
        Tuples of at least two members.
    settings : Settings
    held_out : float
        Share of tuples and of unlabeled images that the estimate uses.
    level : float
        Of the interval.
    resamples : int
        Number of bootstrap samples; with 0, the interval is the estimate itself.
    seed : int or str
        Of the training and of the bootstrap.
    device, advance
        As for `mdpu.learn.fitting.fit_each`.
    law : Law, optional
        Of the tuples; the paper's by default.

    Raises
    ------
    UserError
        If the law does not identify the prior, as tuples of one member, or a part of the sample would be empty.
    """
    size = sample.tuples.shape[1]
    if size < 2:
        raise UserError("tuples of one row do not say what the prior is; give tuples of at least two")
    if law is not None and law.identifies().what != "all":
        raise UserError("tuples of this law fit several priors (see Law.identifies); take a method that is told it")
    kept, held = hold_out(sample, held_out)
    evaluation = HeldOutBags(images, held, law)
    task = Task(CONTRAST, size, prior=0.5, seed=seed, law=law)  # this method does not use the prior
    for _ in fit_each([task], images, kept, settings, evaluation=evaluation, device=device, advance=advance):
        pass
    assert evaluation.best is not None
    best, epoch, tuples, unlabeled = evaluation.best
    # Twice the log-likelihood ratio against a constant r, which has one parameter less. The best of many epochs is
    # slightly too good, so this is a minimal requirement.
    known = bool(2 * len(tuples) * best.information > chi2.ppf(level, df=1))
    stream = Stream(seed, "prior bootstrap")
    resampled = [
        calibrate(
            tuples[stream.integers(len(tuples), len(tuples))],
            unlabeled[stream.integers(len(unlabeled), len(unlabeled))],
            (best.scale, best.shift),
            law,
        ).prior
        for _ in range(resamples)
    ] or [best.prior]
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return PriorEstimate(best.prior, float(low), float(high), level, best.information, epoch, known)


def brief_estimate(
    images: NDArray[Any],
    sample: TupleData,
    settings: Settings,
    seed: int | str,
    device: torch.device,
    law: Law | None = None,
) -> PriorEstimate:
    """Return the estimate for a method without a given prior, from `SHARE_OF_EPOCHS` of the training's epochs.

    If nothing is known about the prior, the result is a number nevertheless, so that the other runs of a study
    continue. Parameters and errors are those of `estimate_prior`.
    """
    brief = replace(settings, epochs=math.ceil(SHARE_OF_EPOCHS * settings.epochs))
    return estimate_prior(images, sample, brief, seed=seed, device=device, law=law)
