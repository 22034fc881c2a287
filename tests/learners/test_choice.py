"""Which learner is the default, and what names one."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learners.choice import default_learner, named_learner
from mdpu.learners.network import Network
from mdpu.learners.student import Linear, Student
from mdpu.sample import Bags, Sample


def default(rows, n, size=2, law_of=Law.dominant, **options):
    """Return the name of the learner that n tuples get."""
    data = TupleData(np.zeros((n, size), np.int64), np.arange(2))
    learner, reason = default_learner(Sample(rows, Bags.of(data, law_of, **options)))
    assert reason
    return learner.name


PICTURES = np.zeros((9, 8, 8))
TABLE = np.zeros((9, 8))
TEXTS = sparse.csr_matrix((9, 8))


@pytest.mark.parametrize(
    ("rows", "n", "expected"),
    [
        (PICTURES, 999, "student"),
        (PICTURES, 1000, "network"),
        (PICTURES * np.nan, 20_001, "student"),
        (TABLE, 20_000, "student"),
        (TABLE, 20_001, "network"),
        (TABLE * np.nan, 20_001, "network"),
        (TEXTS, 20_000, "student"),
        (TEXTS, 20_001, "linear"),
    ],
)
def test_rows_and_the_number_of_tuples_decide(rows, n, expected):
    assert default(rows, n) == expected


def test_tuples_that_networks_do_not_take_have_the_student():
    several = (np.arange(1000) % 2, np.arange(1000) % 2 + 1)
    assert default(PICTURES, 1000, counts=several) == "student"
    assert default(PICTURES, 1000, counts=(1, 1), complete=True) == "student"
    assert default(PICTURES, 1000, counts=(1, 1)) == "network"


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
