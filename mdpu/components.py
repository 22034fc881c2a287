"""Principal components of rows that may have more columns than there are rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def principal_components(
    centred: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest variances of rows, and the directions that have them.

    The covariances of columns and the products of rows have the same eigenvalues. The smaller of
    the two matrices is decomposed, so that a picture may have many more pixels than there are
    pictures.

    Parameters
    ----------
    centred : ndarray, shape (N, d)
        Rows less their centre.
    count : int
        How many directions, at most the lesser of N and d.

    Returns
    -------
    variances : ndarray, shape (count,)
        From the largest on.
    directions : ndarray, shape (d, count)
        Each of length 1.
    """
    n_rows, n_columns = centred.shape
    largest = slice(None, -count - 1, -1)
    if n_columns <= n_rows:
        variances, directions = np.linalg.eigh(centred.T @ centred / n_rows)
        return variances[largest], directions[:, largest]

    variances, weights = np.linalg.eigh(centred @ centred.T / n_rows)
    directions = centred.T @ weights[:, largest]
    lengths = np.linalg.norm(directions, axis=0)
    return variances[largest], directions / np.where(lengths > 0, lengths, 1.0)
