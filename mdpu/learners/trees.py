"""Boosted regression trees of the joint objective, stopped by the held-out bag loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.tree import DecisionTreeRegressor

from mdpu.learners.features import flat
from mdpu.learners.joint import Bags, Floats, Objective, shifted
from mdpu.learners.linear import split_folds
from mdpu.randomness import Stream

LEAVES = 8
RATE = 0.2
LARGEST = 200  # trees of a fold
PATIENCE = 15
STEP = 4.0  # largest move of a leaf, before the rate


@dataclass(frozen=True)
class TreeScore:
    """The mean score of the folds' boosted trees.

    Attributes
    ----------
    base : float
        What is added to the trees, so that the mean probability of the unlabeled rows is the prior.
    folds : list of list of DecisionTreeRegressor
    """

    base: float
    folds: list[list[DecisionTreeRegressor]]

    def __call__(self, rows: Any) -> Floats:
        """Return the scores (N,) of rows, which may have missing values."""
        x = flat(rows).astype(np.float32)
        sums = np.zeros(len(x))
        for trees in self.folds:
            for tree in trees:
                sums += RATE * tree.predict(x)
        return self.base + sums / len(self.folds)


def fit_trees(rows: Any, bags: Bags, prior: float, seed: int | str, folds: int = 5) -> TreeScore:
    """Fit the trees: each takes a Newton step against the derivative of the objective, with new groups.

    Parameters
    ----------
    rows : ndarray, shape (N, ...)
        They may have missing values, and need no scaling.
    bags : Bags
    prior : float
    seed : int or str
    folds : int
    """
    x = flat(rows).astype(np.float32)
    base = float(logit(prior))
    models = []
    for fold, (kept, held) in enumerate(split_folds(bags, seed, folds)[0]):
        objective = Objective(kept, prior, len(x), Stream(seed, "groups", fold), groupings=1)
        judge = Objective(held, prior, len(x), Stream(seed, "held-out groups", fold))
        used = np.unique(np.concatenate([*(part.tuples.ravel() for part in kept.parts), kept.unlabeled]))
        number = int(Stream(seed, "trees", fold).integers(2**31 - 1, 1)[0])
        scores = np.full(len(x), base)
        trees: list[DecisionTreeRegressor] = []
        losses = [judge.bag_loss(scores)]
        while len(trees) < LARGEST and len(losses) - int(np.argmin(losses)) <= PATIENCE:
            objective.regroup()
            slope = -objective(scores)[1][used] * kept.n
            r = expit(scores[used])
            tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=10, random_state=number)
            tree.fit(x[used], slope)
            leaves = tree.apply(x[used])
            total = np.bincount(leaves, slope, tree.tree_.node_count)
            curvature = np.bincount(leaves, r * (1 - r), tree.tree_.node_count)
            steps = np.clip(total / (curvature + 1.0), -STEP, STEP)
            tree.tree_.value[:, 0, 0] = steps
            scores = scores + RATE * tree.predict(x)
            trees.append(tree)
            losses.append(judge.bag_loss(scores))
        models.append(trees[: int(np.argmin(losses))])
    unshifted = TreeScore(base, models)
    return TreeScore(base + shifted(unshifted(rows[bags.unlabeled]), prior), models)
