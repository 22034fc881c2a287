"""The data of the examples: pairs of scikit-learn's digits with at least one even member, and unlabeled digits."""

import numpy as np
from sklearn.datasets import load_digits

from mdpu.data import TupleData, draw_split
from mdpu.law import Law

LAW, PRIOR = Law.dominant(2), 0.5


def read(n: int = 800) -> tuple[np.ndarray, np.ndarray, TupleData, TupleData]:
    """Return images (1797, 8, 8) from 0 to 1, labels, the data to learn from, and other data to watch."""
    pixels, digits = load_digits(return_X_y=True)
    labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
    parts = labels.copy(), labels.copy()
    parts[0][900:], parts[1][:900], parts[1][1200:] = 0, 0, 0  # 0 is left out; the last 597 test
    train, held = (draw_split(part, LAW, PRIOR, n, 2 * n, trial=0) for part in parts)
    return (pixels / 16).astype(np.float32).reshape(-1, 8, 8), labels, train, held
