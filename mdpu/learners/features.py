"""Features of rows: robust standardisation, principal components of wide tables and pictures, a
kernel's features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem

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
        inner = x
        if np.isnan(x).any():
            middle = np.nan_to_num(np.nanmedian(np.where(np.isnan(x).all(axis=0), 0.0, x), axis=0))
            inner = np.where(np.isnan(x), middle, x)
        low, high = np.percentile(inner, [5, 95], axis=0)
        clipped = np.clip(inner, low, high)
        centre = clipped.mean(axis=0)
        scale = clipped.std(axis=0)
        scale = np.where(scale > 0, scale, inner.std(axis=0))
        learned = cls(centre, np.where(scale > 0, scale, 1.0))
        # Pixels share a unit: one scale for all, so that dead ones are not blown up. Columns of a
        # table do not.
        pixels = rows.ndim > 2 or rows.dtype == np.uint8
        most = 2 * COMPONENTS if pixels else WIDE
        if components is None or len(x) <= components or np.count_nonzero(scale) <= most:
            return learned
        if pixels:
            learned = cls(centre, np.full_like(centre, np.sqrt((learned.scale**2).mean()) or 1.0))
        z = learned(x)
        directions = np.linalg.eigh(z.T @ z / len(z))[1][:, : -components - 1 : -1]
        unit = np.sqrt(((z @ directions) ** 2).mean()) or 1.0
        return cls(centre, learned.scale, directions / unit)

    def __call__(self, rows: NDArray[Any]) -> Floats:
        """Return standardised rows, (N, d) or (N, components)."""
        parts = []
        for first in range(0, max(1, len(rows)), PART):
            z = (flat(rows[first : first + PART]) - self.centre) / self.scale
            z = np.nan_to_num(np.clip(z, -BOUND, BOUND))
            parts.append(z if self.directions is None else z @ self.directions)
        return np.concatenate(parts)


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
    part = rows[draws.permutation(len(rows))[: 5 * KERNEL]]
    # mean squared distance
    spread = 2 * float(((part - part.mean(axis=0)) ** 2).sum(axis=1).mean()) or 1.0
    state = int(draws.integers(2**31 - 1, 1)[0])
    maps = (
        Nystroem(gamma=1 / (w * spread), n_components=min(KERNEL, len(part)), random_state=state)
        for w in widths
    )
    return [one.set_output(transform="default").fit(part) for one in maps]
