"""The interval of a share over cases that are not independent of one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special


def share_interval(holding: ArrayLike, cases: ArrayLike, level: float) -> tuple[float, float]:
    """Return the interval of a share by clusters of cases, after Korn and Graubard (1998).

    The cases of a cluster may depend on one another in any way, but clusters are independent. The dependence is
    estimated from the differences between clusters: the effective number of cases is that of independent cases with the
    same variance. The interval is Clopper and Pearson's for this number. It is missing if fewer than two clusters have
    cases. If all cases hold, or none, the clusters do not differ, and each counts as one case.
    """
    all_cases = np.asarray(cases, float)
    count = all_cases[all_cases > 0]
    hold = np.asarray(holding, float)[all_cases > 0]
    clusters, total = len(count), count.sum()
    if clusters < 2:
        return np.nan, np.nan
    share = hold.sum() / total
    if share in (0, 1):
        effective = float(clusters)
    else:
        variance = clusters / (clusters - 1) * np.sum((hold - share * count) ** 2) / total**2
        few = special.stdtrit(total - 1, (1 + level) / 2) / special.stdtrit(clusters - 1, (1 + level) / 2)
        effective = min(total, share * (1 - share) / variance * few**2 if variance > 0 else total * few**2)
    tail = (1 - level) / 2
    held, failed = effective * share, effective * (1 - share)
    low = special.betaincinv(held, failed + 1, tail) if held else 0.0
    high = special.betaincinv(held + 1, failed, 1 - tail) if failed else 1.0
    return float(low), float(high)
