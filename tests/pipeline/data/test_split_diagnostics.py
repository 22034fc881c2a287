"""Splits are the same on every machine and in every version, and follow their law."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpu.data import TupleData, draw_split
from mdpu.law import Law
from mdpu.pipeline.config import load_config
from mdpu.pipeline.data.diagnostics import diagnose, summarize
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

PLAN = Plan(load_config([REPOSITORY / "config.yaml"]))


def stand_in(dataset):
    """Training labels with the known counts of a dataset, its sides alternating as long as both last."""
    counts = PLAN.dataset(dataset)["counts"]["train"]
    positive, negative = counts["positive"], counts["negative"]
    order = np.argsort(np.r_[np.arange(positive) / positive, np.arange(negative) / negative], kind="stable")
    return np.r_[np.ones(positive, np.int8), -np.ones(negative, np.int8)][order]


def digest(labels, dataset):
    """Digest of the split of triples at prior 0.4, seed 1, with the larger n of the tables."""
    n = max(run.n for run in PLAN.runs if run.dataset == dataset)
    split = draw_split(labels, 3, 0.4, n, n, 1)
    assert split.tuples.dtype == split.unlabeled.dtype == np.int64
    return hashlib.sha256(split.tuples.tobytes() + split.unlabeled.tobytes()).hexdigest()[:16]


STAND_INS = {
    "cifar-10": "1401e9b1871f4aea",
    "emnist-balanced": "fde4ffb5e59694df",
    "emnist-balanced-digits": "1f1dd26a2986347d",
    "emnist-digits": "d9adaaa0f497f032",
    "emnist-letters": "73147c2d2d52ae8c",
    "emnist-letters-a-i": "e3c3ffb4ad4550f7",
    "fashion-mnist": "6f76e7326f971b92",
    "mnist": "dadc13bbee28a802",
    "svhn": "dd0e9b6992a5a3bd",
}


@pytest.mark.parametrize("dataset", sorted(PLAN.datasets))
def test_a_split_is_the_same_everywhere(dataset):
    assert digest(stand_in(dataset), dataset) == STAND_INS[dataset]


SIDES = np.tile(np.array([1, -1, 0, -1], np.int8), 500)


@given(tuple_size=st.integers(1, 7), prior=st.floats(0.05, 0.95), n=st.integers(1, 400), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_diagnostics_tell_what_is_in_the_split(tuple_size, prior, n, seed):
    split = draw_split(SIDES, tuple_size, prior, n, 2 * n, seed)
    found = diagnose(split, SIDES, tuple_size, prior)
    hidden = SIDES[split.tuples]
    negatives = (hidden == -1).sum(axis=1)
    types = found["tuple_types"]
    assert types["observed"] == [int((negatives == k).sum()) for k in range(tuple_size // 2 + 1)]
    np.testing.assert_allclose(
        types["expected"], n * Law.dominant(tuple_size).counts(prior)[::-1][: tuple_size // 2 + 1]
    )
    assert found["tuple_members"]["observed"] == pytest.approx((hidden == 1).mean())
    assert found["tuple_members"]["law"] == pytest.approx(Law.dominant(tuple_size).coefficients(prior).a)
    assert found["unlabeled"]["observed"] == pytest.approx((SIDES[split.unlabeled] == 1).mean())
    assert found["unlabeled"]["law"] == prior
    assert 0 <= types["p_value"] <= 1
    distinct = found["distinct"]
    assert distinct["tuple_members"] == len(set(split.tuples.ravel().tolist()))
    assert distinct["unlabeled"] == len(set(split.unlabeled.tolist()))
    assert distinct["both"] == len(set(split.tuples.ravel().tolist()) & set(split.unlabeled.tolist()))


@pytest.mark.parametrize(("tuple_size", "prior", "n"), [(2, 0.5, 1000), (3, 0.4, 5000), (5, 0.6, 3000)])
def test_the_chi_square_test_is_pearsons(tuple_size, prior, n):
    types = diagnose(draw_split(SIDES, tuple_size, prior, n, n, 7), SIDES, tuple_size, prior)["tuple_types"]
    expected = scipy.stats.chisquare(types["observed"], types["expected"])
    assert types["chi_square"] == pytest.approx(expected.statistic)
    assert types["p_value"] == pytest.approx(expected.pvalue)
    assert types["degrees"] == tuple_size // 2


def test_types_too_rare_for_the_test_are_pooled():
    types = diagnose(draw_split(SIDES, 9, 0.95, 200, 200, 1), SIDES, 9, 0.95)["tuple_types"]
    assert min(types["expected"]) < 0.2
    assert 0 < types["degrees"] < 4
    assert types["p_value"] > 1e-6


def test_over_many_seeds_z_is_standard_normal_and_p_uniform():
    found = [diagnose(draw_split(SIDES, 3, 0.5, 600, 900, seed), SIDES, 3, 0.5) for seed in range(300)]
    for part in ("tuple_members", "unlabeled"):
        z = [one[part]["z"] for one in found]
        assert scipy.stats.kstest(z, "norm").pvalue > 0.01
    # With one degree of freedom the p-values take few values, so their distribution is compared coarsely.
    p = np.array([one["tuple_types"]["p_value"] for one in found])
    for level in (0.1, 0.5, 0.9):
        assert abs((p < level).mean() - level) < 0.1


def test_a_split_that_departs_from_the_law_shows():
    positive, negative = np.flatnonzero(SIDES == 1), np.flatnonzero(SIDES == -1)
    split = TupleData(np.stack([positive[:400], negative[:400]], axis=1), negative[:400])
    found = diagnose(split, SIDES, 2, 0.5)
    assert found["tuple_types"]["p_value"] < 1e-30
    assert found["tuple_members"]["z"] < -5
    assert found["unlabeled"]["z"] < -15


def test_a_summary_gives_the_worst_of_all():
    found = [diagnose(draw_split(SIDES, 3, 0.5, 500, 500, seed), SIDES, 3, 0.5) for seed in range(4)]
    summary = summarize(found)
    p = min(one["tuple_types"]["p_value"] for one in found)
    assert summary["splits"] == 4
    assert summary["p_value"] == p
    assert summary["adjusted"] == min(1, 4 * p)
    assert summary["unlabeled"]["z"] == max(abs(one["unlabeled"]["z"]) for one in found)
    assert summary["tuple_members"]["difference"] == max(
        abs(one["tuple_members"]["observed"] - one["tuple_members"]["law"]) for one in found
    )
