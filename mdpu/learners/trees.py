"""Boosted regression trees of the joint objective, stopped by the held-out bag loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

from mdpu.learners.features import Standardisation, flat
from mdpu.learners.joint import Bags, Floats, Objective, shifted
from mdpu.learners.linear import split_folds, start
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
    shift : float
        What is added, so that the mean probability of the unlabeled rows is the prior.
    prepare : Standardisation
    begun : list of ndarray, shapes (d + 1,)
        The linear model of standardised rows from which each fold's trees start (`mdpu.learners.linear.start`).
    folds : list of list of DecisionTreeRegressor
    """

    shift: float
    prepare: Standardisation
    begun: list[Floats]
    folds: list[list[DecisionTreeRegressor]]

    def __call__(self, rows: Any) -> Floats:
        """Return the scores (N,) of rows, which may have missing values."""
        x = flat(rows).astype(np.float32)
        z = self.prepare(rows)
        sums = np.zeros(len(x))
        for model, trees in zip(self.begun, self.folds, strict=True):
            sums += z @ model[:-1] + model[-1]
            for tree in trees:
                sums += RATE * tree.predict(x)
        return self.shift + sums / len(self.folds)


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
    prepare = Standardisation.learn(rows)
    z = prepare(rows)
    begun, models = [], []
    for fold, (kept, held) in enumerate(split_folds(bags, seed, folds)[0]):
        objective = Objective(kept, prior, len(x), Stream(seed, "groups", fold), groupings=1)
        judge = Objective(held, prior, len(x), Stream(seed, "held-out groups", fold))
        used = np.unique(np.concatenate([*(part.tuples.ravel() for part in kept.parts), kept.unlabeled]))
        number = int(Stream(seed, "trees", fold).integers(2**31 - 1, 1)[0])
        begun.append(start(z[: objective.rows], objective, prior))
        scores = z @ begun[-1][:-1] + begun[-1][-1]
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
    scores = TreeScore(0.0, prepare, begun, models)(rows[bags.unlabeled])
    return TreeScore(shifted(scores, prior), prepare, begun, models)
