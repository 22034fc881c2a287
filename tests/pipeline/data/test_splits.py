"""Splits: the law of the tuples, dominance, pools, and what is said when a pool is too small."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from mdpu.data import draw_split
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.pipeline.data.diagnostics import diagnose
from mdpu.pipeline.data.splits import draw, read_split, write_split

# 40 images left out, 60 positive, 20 negative, well mixed.
LABELS = np.array([1, -1, 0, 1, 0, 1] * 20, dtype=np.int8)

GOLDEN = {
    (True, True): (
        [[111, 90, 52], [115, 78, 119], [69, 81, 95], [24, 12, 87]],
        [91, 108, 90, 101, 30],
    ),
    (False, True): (
        [[41, 96, 49], [52, 72, 45], [17, 111, 24], [84, 119, 65]],
        [58, 66, 108, 41, 57],
    ),
    (True, False): (
        [[27, 30, 115], [7, 83, 90], [71, 69, 29], [72, 45, 89]],
        [100, 39, 102, 5, 114],
    ),
    (False, False): (
        [[96, 18, 112], [28, 51, 54], [75, 90, 30], [107, 3, 77]],
        [37, 78, 9, 102, 114],
    ),
}


@pytest.mark.parametrize(("replacement", "overlap"), GOLDEN)
def test_splits_are_the_pinned_ones(replacement, overlap):
    labels = np.array([1, -1, 0, 1, -1, 1] * 20, dtype=np.int8)
    split = draw_split(labels, 3, 0.4, 4, 5, 11, replacement, overlap)
    assert (split.tuples.tolist(), split.unlabeled.tolist()) == GOLDEN[replacement, overlap]


@given(
    size=st.integers(1, 7),
    prior=st.floats(0.01, 0.99),
    n=st.integers(1, 40),
    n_unlabeled=st.integers(1, 40),
    seed=st.integers(0, 1000),
    overlap=st.booleans(),
)
def test_every_tuple_is_dominant_and_nothing_left_out_is_drawn(size, prior, n, n_unlabeled, seed, overlap):
    split = draw_split(LABELS, size, prior, n, n_unlabeled, seed, replacement=True, overlap=overlap)
    assert split.tuples.shape == (n, size)
    assert split.unlabeled.shape == (n_unlabeled,)
    assert split.tuples.dtype == split.unlabeled.dtype == np.int64
    assert (LABELS[split.tuples].sum(axis=1) >= 0).all()
    assert (LABELS[split.tuples] != 0).all()
    assert (LABELS[split.unlabeled] != 0).all()


def test_unlabeled_images_are_positive_at_the_prior():
    """Exact binomial test at 1e-6 for each of three priors."""
    for prior in (0.1, 0.4, 0.6):
        split = draw_split(LABELS, 2, prior, 1, 20_000, 3)
        positives = int((LABELS[split.unlabeled] == 1).sum())
        assert stats.binomtest(positives, 20_000, prior).pvalue > 1e-6


def test_images_of_a_side_are_drawn_alike():
    """Chi-square over the images of each side, at 1e-6 each."""
    split = draw_split(LABELS, 3, 0.5, 20_000, 20_000, 9)
    for members in (split.tuples.ravel(), split.unlabeled):
        for side in (1, -1):
            counts = np.bincount(members, minlength=LABELS.size)[side == LABELS]
            assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("overlap", [True, False])
def test_without_replacement_no_image_is_drawn_twice_in_one_part(overlap):
    split = draw_split(LABELS, 2, 0.6, 12, 12, 1, replacement=False, overlap=overlap)
    assert len(np.unique(split.tuples)) == split.tuples.size
    assert len(np.unique(split.unlabeled)) == split.unlabeled.size


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_without_overlap_tuples_and_unlabeled_share_no_image(replacement, seed):
    split = draw_split(LABELS, 2, 0.6, 12, 12, seed, replacement=replacement, overlap=False)
    assert not set(split.tuples.ravel()) & set(split.unlabeled)


@given(
    positives=st.integers(2, 4),
    negatives=st.integers(2, 4),
    n=st.integers(1, 200),
    n_unlabeled=st.integers(1, 200),
    seed=st.integers(0, 50),
)
def test_with_replacement_two_images_of_a_side_serve_both_parts_without_overlap(
    positives, negatives, n, n_unlabeled, seed
):
    """A cut in proportion would leave the smaller part none."""
    labels = np.array([1] * positives + [-1] * negatives, dtype=np.int8)
    split = draw_split(labels, 2, 0.5, n, n_unlabeled, seed, replacement=True, overlap=False)
    assert not set(split.tuples.ravel()) & set(split.unlabeled)


@given(
    positives=st.integers(5, 60),
    negatives=st.integers(5, 60),
    size=st.integers(1, 5),
    prior=st.sampled_from([0.2, 0.4, 0.5, 0.6, 0.8]),
    seed=st.integers(0, 20),
    overlap=st.booleans(),
)
def test_the_largest_n_that_is_named_fits_and_the_next_does_not(positives, negatives, size, prior, seed, overlap):
    labels = np.array([1] * positives + [-1] * negatives, dtype=np.int8)

    def draw(n):
        return draw_split(labels, size, prior, n, n, seed, replacement=False, overlap=overlap)

    with pytest.raises(UserError, match="without replacement") as error:
        draw(300)
    match = re.search(r"the largest n that fits M = (\d+), prior ([0-9.]+) is (\d+)$", str(error.value))
    assert match is not None
    assert (int(match[1]), float(match[2])) == (size, prior)
    largest = int(match[3])
    with pytest.raises(UserError, match="without replacement"):
        draw(largest + 1)
    assume(largest > 0)
    assert len(draw(largest).tuples) == largest


def test_a_side_without_images_is_named():
    with pytest.raises(UserError, match="no negative training image"):
        draw_split(np.ones(50, dtype=np.int8), 2, 0.5, 50, 50, 1)


def test_a_split_survives_its_file_and_holds_no_labels(tmp_path):
    split = draw_split(LABELS, 3, 0.5, 7, 9, 1)
    write_split(split, tmp_path / "split.npz")
    with np.load(tmp_path / "split.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["tuples", "unlabeled"]
    again = read_split(tmp_path / "split.npz")
    assert np.array_equal(again.tuples, split.tuples)
    assert np.array_equal(again.unlabeled, split.unlabeled)


# -- what the tuples left of a pool -------------------------------------------------------------

PAIRS = Law.dominant(2)


@pytest.mark.parametrize("replacement", [True, False])
def test_a_remainder_has_what_the_same_tuples_left_of_a_pool_at_the_prior(replacement):
    """60,000 images at 0.40 less 10,000 pairs leave 0.2875: here in small, over many pools."""
    labels = np.tile(LABELS, 20)
    fresh = [draw(labels, PAIRS, 0.4, 20, 80, f"{i}", replacement=replacement) for i in range(150)]
    rest = [draw(labels, PAIRS, 0.4, 20, 80, f"{i}", "remainder", replacement=replacement) for i in range(150)]
    for own, other in zip(fresh, rest, strict=True):
        assert np.array_equal(own.tuples, other.tuples)
        assert not np.isin(other.unlabeled, other.tuples).any() and (labels[other.unlabeled] != 0).all()
    assert np.mean([(labels[split.unlabeled] > 0).mean() for split in fresh]) == pytest.approx(0.4, abs=0.015)
    assert np.mean([(labels[split.unlabeled] > 0).mean() for split in rest]) == pytest.approx(0.2875, abs=0.015)
    errors = [diagnose(split, labels, PAIRS, 0.4, "remainder")["unlabeled"]["z"] for split in rest]
    assert abs(np.mean(errors)) < 0.25 and np.std(errors) == pytest.approx(1, abs=0.2)


def test_members_that_are_put_back_make_the_pool_whole():
    rest, whole = (draw(LABELS, PAIRS, 0.4, 9, 40, "a", kind) for kind in ("remainder", "put-back"))
    assert np.array_equal(whole.unlabeled, np.append(rest.unlabeled, rest.tuples))


@pytest.mark.parametrize(
    ("labels", "n", "options", "sentence"),
    [
        (LABELS, 30, {}, "does not hold these tuples; make n_unlabeled larger"),
        (LABELS[:20], 2, {"replacement": False}, "training images are no members, but the remainder needs"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(labels, n, options, sentence):
    n_unlabeled = 4 if n == 30 else 3
    with pytest.raises(UserError, match=sentence):
        for trial in range(20):
            draw(labels, PAIRS, 0.4, n, n_unlabeled, f"{trial}", "remainder", **options)
