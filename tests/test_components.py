"""Principal components: the same by columns and by rows, beside a singular value decomposition."""

import numpy as np
import pytest

from mdpu.components import principal_components


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (9, 9)], ids=str)
def test_components_are_those_of_a_singular_value_decomposition(shape):
    rows = np.random.default_rng(0).standard_normal(shape)
    centred = rows - rows.mean(axis=0)

    variances, directions = principal_components(centred, 3)

    _, singular, expected = np.linalg.svd(centred, full_matrices=False)
    assert variances == pytest.approx(singular[:3] ** 2 / len(rows))
    assert np.abs(expected[:3] @ directions) == pytest.approx(np.eye(3), abs=1e-9)


def test_rows_that_are_all_alike_have_no_variance():
    variances, directions = principal_components(np.zeros((3, 8)), 2)
    assert variances.tolist() == [0, 0]
    assert np.isfinite(directions).all()
