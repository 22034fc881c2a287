"""Which learners are compared, and what names one."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learners.choice import candidates, named_learner
from mdpu.learners.network import Network
from mdpu.learners.student import Linear, Student
from mdpu.sample import Bags, Sample


def names(rows, n, size=2, law_of=Law.dominant, **options):
    """Return the names of the learners that are compared on n tuples."""
    data = TupleData(np.zeros((n, size), np.int64), np.arange(2))
    learners, reason = candidates(Sample(rows, Bags.of(data, law_of, **options)))
    assert bool(reason) == (len(learners) == 1)
    return [learner.name for learner in learners]


@pytest.mark.parametrize(
    ("rows", "n", "expected"),
    [
        (np.zeros((9, 8, 8)), 99, ["student"]),
        (np.zeros((9, 8, 8)), 100, ["student", "linear", "network"]),
        (np.zeros((9, 8)), 20_000, ["student", "linear", "network"]),
        (np.zeros((9, 8)), 20_001, ["network"]),
        (np.full((9, 8, 8), np.nan), 100, ["student", "linear"]),
        (np.full((9, 8), np.nan), 100, ["student", "linear", "network"]),
        (sparse.csr_matrix((9, 8)), 99, ["linear"]),
        (sparse.csr_matrix((9, 8)), 100, ["student", "linear"]),
        (sparse.csr_matrix((9, 8)), 20_001, ["linear"]),
    ],
)
def test_rows_and_the_number_of_tuples_say_what_is_compared(rows, n, expected):
    assert names(rows, n) == expected


def test_tuples_of_several_laws_have_no_network():
    counts = (np.arange(200) % 2, np.arange(200) % 2 + 1)
    assert names(np.zeros((9, 8)), 200, counts=counts) == ["student", "linear"]
    assert names(np.zeros((9, 8)), 200, counts=(1, 1), complete=True) == ["student", "linear"]
    assert names(np.zeros((9, 8)), 200, counts=(1, 1)) == ["student", "linear", "network"]


def test_a_parameter_names_a_learner():
    assert named_learner("auto") is None
    assert isinstance(named_learner("linear"), Linear)
    assert named_learner("student") == Student()
    assert isinstance(named_learner("network"), Network)
    network = Network(n_epochs=3)
    assert named_learner(network) is network
    forest = RandomForestClassifier()
    assert named_learner(forest) == Student(forest)
    with pytest.raises(UserError, match="learner"):
        named_learner("forest")


def test_learners_say_what_rows_they_take():
    takes = {
        "student": (True, True),
        "linear": (True, True),
        "network": (False, True),
    }
    for name, (is_sparse, is_missing) in takes.items():
        learner = named_learner(name)
        assert (learner.takes_sparse, learner.takes_missing) == (is_sparse, is_missing)
    assert not Network(standardize=False).takes_missing
    forest = named_learner(RandomForestClassifier())
    assert forest.takes_sparse and forest.takes_missing
