"""Every random number of the project, derived from (seed, purpose, indices) and nothing else.

Only `SeedSequence` and the raw 64-bit stream of `PCG64` are used. numpy guarantees that these two
never change, but not the methods of `Generator`. So a split drawn today is the one that another
machine draws in ten years.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from mdpu.errors import UserError


class Stream:
    """A stream of random numbers named by a seed, a purpose and any further indices.

    Parameters
    ----------
    seed : int or str
        The trial, >= 0, or a text that names it.
    purpose : str
        What the numbers are for, e.g. ``"tuple labels"``; streams of different purposes are
        independent.
    *indices : int
        Further non-negative coordinates, e.g. an epoch.
    """

    def __init__(self, seed: int | str, purpose: str, *indices: int) -> None:
        if not isinstance(seed, str) and seed < 0:
            raise UserError(f"a seed is {seed}; an integer of at least 0 is needed")
        words = [*hashlib.sha256(seed.encode()).digest()] if isinstance(seed, str) else [int(seed)]
        entropy = [*words, *indices, *purpose.encode()]
        self._bits = np.random.PCG64(np.random.SeedSequence(entropy))

    def uniform(self, *shape: int) -> NDArray[np.float64]:
        """Draw doubles uniform on [0, 1), of the given shape."""
        raw = self._bits.random_raw(int(np.prod(shape, dtype=np.int64)))
        return (raw >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53

    def integers(self, high: int, *shape: int) -> NDArray[np.int64]:
        """Draw integers uniform on 0 .. high - 1 (bias below high / 2**53), of the given shape."""
        return (self.uniform(*shape) * high).astype(np.int64)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Draw a permutation of 0 .. n - 1."""
        return np.argsort(self.uniform(n), kind="stable").astype(np.int64)
