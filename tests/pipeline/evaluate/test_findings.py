"""The sentences of the report's first screen."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from mdpu.pipeline.config import available_methods
from mdpu.pipeline.evaluate.comparison import compare
from mdpu.pipeline.evaluate.findings import bars, findings, headline, in_words, opening
from mdpu.pipeline.evaluate.published import BASELINES, PROPOSED, family, published_summary

RULE = {"level": 0.95, "margin": 1.0, "wider_margin": 2.0}
LETTERS = {"emnist-letters": "emnist-letters", "emnist-letters-a-i": "emnist-letters"}


def compared(shift=None, names=None, methods=(*PROPOSED, *BASELINES)):
    """Return comparisons of the paper's own means, shifted by method, with small deviations."""
    names = names or {"mnist": "mnist"}
    paper = published_summary()
    frames = [paper[paper["dataset"] == theirs].assign(dataset=ours) for ours, theirs in names.items()]
    cells = pd.concat(frames).query("method in @methods")
    cells = cells.assign(mean=cells["mean"] + cells["method"].map(shift or {}).fillna(0.0), std=0.1, trials=5)
    return compare(cells.assign(diverged=0, first_epoch=91, last_epoch=100), names, RULE)


def test_the_headline_counts_agreement_and_names_what_does_not():
    run = compared({"relu": 40.0, "siamese": -40.0, "kmeans": 40.0})
    assert headline(run, TITLES) == (
        "24 of the 36 numbers of the proposed methods agree with the paper or cannot be told apart from it; "
        "two of three baselines do not."
    )


@pytest.mark.parametrize(
    ("shift", "methods", "sentence"),
    [
        ({}, (*PROPOSED, *BASELINES), "so do most numbers of Siamese, Contrastive and K-Means."),
        (dict.fromkeys(BASELINES, 40.0), (*PROPOSED, *BASELINES), "Siamese, Contrastive and K-Means do not."),
        ({"siamese": 40.0}, (*PROPOSED, "siamese"), "Siamese does not."),
        ({}, PROPOSED, "apart from it."),
    ],
)
def test_the_headline_speaks_of_the_baselines_that_were_run(shift, methods, sentence):
    assert headline(compared(shift, methods=methods), TITLES).endswith(sentence)


def test_a_number_that_two_readings_were_run_for_counts_once():
    """The letters A to I are what the numbers imply."""
    run = compared(names=LETTERS)
    stated = (run["dataset"] == "emnist-letters") & run["method"].isin(PROPOSED)
    run.loc[stated[stated].index[:30], "verdict"] = "differs"
    titles = {"emnist-letters": "Letters", "emnist-letters-a-i": "Letters A-I"}
    said = headline(run, titles)
    assert said.startswith("36 of the 36 numbers of")
    assert said.endswith(" Letters is read here as its numbers imply; read as the paper states it, 6 of 36 do.")
    assert {bar["compared"] for bar in bars(run)} == {12}
    assert {bar["counts"]["differs"] for bar in bars(run)} == {0}


def test_the_reading_of_the_paper_counts_where_no_other_was_run():
    said = headline(compared(names={"emnist-letters": "emnist-letters"}), {})
    assert said.startswith("36 of the 36 numbers of") and "read as" not in said


def test_without_a_published_number_there_is_no_headline():
    assert headline(compared().assign(verdict="not run"), {}) == ""
    assert bars(compared().assign(verdict="not run")) == []


def summarized(means, dataset="mnist", n=10000, **changes):
    """Return cells of pairs as they are summarized, from means by method and prior."""
    key = {"dataset": dataset, "variant": "base", "tuple_size": 2, "n": n, "loss": "logistic", "trials": 3, **changes}
    return pd.DataFrame(
        [
            {**key, "method": m, "prior": p, "mean": value}
            for m, by_prior in means.items()
            for p, value in by_prior.items()
        ]
    )


TITLES = {"mnist": "MNIST", "digits": "Handwritten digits"}
NOT_COMPARED = compared().assign(verdict="not run")


def test_the_report_opens_with_the_papers_numbers_where_they_were_run():
    cells = summarized({"bag-relu": {"0.5": 99.0}})
    verification = {"cells": 3, "within": 3, "largest_difference": 0.1}
    run = compared()
    assert opening(run, cells, TITLES, {"mnist": "mnist"}, verification) == headline(run, TITLES) != ""


@pytest.mark.parametrize(
    ("within", "largest", "sentence"),
    [
        (
            4,
            0.668,
            "The expected numbers are confirmed in 4 of 4 cells: URE and ABS on Handwritten digits, three trials each, "
            "differ from them by at most 0.67 points.",
        ),
        (
            0,
            None,
            "The expected numbers are confirmed in 0 of 4 cells: URE and ABS on Handwritten digits, three trials each.",
        ),
    ],
    ids=["confirmed", "diverged"],
)
def test_a_quick_experiment_is_told_by_its_expected_numbers(within, largest, sentence):
    cells = summarized({"abs": {"0.4": 80.0, "0.5": 81.0}, "ure": {"0.4": 80.0, "0.5": 81.0}}, "digits")
    verification = {"cells": 4, "within": within, "largest_difference": largest}
    assert opening(NOT_COMPARED, cells, TITLES, {}, verification) == sentence
    without = opening(NOT_COMPARED, cells, TITLES, {}, {"cells": 0, "not_run": 4})
    assert without == "URE and ABS on Handwritten digits, three trials each: 4 cells without a number in the paper."


