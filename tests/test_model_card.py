"""The model card of a fitted classifier says what it learned from, in every form of the data."""

from __future__ import annotations

import numpy as np
import pytest

from mdpu.data import TupleData
from mdpu.estimator import MDPUClassifier, TupleClassifier
from mdpu.groups import join_groups
from mdpu.model_card import model_card

DATA = np.random.default_rng(0)
TUPLES = [DATA.normal(size=(size, 3)) for size in [2] * 30 + [3] * 10]
UNLABELED = DATA.normal(size=(50, 3))
SIZES = ["40 tuples and 50 unlabeled rows", "- 30 tuples of 2: at least half", "- 10 tuples of 3: at least half"]
FORMS = {
    "tuples": (TUPLES, UNLABELED),
    "groups": join_groups(TUPLES, UNLABELED),
    "sample": TupleData.gather(TUPLES, UNLABELED),
}


@pytest.fixture(scope="module")
def classifier():
    return MDPUClassifier(prior=0.4, learner="linear", random_state=0).fit(TUPLES, UNLABELED)


@pytest.mark.parametrize("form", FORMS)
def test_it_states_the_sample_and_the_risk(classifier, form):
    card = model_card(classifier, *FORMS[form], held_out=FORMS[form])
    risk = classifier.risk_estimate(*FORMS[form])
    for text in (*SIZES, "0.400 of the unlabeled", "for 3 features", f"{risk.low:.3f} to {risk.high:.3f}", "## Limits"):
        assert text in card


def test_a_law_is_stated_by_its_weights():
    pairs = (TUPLES[:30], UNLABELED)
    classifier = TupleClassifier(prior=0.6, law=(0, 1, 0), learner="linear", random_state=0).fit(*pairs)
    assert "30 tuples of 2: groups with 0 to 2 positives are collected with the weights 0, 1, 0" in model_card(
        classifier, *pairs
    )


def test_without_held_out_tuples_it_claims_no_risk(classifier):
    assert "Not estimated" in model_card(classifier, *FORMS["tuples"])
