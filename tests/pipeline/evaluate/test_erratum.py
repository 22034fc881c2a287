"""docs/explanation/erratum.md: what is said there of the 504 numbers, of the counts of images, and
of formulas.
"""

import itertools
import re

import numpy as np
import pytest

from mdpu.law import Law
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.published import BASELINES, CORRECTED, PROPOSED, published_cells
from mdpu.pipeline.files import REPOSITORY

CELLS = published_cells()
DATASETS = load_config()["definitions"]["datasets"]
ROWS = CELLS.pivot(index=["table", "prior", "dataset"], columns="method", values="published_mean")


def test_one_bold_number_is_not_the_best_of_its_row():
    keys = ["table", "prior", "dataset"]
    best = CELLS.groupby(keys)["published_mean"].transform("max")
    wrong = CELLS[CELLS["published_bold"] & (CELLS["published_mean"] < best)]
    assert wrong[[*keys, "method"]].to_numpy().tolist() == [[5, "0.4", "emnist-letters", "abs"]]


def test_seven_numbers_stand_twice_with_their_deviations():
    twice = CELLS[CELLS.duplicated(["method", "published_mean", "published_std"], keep=False)]
    printed = twice[["published_mean", "published_std"]].to_numpy()
    assert {f"{mean:.2f} {std:.2f}" for mean, std in printed} == {
        "95.26 0.41",
        "57.23 2.00",
        "92.19 0.26",
        "93.11 0.06",
        "52.00 1.80",
        "51.07 0.48",
        "51.62 0.70",
    }


def test_one_corrected_number_is_below_that_of_ure():
    (below,) = ROWS[ROWS[["relu", "abs"]].min(axis=1) < ROWS["ure"]].itertuples()
    assert below.Index == (5, "0.4", "fashion-mnist")
    assert below.abs == 92.19
    assert below.ure == 94.06


def test_k_means_is_below_one_half_and_has_two_levels_for_one_task():
    assert sorted(ROWS["kmeans"][ROWS["kmeans"] < 50]) == [46.28, 48.43, 48.90]
    triples = ROWS["kmeans"].loc[[4, 5]].unstack("dataset")
    assert triples["mnist"].min() > 70
    assert triples["emnist-digits"].max() < 60


def test_a_baseline_is_above_ure_in_eleven_rows_and_never_above_a_correction():
    best = ROWS[list(BASELINES)].max(axis=1)
    above = best[best > ROWS["ure"]]
    assert len(above) == 11
    assert set(above.index.get_level_values("dataset")) == {"cifar-10", "svhn"}
    for method in CORRECTED:
        assert (best <= ROWS[method]).all()


@pytest.mark.parametrize(("smaller", "larger", "drops"), [(2, 3, (11, 9, 6)), (4, 5, (6, 5, 3))])
def test_more_data_lower_the_accuracy_in_many_rows(smaller, larger, drops):
    fall = ROWS.loc[larger] < ROWS.loc[smaller]
    assert tuple(fall[list(PROPOSED)].sum()) == drops


def test_thirteen_deviations_are_above_five_points():
    assert (CELLS["published_std"] > 5).sum() == 13


def test_counts_and_classes_of_the_datasets():
    assert sum(images_of("cifar-10").values()) == 50_000
    assert sum(images_of("emnist-balanced").values()) == 112_800
    for name, share in {"cifar-10": 0.60, "svhn": 0.61}.items():
        images = images_of(name)
        assert round(images["positive"] / sum(images.values()), 2) == share

    balanced = DATASETS["emnist-balanced"]
    assert len(balanced["positive"]) + len(balanced["negative"]) == 47


def images_of(name):
    """Return how many training images of each side a dataset has."""
    return DATASETS[name]["counts"]["train"]


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("emnist-letters-a-i", 8228),
        ("emnist-balanced-digits", 5142),
        ("mnist", 12639),
    ],
)
def test_the_larger_n_are_the_largest_that_fit_without_replacement(name, largest):
    share = Law.dominant(3).coefficients(0.6).a
    assert int(images_of(name)["positive"] / (3 * share)) == largest


def test_a_right_classifier_has_a_negative_risk_of_tuples():
    """Under the logistic loss l(z, +1) - l(z, -1) = -z, so R_T is negative where more than half are
    positive.
    """
    for size, prior in itertools.product(range(1, 11), np.linspace(0.1, 0.9, 9)):
        a, b, excess = Law.dominant(size).coefficients(prior)
        assert a + b == pytest.approx(1) and excess == pytest.approx(a - prior)
        assert -prior * (1 - prior) / excess * (a - b) < 0


@pytest.mark.parametrize("prior", [0.4, 0.5, 0.6])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar-10"])
def test_12_000_triples_and_as_many_unlabeled_images_do_not_fit_apart(name, prior):
    images = images_of(name)
    share = Law.dominant(3).coefficients(prior).a
    positive = 12_000 * (3 * share + prior)
    negative = 12_000 * (3 * (1 - share) + 1 - prior)
    assert positive > images["positive"] or negative > images["negative"]


def test_each_test_that_the_page_cites_exists():
    page = (REPOSITORY / "docs" / "explanation" / "erratum.md").read_text()
    cited = re.findall(r"test `(\w+)\.\.\.`", page)
    tests = "".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    assert cited
    assert [name for name in cited if f"def test_{name}" not in tests] == []