def test_bag_methods_alone_are_told_by_the_best_published_numbers():
    """For MNIST's pairs they are 90.55 and 88.99, those of ReLU."""
    methods = {
        "bag-relu": {"0.4": 92.55, "0.5": 88.49},
        "bag-free": {"0.4": 91.0, "0.5": 88.0},
        "chance": {"0.4": 99.0},
    }
    cells = summarized(methods | {"bag-abs": {"0.4": 99.0}})  # in fewer rows, so out of the competition
    assert opening(NOT_COMPARED, cells, TITLES, {"mnist": "mnist"}) == (
        "Bag ReLU, the best of 2 methods beyond the paper, is above the best of the paper’s numbers in 1 of 2 rows, "
        "and +0.8 points from it on average."
    )


@pytest.mark.parametrize(
    "changes", [{"dataset": "digits"}, {"n": 30}, {"variant": "other"}, {"loss": "sigmoid"}], ids=str
)
def test_numbers_that_the_paper_does_not_have_are_not_compared_with_it(changes):
    cells = summarized({"bag-relu": {"0.5": 99.0}}, **changes)
    cells.loc[0, "trials"] = 1
    title = TITLES[cells["dataset"][0]]
    assert opening(NOT_COMPARED, cells, TITLES, {"mnist": "mnist"}) == (
        f"Bag ReLU on {title}, one trial each: 1 cell without a number in the paper."
    )


def test_bars_count_every_comparison_once():
    for bar in bars(compared({"abs": 40.0})):
        assert sum(bar["counts"].values()) == bar["compared"] == 12
        assert bar["counts"]["differs"] == (12 if bar["method"] == "abs" else 0)


def test_a_finding_says_what_its_evidence_says():
    run = compared({"ure": -0.5, "siamese": -40.0})
    claims = [
        {"status": status, "quote": quote}
        for status, quote in (("holds", "x"), ("holds", "x"), ("fails", "x"), ("not run", "x"), ("holds", ""))
    ]
    choices = [
        {"title": "Learning rate", "lowest": -6.3, "highest": 3.3, "section": "sensitivity"},
        {"title": "Weight decay", "lowest": -3.3, "highest": 1.3, "section": "sensitivity"},
        {"title": "Learning rate", "lowest": -1.0, "highest": 4.4, "section": "sensitivity-triples"},
    ]
    rows = {"dataset": "mnist", "tuple_size": 2, "prior": "0.5"}
    cells = [
        {**rows, "n": n, "method": m, "mean": v} for n in (1, 2) for m, v in (("ure", 80.0), ("relu-part", 82.5 - n))
    ]
    found = findings(run, claims, pd.DataFrame(cells), choices, 7, "extended")
    texts = [finding.text for finding in found]
    assert texts[0].startswith(
        "Ours minus the paper's is −0.17 points on average (URE −0.50, ReLU +0.00 and ABS +0.00)"
    )
    assert texts[1] == "Siamese differs in 12 of 12 (median −40.0 points)."
    assert (found[1].section, found[1].filters) == ("comparisons", {"method": "siamese", "verdict": "differs"})
    assert texts[2] == "Of 3 claims of the paper's prose that these runs can check, 2 hold and 1 fails."
    assert texts[3] == (
        "ReLU (part) is above all of URE in 2 of 2 rows, and +1.0 points from the best of them on average."
    )
    assert texts[4] == (
        "Of 2 choices that the paper leaves open, “learning rate” moves the numbers most: by −6.3 to +4.4 points."
    )
    assert len(found) == 5


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ({"abs": [81, 81], "ure": [80, 80]}, "ABS is the most accurate of URE and ABS in 2 of 2 rows of the tables."),
        (
            {"abs": [81, 79], "relu": [80, 81], "ure": [70, 70]},
            "ReLU and ABS are each the most accurate of URE, ReLU and ABS in 1 of 2 rows of the tables.",
        ),
        (
            {"abs": [81.001, 79], "ure": [81.002, 79]},
            "URE and ABS are each the most accurate in 2 of 2 rows of the tables.",
        ),
        (
            {"abs": [81, 79], "ure": [80, 80], "relu": [math.nan] * 2},
            "URE and ABS are each the most accurate in 1 of 2 rows of the tables.",
        ),
    ],
    ids=["one leads", "two lead", "equal as printed", "one diverged"],
)
def test_where_nothing_is_compared_the_best_methods_are_named(rows, text):
    key = {"dataset": "digits", "tuple_size": 2, "prior": "0.5"}
    rows = {**rows, "chance": [99, 99]}
    cells = pd.DataFrame(
        [{**key, "n": n, "method": method, "mean": rows[method][n]} for n in (0, 1) for method in rows]
    )
    first, last = findings(compared().assign(verdict="not run"), [], cells, [], 7)
    assert first.text == text
    assert last.section == "audit"


def test_every_method_has_one_family():
    families = {method: family(method) for method in available_methods()}
    assert {method for method, name in families.items() if name == "paper"} == set(PROPOSED)
    assert {method for method, name in families.items() if name == "baseline"} == set(BASELINES)
    assert {"supervised", "chance"} <= {method for method, name in families.items() if name == "control"}
    assert families["relu-part"] == "beyond"


def test_small_numbers_are_words():
    assert [in_words(count) for count in (0, 3, 10, 11)] == ["none", "three", "ten", "11"]
