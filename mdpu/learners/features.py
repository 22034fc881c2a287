"""Features of rows: robust standardisation, principal components of wide tables and pictures, a
kernel's features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem

from mdpu.components import principal_components
from mdpu.learners.joint import Floats
from mdpu.randomness import Stream

BOUND = 5.0  # standard deviations beyond which a value is an outlier, and is pulled back
COMPONENTS = 50  # of pictures with more than twice as many pixels, and of wide tables
# columns of a table beyond which it is projected: one column of 105 that matters is lost with a
# chance of 1/2
WIDE = 500
SEEN = 5000  # rows that centre, scale and directions are learned from
PART = 4096  # rows that are turned into doubles at once
KERNEL = 200
WIDTHS = (0.25, 1.0, 4.0)  # of the kernel, as multiples of the common one


@dataclass(frozen=True)
class Standardisation:
    """Centre and scale of each column, learned without its outliers; missing values become the
    centre.

    Attributes
    ----------
    centre, scale : ndarray, shape (d,)
        Mean and standard deviation with the outer twentieths pulled in. A column that is constant
        without them has its plain standard deviation, or 1.
    directions : ndarray, shape (d, components), optional
        Principal components, with one common scale.
    """

    centre: Floats
    scale: Floats
    directions: Floats | None = None
    bound = BOUND

    @classmethod
    def learn(cls, rows: NDArray[Any], components: int | None = COMPONENTS) -> Standardisation:
        """Learn from rows (N, ...), which may have missing values; by default, wide ones are
        projected.

        If there are many rows, `SEEN` of them, spread over all, are used.
        """
        x = flat(rows[:: max(1, len(rows) // SEEN)])
        inner = _without_gaps(x)
        low, high = np.percentile(inner, [5, 95], axis=0)
        clipped = np.clip(inner, low, high)
        centre = clipped.mean(axis=0)
        scale = clipped.std(axis=0)
        scale = np.where(scale > 0, scale, inner.std(axis=0))
        learned = cls(centre, np.where(scale > 0, scale, 1.0))

        are_pixels = rows.ndim > 2 or rows.dtype == np.uint8
        widest = 2 * COMPONENTS if are_pixels else WIDE
        if components is None or len(x) <= components or np.count_nonzero(scale) <= widest:
            return learned
        if are_pixels:
            # They share a unit: one scale for all, so that dead ones are not blown up. Columns of a
            # table do not.
            common = np.sqrt((learned.scale**2).mean()) or 1.0
            learned = cls(centre, np.full_like(centre, common))
        return cls(centre, learned.scale, _directions(learned(x), components))

    def __call__(self, rows: NDArray[Any]) -> Floats:
        """Return standardised rows, (N, d) or (N, components)."""
        parts = []
        for first in range(0, max(1, len(rows)), PART):
            z = (flat(rows[first : first + PART]) - self.centre) / self.scale
            z = np.nan_to_num(np.clip(z, -BOUND, BOUND))
            if self.directions is not None:
                z = z @ self.directions
            parts.append(z)
        return np.concatenate(parts)


def _without_gaps(x: Floats) -> Floats:
    """Return rows (N, d) whose missing values are the median of their column."""
    missing = np.isnan(x)
    if not missing.any():
        return x
    empty = missing.all(axis=0)
    middle = np.nan_to_num(np.nanmedian(np.where(empty, 0.0, x), axis=0))
    return np.where(missing, middle, x)


def _directions(z: Floats, components: int) -> Floats:
    """Return principal components (d, components) of standardised rows, with one common scale."""
    directions = principal_components(z, components)[1]
    unit = np.sqrt(((z @ directions) ** 2).mean()) or 1.0
    return directions / unit


def flat(rows: NDArray[Any]) -> Floats:
    """Return rows (N, ...) as doubles (N, d)."""
    return np.asarray(rows, np.float64).reshape(len(rows), -1)


def kernel_maps(
    rows: Floats, seed: int | str, widths: tuple[float, ...] = WIDTHS
) -> list[Nystroem]:
    """Return Gaussian kernels of several widths, approximated on a random part of standardised rows
    (Nystroem).
    """
    draws = Stream(seed, "kernel")
    chosen = draws.permutation(len(rows))[: 5 * KERNEL]
    part = rows[chosen]
    from_mean = ((part - part.mean(axis=0)) ** 2).sum(axis=1)
    distance = 2 * float(from_mean.mean()) or 1.0  # mean of its square, between two rows
    state = int(draws.integers(2**31 - 1, 1)[0])
    components = min(KERNEL, len(part))
    maps = []
    for width in widths:
        gamma = 1 / (width * distance)
        kernel = Nystroem(gamma=gamma, n_components=components, random_state=state)
        maps.append(kernel.set_output(transform="default").fit(part))
    return maps
