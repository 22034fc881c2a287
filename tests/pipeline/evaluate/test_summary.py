"""The report's first screen."""

import pandas as pd
import pytest

from mdpu.pipeline.evaluate.comparison import compare
from mdpu.pipeline.evaluate.published import BASELINES, PROPOSED, published_summary
from mdpu.pipeline.evaluate.summary import (
    counted,
    headline,
    lines,
    scope,
    scope_apart,
    verdict_counts,
)

RULE = {"level": 0.95, "margin": 1.0, "wider_margin": 2.0}
LETTERS = {"emnist-letters": "emnist-letters", "emnist-letters-a-i": "emnist-letters"}
CELLS = pd.DataFrame({"method": ["ure", "abs", "ure"], "mean": 80.0})


def compared(shift=None, names=None, readings=None, methods=(*PROPOSED, *BASELINES)):
    """Return comparisons of the paper's own means, shifted by method, with small deviations."""
    names = names or {"mnist": "mnist"}
    paper = published_summary()
    frames = [
        paper[paper["dataset"] == theirs].assign(dataset=ours) for ours, theirs in names.items()
    ]
    cells = pd.concat(frames).query("method in @methods")
    cells = cells.assign(
        mean=cells["mean"] + cells["method"].map(shift or {}).fillna(0.0), std=0.1, trials=5
    )
    return compare(cells.assign(diverged=0, first_epoch=91, last_epoch=100), names, RULE, readings)


def test_the_headline_counts_every_verdict_and_the_next_sentence_says_what_was_run():
    run = compared({"relu": 40.0, "kmeans": 40.0})
    verdicts = run.loc[run["method"].isin(PROPOSED), "verdict"].value_counts()
    reproduced, close, inconclusive, differ = (
        verdicts.get(name, 0) for name in ("reproduced", "close", "inconclusive", "differs")
    )
    assert headline(run, CELLS) == (
        f"Of the 36 numbers of the paper that were run, {reproduced} are reproduced, {close} "
        f"close, {inconclusive} inconclusive, and {differ} differ."
    )
    assert scope(run, {"mnist": "MNIST"}) == (
        "The paper has 252 numbers of URE, ReLU and ABS. These, in 5 trials each, are on 1 of 7 "
        "datasets: MNIST."
    )
    assert scope_apart(run, {}) == ""


def test_a_number_that_two_readings_were_run_for_counts_once():
    """The letters A to I are what the numbers imply."""
    run = compared(names=LETTERS)
    stated = (run["dataset"] == "emnist-letters") & run["method"].isin(PROPOSED)
    run.loc[stated[stated].index[:30], "verdict"] = "differs"
    assert headline(run, CELLS).startswith("Of the 36 numbers")
    assert headline(run, CELLS).endswith("and 0 differ.")
    said = scope(run, {"emnist-letters-a-i": "A-I"})
    assert said.endswith("1 of 7 datasets: emnist-letters (read as A-I).")
    assert {row["compared"] for row in verdict_counts(run)} == {12}
    assert {row["counts"]["differs"] for row in verdict_counts(run)} == {0}


def test_images_in_another_split_are_counted_apart_and_in_one_reading():
    names = {"mnist": "mnist", "own": "emnist-balanced", "own-digits": "emnist-balanced"}
    readings = {"own": "own split", "own-digits": "own split, as the numbers imply"}
    run = compared({"relu": 40.0}, names, readings)
    assert set(run.loc[run["verdict"] != "not run", "reading"]) == {"as stated", *readings.values()}
    assert headline(run, CELLS).startswith("Of the 36 numbers of the paper that were run, ")
    assert scope(run, {}).endswith("are on 1 of 7 datasets: mnist.")
    apart = scope_apart(run, {})
    assert apart.startswith(
        "Of emnist-balanced (read as own-digits), 36 numbers were run in our own split"
    )
    assert {row["compared"] for row in verdict_counts(run)} == {12}
    assert [line.text for line in lines(run, [], CELLS)] == [
        line.text for line in lines(run.query("dataset == 'mnist'"), [], CELLS)
    ]
    alone = compared({}, {"own": "emnist-balanced"}, readings)
    assert "36 numbers of the paper that were run in a split of our own, " in headline(alone, CELLS)
    assert scope(alone, {}).endswith("are on 1 of 7 datasets: emnist-balanced.")
    assert scope_apart(alone, {}) == ""


def test_of_two_datasets_of_ones_own_that_stand_for_one_number_the_first_counts():
    run = compared({"relu": 40.0}, {"first": "mnist", "second": "mnist"})
    assert headline(run, CELLS).startswith("Of the 36 numbers of the paper that were run, ")
    assert set(counted(run)["dataset"]) == {"first"}

    apart = dict.fromkeys(["first", "second"], "own split")
    run = compared({"relu": 40.0}, {"first": "mnist", "second": "mnist"}, apart)
    assert headline(run, CELLS).startswith(
        "Of the 36 numbers of the paper that were run in a split"
    )
    assert set(counted(run)["dataset"]) == {"first"}


@pytest.mark.parametrize(
    ("verification", "said"),
    [
        (None, "URE and ABS, 3 cells; none of them is in the paper."),
        (
            {"cells": 3, "within": 2},
            "2 of 3 expected numbers confirmed, for URE and ABS. None of them is in the paper.",
        ),
    ],
)
def test_without_a_published_number_the_headline_says_what_was_run(verification, said):
    run = compared().assign(verdict="not run")
    assert headline(run, CELLS, verification) == said
    assert verdict_counts(run) == []
    assert lines(run, [], CELLS) == []
    beside = CELLS.assign(tuple_size=2, prior="0.5", n=1, dataset="digits")
    *_, means = lines(run, [], beside, "quick-pairs")
    assert (
        means.text.startswith("Mean accuracy over the tables: ") and means.section == "quick-pairs"
    )


def test_a_line_says_what_its_evidence_says():
    claims = [{"status": status} for status in ("holds", "fails", "not run")]
    rows = {"dataset": "mnist", "tuple_size": 2, "prior": "0.5"}
    accuracies = {"ure": 80.0, "relu-part": 82.0, "abs": 81.0}
    cells = pd.DataFrame(
        [
            {**rows, "n": n, "method": m, "mean": v - n}
            for n in (1, 2)
            for m, v in accuracies.items()
        ]
    )
    said = lines(compared({"ure": -0.5, "siamese": -40.0}), claims, cells, "extended")
    assert [line.text for line in said] == [
        "Ours minus the paper’s, in points on average: URE −0.5, ReLU +0.0, ABS +0.0; 0 differ.",
        "Ours minus the paper’s, in points on average: Siamese −40.0, Contrastive +0.0, K-Means "
        "+0.0; 12 differ.",
        "The paper’s claims that these runs can check. Hold: 1; hold partly: 0; fail: 1; "
        "inconclusive: 0.",
        "ReLU (part) is above the best of URE, ReLU and ABS, as trained here, in 2 of 2 rows, +1.0 "
        "points on average.",
    ]
    assert [line.section for line in said] == ["comparisons", "comparisons", "claims", "extended"]
