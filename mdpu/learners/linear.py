"""A linear model of the joint objective, cross-fitted over tuples, on any features: raw ones,
sparse ones, a kernel's.

It learns in each fold from the tuples of the others, along a path of ridge penalties; the held-out
bag loss chooses penalty and features. The mean of the folds' models answers, and the held-out
scores are kept for what follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logit

from mdpu.components import principal_components
from mdpu.data import TupleData
from mdpu.law import Law
from mdpu.learners.features import Standardisation
from mdpu.learners.joint import Floats, JointObjective, shifted
from mdpu.randomness import Stream
from mdpu.sample import Bags, only_used

# of the mean objective of a tuple, from strong to weak
RIDGES = (0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5)
NEAR = 0.1  # difference of class share and prior below which a constant score is nearly a saddle
# share of a tuple's information that single members keep, up to which a network uses the start
FEW = 0.2
COMPONENTS = 20  # of the whitened features in which a start is sought


@dataclass(frozen=True)
class CrossFit:
    """Linear models of the folds, and what they say of rows that they did not see.

    Attributes
    ----------
    features : int
        Number of the chosen features.
    ridge, loss : float
        The chosen penalty and its held-out bag loss; 2 log 2 is that of a constant score.
    coefficients : ndarray, shape (folds, d)
    intercepts : ndarray, shape (folds,)
    tuple_scores : list of ndarray, shapes (n_s, M_s)
        Held-out scores of the members of each size.
    unlabeled_scores : ndarray, shape (n_unlabeled,)
        Held-out scores.
    tuple_folds : list of ndarray, shapes (n_s,)
    unlabeled_folds : ndarray, shape (n_unlabeled,)
    """

    features: int
    ridge: float
    loss: float
    coefficients: Floats
    intercepts: Floats
    tuple_scores: list[Floats]
    unlabeled_scores: Floats
    tuple_folds: list[NDArray[np.int64]]
    unlabeled_folds: NDArray[np.int64]

    def scores(self, features: Any) -> Floats:
        """Return the mean score (N,) of the folds' models."""
        return np.asarray(features @ self.coefficients.mean(axis=0) + self.intercepts.mean())


def cross_fit(
    candidates: Sequence[Any],
    bags: Bags,
    prior: float,
    *,
    seed: int | str,
    folds: int = 3,
    ridges: Sequence[float] = RIDGES,
    at_most: int | None = None,
    aligned: bool = False,
) -> CrossFit:
    """Fit linear models on all folds but one each, and choose features and penalty by the held-out
    bag loss.

    Parameters
    ----------
    candidates : sequence of matrices, shapes (N, d)
        Features of all rows, dense or sparse.
    bags : Bags
    prior : float
        The given prior.
    seed : int or str
        Seed of folds and groups.
    folds : int
    ridges : sequence of float
        From strong to weak.
    at_most : int, optional
        Tuples that a model is fitted to, at most.
    aligned : bool
        Whether the classes are exchanged in models that correlate negatively with most others. They
        always are where all laws are symmetric: with the classes exchanged, the objective is nearly
        the same, and at prior 1/2 exactly, so folds choose a side by chance.
    """
    pairs, tuple_folds, unlabeled_folds = split_folds(bags, seed, folds, at_most)
    learned = []
    held_out = []
    for fold, (kept, held) in enumerate(pairs):
        learned.append(JointObjective(kept, prior, bags.n_rows, Stream(seed, "groups", fold)))
        groups = Stream(seed, "held-out groups", fold)
        held_out.append(JointObjective(held, prior, bags.n_rows, groups))

    least = np.inf
    for number, features in enumerate(candidates):
        paths = [_path(features, objective, prior, ridges) for objective in learned]
        for place, ridge in enumerate(ridges):
            models = [path[place] for path in paths]
            loss = _held_out_loss(features, models, held_out)
            if loss < least:
                least = loss
                best = number, ridge, np.stack(models)

    number, ridge, chosen = best
    everywhere = np.stack([_at(candidates[number], model) for model in chosen])  # (folds, N)
    if aligned or all(law.is_symmetric for law in bags.laws):
        exchanged = in_minority(everywhere[:, bags.unlabeled])
        chosen, everywhere = exchange(exchanged, chosen, everywhere, prior)
    tuple_scores = []
    for fold_of_tuple, part in zip(tuple_folds, bags.parts, strict=True):
        tuple_scores.append(everywhere[fold_of_tuple[:, None], part.tuples])
    return CrossFit(
        features=number,
        ridge=ridge,
        loss=least,
        coefficients=chosen[:, :-1],
        intercepts=chosen[:, -1],
        tuple_scores=tuple_scores,
        unlabeled_scores=everywhere[unlabeled_folds, bags.unlabeled],
        tuple_folds=tuple_folds,
        unlabeled_folds=unlabeled_folds,
    )


def _held_out_loss(
    features: Any, models: Sequence[Floats], held_out: Sequence[JointObjective]
) -> float:
    """Return the mean loss of the folds' models on what each did not see."""
    losses = []
    for model, objective in zip(models, held_out, strict=True):
        losses.append(objective.bag_loss(_at(features, model)))
    return float(np.mean(losses))


