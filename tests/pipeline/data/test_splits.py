"""Splits: the law of the tuples, dominance, pools, and the file of a cell."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from mdpu.data import draw_split
from mdpu.errors import UserError
from mdpu.law import Law, named_law
from mdpu.pipeline.data.splits import describe_split, write_split
from mdpu.pipeline.files import load_npz, save_npz

# 40 images left out, 60 positive, 20 negative, well mixed.
LABELS = np.array([1, -1, 0, 1, 0, 1] * 20, dtype=np.int8)

GOLDEN = {
    (True, True): [
        [111, 90, 52],
        [115, 78, 119],
        [69, 81, 95],
        [24, 12, 87],
        [91, 108, 90, 101, 30],
    ],
    (False, True): [
        [41, 96, 49],
        [52, 72, 45],
        [17, 111, 24],
        [84, 119, 65],
        [58, 66, 108, 41, 57],
    ],
    (True, False): [[27, 30, 115], [7, 83, 90], [71, 69, 29], [72, 45, 89], [100, 39, 102, 5, 114]],
    (False, False): [
        [96, 18, 112],
        [28, 51, 54],
        [75, 90, 30],
        [107, 3, 77],
        [37, 78, 9, 102, 114],
    ],
}


@pytest.mark.parametrize(("replacement", "overlap"), GOLDEN)
def test_splits_are_the_pinned_ones(replacement, overlap):
    labels = np.array([1, -1, 0, 1, -1, 1] * 20, dtype=np.int8)
    split = draw_split(labels, 3, 0.4, 4, 5, 11, replacement, overlap)
    assert [*split.tuples.tolist(), split.unlabeled.tolist()] == GOLDEN[replacement, overlap]


# -- drawing ---------------------------------------------------------------------------------------


@given(
    size=st.integers(1, 7),
    prior=st.floats(0.01, 0.99),
    n=st.integers(1, 40),
    n_unlabeled=st.integers(1, 40),
    seed=st.integers(0, 1000),
    overlap=st.booleans(),
)
def test_every_tuple_is_dominant_and_nothing_left_out_is_drawn(
    size, prior, n, n_unlabeled, seed, overlap
):
    split = draw_split(LABELS, size, prior, n, n_unlabeled, seed, overlap=overlap)
    assert (split.tuples.shape, split.unlabeled.shape) == ((n, size), (n_unlabeled,))
    hidden = LABELS[split.tuples]
    assert (
        (hidden.sum(axis=1) >= 0).all()
        and (hidden != 0).all()
        and (LABELS[split.unlabeled] != 0).all()
    )
    found = describe_split(split, LABELS)
    assert found["tuples"] == [int(((hidden == 1).sum(axis=1) == k).sum()) for k in range(size + 1)]
    assert (found["members"], found["unlabeled"]) == (
        (hidden == 1).mean(),
        (LABELS[split.unlabeled] == 1).mean(),
    )


@pytest.mark.parametrize("law", ["dominant", "similar", "exactly-1", "at-least-2", "0.1,1,0,0.5"])
@pytest.mark.parametrize("prior", [0.1, 0.4, 0.7])
def test_tuples_and_unlabeled_images_follow_law_and_prior(law, prior):
    """Tests of the counts, and of the images of a side, at 1e-6 each."""
    split = draw_split(LABELS, named_law(law, 3), prior, 5000, 20_000, 7)
    found = describe_split(split, LABELS)
    chances = named_law(law, 3).counts(prior)
    counts = np.array(found["tuples"])
    assert not counts[chances == 0].any()
    assert (chances > 0).sum() == 1 or stats.chisquare(
        counts[chances > 0], 5000 * chances[chances > 0]
    ).pvalue > 1e-6
    assert stats.binomtest(round(found["unlabeled"] * 20_000), 20_000, prior).pvalue > 1e-6
    for members in (split.tuples.ravel(), split.unlabeled):
        for side in (1, -1):
            assert (
                stats.chisquare(np.bincount(members, minlength=LABELS.size)[side == LABELS]).pvalue
                > 1e-6
            )


@pytest.mark.parametrize("overlap", [True, False])
def test_without_replacement_no_image_is_drawn_twice_in_one_part(overlap):
    split = draw_split(LABELS, 2, 0.6, 12, 12, 1, replacement=False, overlap=overlap)
    assert (np.unique(split.tuples).size, np.unique(split.unlabeled).size) == (24, 12)


@given(
    st.tuples(st.integers(2, 4), st.integers(2, 4)),
    st.integers(1, 200),
    st.integers(1, 200),
    st.integers(0, 50),
)
def test_without_overlap_two_images_of_a_side_serve_both_parts(sides, n, n_unlabeled, seed):
    """A cut in proportion would leave the smaller part none."""
    labels = np.repeat(np.array([1, -1], dtype=np.int8), sides)
    split = draw_split(labels, 2, 0.5, n, n_unlabeled, seed, replacement=True, overlap=False)
    assert not set(split.tuples.ravel()) & set(split.unlabeled)


@given(
    sides=st.tuples(st.integers(5, 60), st.integers(5, 60)),
    size=st.integers(1, 5),
    prior=st.sampled_from([0.2, 0.4, 0.5, 0.6, 0.8]),
    seed=st.integers(0, 20),
    overlap=st.booleans(),
)
def test_the_largest_n_that_is_named_fits_and_the_next_does_not(sides, size, prior, seed, overlap):
    def drawn(n):
        labels = np.repeat(np.array([1, -1], dtype=np.int8), sides)
        return draw_split(labels, size, prior, n, n, seed, replacement=False, overlap=overlap)

    with pytest.raises(UserError, match="replacement") as error:
        drawn(300)
    largest = int(re.findall(r"\d+", str(error.value))[-1])
    with pytest.raises(UserError, match="replacement"):
        drawn(largest + 1)
    assume(largest > 0)
    assert len(drawn(largest).tuples) == largest


# -- the file of a cell ----------------------------------------------------------------------------

SPEC = {
    "tuple_size": 3,
    "prior": "0.4",
    "n": 7,
    "n_unlabeled": 20,
    "trials": {"1": "a/seed1", "12": "a/seed12"},
}


@pytest.fixture
def labels(tmp_path):
    save_npz(tmp_path / "labels.npz", train=LABELS, test=LABELS)
    return tmp_path / "labels.npz"


@pytest.mark.parametrize(
    ("law", "more"),
    [
        (Law.dominant(3), {}),
        (Law.dominant(3), {"overlap": False, "replacement": False, "n": 2, "broken": 0.0}),
        (named_law("exactly-1", 3), {"law": "exactly-1", "n": 2}),
        (named_law("0,0.2,1,1", 3).broken(0.3), {"law": "0,0.2,1,1", "broken": 0.3}),
    ],
)
def test_a_file_holds_the_trial_of_each_seed(tmp_path, labels, law, more):
    write_split(labels, tmp_path / "split.npz", SPEC | more)
    options = {key: value for key, value in more.items() if key in ("overlap", "replacement")}
    for seed, trial in SPEC["trials"].items():
        expected = draw_split(LABELS, law, 0.4, more.get("n", 7), 20, trial, **options)
        tuples, unlabeled = load_npz(
            tmp_path / "split.npz", f"tuples_{seed}", f"unlabeled_{seed}"
        ).values()
        assert np.array_equal(tuples, expected.tuples) and np.array_equal(
            unlabeled, expected.unlabeled
        )
    with np.load(tmp_path / "split.npz", allow_pickle=False) as archive:  # and no labels
        assert sorted(archive) == ["tuples_1", "tuples_12", "unlabeled_1", "unlabeled_12"]
    with pytest.raises(UserError, match=r"split\.npz.*tuples_2"):
        load_npz(tmp_path / "split.npz", "tuples_2")


@pytest.mark.parametrize(
    "change", [{"prior": "1.5"}, {"n": 0}, {"law": "most"}, {"n": 60, "replacement": False}]
)
def test_what_cannot_be_drawn_is_refused_and_nothing_written(tmp_path, labels, change):
    with pytest.raises(UserError):
        write_split(labels, tmp_path / "split.npz", SPEC | change)
    assert not (tmp_path / "split.npz").exists()
