"""The whole chain from histories to verdicts, on synthetic histories of every published cell."""

from __future__ import annotations

import json
import subprocess
import sys

import pandas as pd
import pytest

from mdpu.pipeline.files import REPOSITORY, read_csv

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aggregation")
    command = [sys.executable, "benchmarks/aggregation.py", "--out", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "synthetic"


def test_every_published_number_is_compared_in_every_reading(results):
    comparison = read_csv(results / "comparison.csv")
    assert len(comparison) == 648
    assert "not run" not in set(comparison["verdict"])
    assert set(comparison["verdict"]) == {"reproduced", "close", "inconclusive", "differs"}
    assert (comparison["trials"] == 3).all()
    assert (comparison[["first_epoch", "last_epoch"]].to_numpy() == [91, 100]).all()
    totals = json.loads((results / "comparison.json").read_text())["totals"]
    assert sum(totals[0][verdict] for verdict in ("reproduced", "close", "inconclusive", "differs")) == 648


def test_the_comparison_is_of_the_metrics(results):
    """One cell, followed by hand from the histories."""
    cell = read_csv(results / "comparison.csv").query("table == 5 and dataset == 'svhn' and prior == '0.6'")
    metrics = pd.read_parquet(results / "metrics.parquet")
    runs = metrics.query(
        "dataset == 'svhn' and prior == '0.6' and n == 12000 and tuple_size == 3 and method == 'abs' and epoch > 90"
        " and loss == 'logistic' and variant == 'base'"
    )
    trials = 100 * runs.groupby("seed")["accuracy"].mean()
    ours = cell[cell["method"] == "abs"].iloc[0]
    assert [ours["mean"], ours["std"]] == pytest.approx([trials.mean(), trials.std()])
    assert ours["difference"] == pytest.approx(trials.mean() - ours["published_mean"])


def test_the_claims_of_the_tables_and_of_histories_have_their_cases(results):
    claims = read_csv(results / "claims.csv").set_index("claim")
    for name in ("corrected-beats-ure", "proposed-beat-baselines", "accuracy-grows-with-n", "lower-prior-is-easier"):
        assert 7 * claims.loc[name, "ours_cases"] >= 9 * claims.loc[name, "paper_cases"], name  # nine readings of seven
    assert claims.loc["ure-overfits", "ours"] == "{0} of {0}".format(claims.loc["ure-overfits", "ours_cases"])
    cases = read_csv(results / "claims_cases.csv")
    counted = cases.groupby(["claim", "evidence"]).size()
    assert (counted.xs("ours", level="evidence") == claims["ours_cases"][claims["ours_cases"] > 0].sort_index()).all()


def test_ranks_are_over_all_rows_of_both_readings(results):
    ranks = read_csv(results / "ranks.csv")
    blocks = ranks.groupby(["source", "unit"])["blocks"].first()
    assert blocks.to_dict() == {
        ("ours", "dataset"): 9,
        ("ours", "row"): 108,
        ("paper", "dataset"): 7,
        ("paper", "row"): 84,
    }


def test_the_audit_finds_what_is_wrong_with_the_datasets(results):
    findings = json.loads((results / "audit.json").read_text())["findings"]
    counts = {f["place"].split(", ")[1]: f["cases"] for f in findings if f["finding"].startswith("The images differ")}
    assert counts.pop("cifar-10") == ["train: 60,000 stated, 50,000 found"]
    assert counts.pop("emnist-balanced") == ["classes: 36 stated, 47 found"]
    assert set(map(tuple, counts.values())) == {()}
    uneven = {f["place"].split(", ")[1] for f in findings if "share of positives" in f["finding"] and f["cases"]}
    assert {"cifar-10", "svhn"} <= uneven


def test_tables_hold_both_readings_beside_the_papers_number(results):
    table = read_csv(results / "tables" / "table2.csv")
    letters = table[table["published_dataset"] == "emnist-letters"]
    assert set(letters["dataset"]) == {"emnist-letters", "emnist-letters-a-i"}
    assert (letters.groupby(["prior", "method"])["published_mean"].nunique() == 1).all()