def split_folds(
    bags: Bags, seed: int | str, folds: int, at_most: int | None = None
) -> tuple[list[tuple[Bags, Bags]], list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the bags to learn from and those held out in each fold, and the folds of tuples and of
    unlabeled rows.

    The bags to learn from have no row that is held out, even if rows are in several tuples or also
    unlabeled, unless that would leave less than half, as in a small pool from which all are drawn.
    """
    stream = Stream(seed, "folds of tuples")
    folds = max(2, min(folds, bags.n, len(bags.unlabeled)))
    tuple_folds = [stream.permutation(len(part.tuples)) % folds for part in bags.parts]
    unlabeled_folds = stream.permutation(len(bags.unlabeled)) % folds
    pairs = []
    for fold in range(folds):
        inside = [part == fold for part in tuple_folds]
        outside = [part != fold for part in tuple_folds]
        held = bags.select(inside, unlabeled_folds == fold)
        kept = _without_rows_of(held, bags, outside, unlabeled_folds != fold, at_most)
        if kept.n == 0:  # with a single tuple, no fold can be without it
            kept = bags
        pairs.append((kept, held))
    return pairs, tuple_folds, unlabeled_folds


def _without_rows_of(
    held: Bags,
    bags: Bags,
    tuples: Sequence[NDArray[np.bool_]],
    unlabeled: NDArray[np.bool_],
    at_most: int | None,
) -> Bags:
    """Return the chosen bags, at most `at_most` tuples, without those that hold a row that is held
    out.
    """
    seen = np.zeros(bags.n_rows, bool)
    seen[held.unlabeled] = True
    seen[held.members] = True

    def free(chosen: NDArray[np.bool_], sees: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return what is chosen and unseen, or all in a small pool, where rows recur too often to
        be left out.
        """
        unseen = chosen & ~sees
        return unseen if 2 * unseen.sum() >= chosen.sum() else chosen

    masks = []
    for mask, part in zip(tuples, bags.parts, strict=True):
        chosen = free(mask, np.asarray(seen[part.tuples].any(axis=1)))
        if at_most is not None:
            chosen &= np.cumsum(chosen) <= max(1, at_most * len(part.tuples) // bags.n)
        masks.append(chosen)
    rest = free(unlabeled, seen[bags.unlabeled])
    if at_most is not None:
        most = max(2 * at_most, at_most * len(bags.unlabeled) // bags.n)
        rest &= np.cumsum(rest) <= most
    return bags.select(masks, rest)


def _at(features: Any, model: Floats) -> Floats:
    """Return the scores of a model (d + 1,), whose last number is the intercept."""
    return np.asarray(features @ model[:-1] + model[-1])


def in_minority(scores: Floats) -> NDArray[np.bool_]:
    """Return which rows of scores (folds, N) correlate negatively with most others."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    is_against_first = centred @ centred[0] < 0
    if 2 * is_against_first.sum() > len(scores):
        return ~is_against_first
    return is_against_first


def exchange(
    exchanged: NDArray[np.bool_], models: Floats, scores: Floats, prior: float
) -> tuple[Floats, Floats]:
    """Return models (folds, d + 1) and their scores (folds, N) with the classes exchanged in some
    folds.

    A score is the log-odds log pi p / (1 - pi) q, which becomes log pi q / (1 - pi) p.
    """
    signs = np.where(exchanged, -1.0, 1.0)[:, None]
    moved = np.where(exchanged, 2 * logit(prior), 0.0)[:, None]
    models = models * signs
    models[:, -1:] += moved
    return models, scores * signs + moved


def _path(
    features: Any, objective: JointObjective, prior: float, ridges: Sequence[float]
) -> list[Floats]:
    """Return the models (d + 1,) of all penalties, each started from the one before or from
    `start`.
    """
    rows = features[: objective.rows]

    def penalised(model: Floats, ridge: Any) -> tuple[float, Floats]:
        value, by_score = objective(_at(rows, model))
        gradient = np.append(rows.T @ by_score + 2 * ridge * model[:-1], by_score.sum())
        return value + ridge * float(model[:-1] @ model[:-1]), gradient

    options: Any = {"maxiter": 100, "maxcor": 20, "ftol": 1e-6}
    begin = start(rows, objective, prior)
    model = begin
    models = []
    for ridge in ridges:
        first = min((model, begin), key=lambda candidate: penalised(candidate, ridge)[0])
        model = minimize(
            partial(penalised, ridge=ridge), first, jac=True, method="L-BFGS-B", options=options
        ).x
        models.append(model)
    return models


def start(features: Any, objective: JointObjective, prior: float) -> Floats:
    """Return a model (d + 1,) to start from: a constant, or `second_moments` where that is nearly a
    saddle.
    """
    if any(abs(law.coefficients(prior).denominator) >= NEAR for law in objective.bags.laws):
        return _constant(features, prior)
    return second_moments(features, objective, prior)


def _constant(features: Any, prior: float) -> Floats:
    return np.append(np.zeros(features.shape[1]), logit(prior))


def second_moments(features: Any, objective: JointObjective, prior: float) -> Floats:
    """Return a linear model (d + 1,) from the second moments of the tuples, or a constant one if
    that is better.

    Where the class share of members equals the prior, their mean says nothing, but the products z_i
    z_j of different members have the expectation kappa delta delta', with kappa = P11 - 2 pi a +
    pi^2 and delta the difference of the class means. The leading eigenvector is a direction, and
    slope and intercept are fitted to the objective.
    """
    constant = _constant(features, prior)
    if all(law.size == 1 for law in objective.bags.laws):
        return constant
    whiten, mean = _whitening(features, objective.bags)  # (d, C), (d,)
    best = constant
    least = objective(_at(features, constant))[0]
    for direction in _directions(features, objective.bags, prior, whiten, mean):
        coefficients = whiten @ direction
        offset = float(mean @ coefficients)
        line = np.asarray(features @ coefficients) - offset

        def along(ab: Floats, line: Floats = line) -> tuple[float, Floats]:
            value, by_score = objective(ab[0] * line + ab[1])
            return value, np.array([by_score @ line, by_score.sum()])

        fitted = minimize(
            along, [1.0, float(logit(prior))], jac=True, method="L-BFGS-B", options={"maxiter": 30}
        )
        if fitted.fun < least:
            slope, shift = fitted.x
            best = np.append(slope * coefficients, shift - slope * offset)
            least = float(fitted.fun)
    return best


def _directions(
    features: Any, bags: Bags, prior: float, whiten: Floats, mean: Floats
) -> list[Floats]:
    """Return the directions, in whitened features, in which the classes may differ: both signs of
    the leading eigenvector, and that of the members' mean.
    """
    width = whiten.shape[1]
    if not width:  # all unlabeled rows are alike
        return []
    moment = np.zeros((width, width))
    first = np.zeros(width)
    for part in bags.parts:
        size = part.law.size
        if size == 1:
            continue
        z = features[part.tuples.ravel()] @ whiten - mean @ whiten
        z = np.asarray(z).reshape(-1, size, width)  # (n, M, C)
        share = part.law.coefficients(prior).a
        kappa = part.law.both_positive(prior) - 2 * prior * share + prior**2
        total = z.sum(axis=1)
        of_others = total.T @ total - np.einsum("nmc,nmd->cd", z, z)
        pairs = of_others / (size * (size - 1))
        moment += np.sign(kappa) * pairs / bags.n
        first += np.sign(share - prior) * z.mean(axis=1).sum(axis=0) / bags.n
    leading = np.linalg.eigh((moment + moment.T) / 2)[1][:, -1]
    return [leading, -leading, first / max(float(np.linalg.norm(first)), 1e-12)]


def network_start(
    rows: Any, sample: TupleData, law: Law, prior: float, seed: int | str
) -> Floats | None:
    """Return linear scores (N,) of rows that a network's scores begin with, or None where it needs
    no such start.

    A law that rises and falls with the number of positives, and of which single members keep at
    most `FEW` of the information, lets networks from random weights end with the classes exchanged:
    exactly one of three at 1/3 did in 10 of 10 runs. The dominant law never does. The scores have
    unit variance over the unlabeled rows, since larger ones leave nothing for the network to learn,
    and the prior as their mean probability.

    Parameters
    ----------
    rows : ndarray, shape (N, ...)
        uint8 or floats; those that the sample does not name get the score 0.
    sample : TupleData
        Tuples of one size.
    law : Law
    prior : float
    seed : int or str
    """
    if (
        not law.at(prior).turns
        or sample.is_ragged
        or law.marginal_information(prior) > FEW * law.joint_information(prior)
    ):
        return None
    used, data = only_used(rows, sample)
    features = Standardisation.learn(used)(used)
    bags = Bags.of(data, lambda size: law)
    objective = JointObjective(bags, prior, len(used), Stream(seed, "start"))
    coefficients = second_moments(features, objective, prior)[:-1]
    line = features @ coefficients
    deviation = line[bags.unlabeled].std()
    if deviation == 0:
        return None
    line = line / deviation
    scores = np.zeros(len(rows))
    scores[sample.tuples] = line[data.tuples]
    scores[sample.unlabeled] = line[data.unlabeled]
    return scores + shifted(line[bags.unlabeled], prior)


def _whitening(features: Any, bags: Bags) -> tuple[Floats, Floats]:
    """Return a matrix (d, C) that whitens the leading components of the unlabeled rows, and their
    mean (d,).
    """
    unlabeled = features[bags.unlabeled]
    mean = np.asarray(unlabeled.mean(axis=0)).ravel()
    components = min(COMPONENTS, *unlabeled.shape)
    if sparse.issparse(features):
        components = min(components, min(unlabeled.shape) - 1)
        values, vectors = sparse.linalg.svds(unlabeled.astype(float), k=components)[1:]
        deviations = values / np.sqrt(len(bags.unlabeled))
        vectors = vectors.T
    else:
        centred = unlabeled - mean
        variances, vectors = principal_components(centred, components)
        deviations = np.sqrt(np.maximum(variances, 0))
    usable = deviations > 1e-6 * deviations.max()
    return vectors[:, usable] / deviations[usable], mean
