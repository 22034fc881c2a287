"""Labels of groups that come from places whose shares of positives differ."""

import numpy as np


def labels_of_groups(rng, n, size, number, prior, variance=0.0, broken=0.0):
    """Labels (n, M) of groups that keep the dominant law, but for a share that breaks it.

    They are the first ones of `number` random groups. `variance` is that of the places' shares, in
    parts of the largest.
    """
    shares = np.full(number, prior)
    if variance:
        total = 1 / variance - 1
        shares = rng.beta(total * prior, total * (1 - prior), number)
    labels = rng.random((number, size)) < shares[:, None]
    keeps = 2 * labels.sum(axis=1) >= size
    n_broken = round(broken * n)
    return np.concatenate([labels[~keeps][:n_broken], labels[keeps][: n - n_broken]])
