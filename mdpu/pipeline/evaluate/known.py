"""Papers whose reading is known, because they are made of our own trials: how far a likelihood is
to be trusted.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpu.pipeline.evaluate.comparison import Array
from mdpu.pipeline.evaluate.model import Model
from mdpu.pipeline.evaluate.panel import Panel

POWERS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0])  # of a likelihood


class Papers(NamedTuple):
    """Likelihoods of papers that were made from a known reading, (papers, readings), and its
    place.
    """

    likelihood: Array
    truth: NDArray[np.int_]


def held_out(panel: Panel, trials: int) -> Papers:
    """Treat each choice of so many real trials of each reading as published, and predict from the
    others.

    Trials of one seed have the same tuples in every reading, so what is published is left out of
    all of them.
    """
    likelihoods = []
    seeds = range(panel.trials.shape[2])
    for combination in itertools.combinations(seeds, trials):
        chosen = list(combination)
        published = panel.trials[:, :, chosen]
        means = published.mean(axis=2)
        stds = None
        if trials > 1:
            stds = published.std(axis=2, ddof=1)
        rest = replace(panel, trials=np.delete(panel.trials, chosen, axis=2))
        model = Model(rest, trials)
        likelihoods.append(model.likelihood(means, stds).both)
    truth = np.tile(np.arange(len(panel.readings)), len(likelihoods))
    return Papers(np.concatenate(likelihoods), truth)


def best_power(panel: Panel, papers: Papers) -> float:
    """Return the power of the likelihood that gives the true readings the highest mean logarithm of
    the posterior.
    """
    rows = np.arange(len(papers.truth))
    scores = []
    for power in POWERS:
        of_truth = panel.posterior(papers.likelihood, power)[rows, papers.truth]
        scores.append(np.log(np.maximum(of_truth, 1e-300)).mean())
    return float(POWERS[int(np.argmax(scores))])
