"""Forecasts: made from known gaps they hold what comes, and their score is the interval score."""

import sys

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.forecasts import as_forecast, forecast_cells, score_forecasts
from mdpu.pipeline.evaluate.model import Model
from mdpu.pipeline.evaluate.panel import Panel
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.plan import Plan, Run

CONFIG = load_config()
KEYS = {"tuple_size": 2, "n": 10000, "prior": "0.5", "method": "ure"}


def history(dataset, seed, accuracies, variant="base"):
    run = Run(dataset, variant, 2, 10000, "0.5", "ure", "logistic", seed)
    rates = dict.fromkeys(
        ("accuracy", "true_positive_rate", "true_negative_rate"), np.array(accuracies) / 100
    )
    return pd.DataFrame({"epoch": range(1, len(accuracies) + 1), **rates}).assign(**vars(run))


def told(dataset, low, high, reading="caption"):
    facts = {
        "dataset": dataset,
        **KEYS,
        "published_mean": 80.0,
        "published_std": 1.0,
        "reading": reading,
    }
    return {**facts, "forecast": (low + high) / 2, "low": low, "high": high, "level": 0.95}


def test_a_forecast_is_scored_by_the_epochs_of_its_reading_and_by_what_lies_outside():
    """All epochs average 70, the last ten 80; two trials average 70 and 74."""
    rising = [60.0] * 10 + [80.0] * 10
    metrics = [history("svhn", 1, rising), history("svhn", 2, [own + 4 for own in rising])]
    metrics += [
        history("cifar-10", 1, rising),
        history("mnist", 1, rising),
        history("svhn", 3, [0] * 20, "other"),
    ]
    forecasts = [told("svhn", 70, 71.5), told("svhn", 81, 83, "protocol"), told("cifar-10", 65, 71)]
    forecasts += [told("emnist-digits", 80, 90)]
    rows = score_forecasts(
        Plan(CONFIG), pd.concat(metrics, ignore_index=True), pd.DataFrame(forecasts)
    )
    found = {(row["reading"], row["dataset"]): row for row in rows}
    assert list(found) == [
        ("caption", "svhn"),
        ("caption", "cifar-10"),
        ("caption", "all"),
        ("protocol", "svhn"),
    ]
    assert [row["inside"] for row in rows] == [0, 1, 1, 1]
    assert [row["above"] for row in rows] == [1, 1, 2, 0]
    assert [row["score"] for row in rows] == pytest.approx([1.5 + 40 * 0.5, 6, (21.5 + 6) / 2, 2])
    # Student's interval of two means of three trials with deviation 1.
    assert rows[0]["paper_width"] == pytest.approx(2 * 4.302653 * np.sqrt(2 / 3))
    assert [row["paper_inside"] for row in rows] == [0, 0, 0, 1]


def test_runs_of_another_dataset_and_variant_score_a_forecast_that_their_dataset_names():
    config = load_config([REPOSITORY / "config" / "own-split.yaml"])
    metrics = [
        history("own-cifar-10", 1, [60.0] * 10 + [80.0] * 10, "torchvision"),
        history("own-svhn", 1, [50.0]),
    ]
    measured = as_forecast(Plan(config), pd.concat(metrics, ignore_index=True))
    forecasts = [
        told("cifar-10", 65, 71),
        told("svhn", 40, 60),
        told("cifar-10", 70, 72, "protocol"),
    ]
    cells = forecast_cells(Plan(config), measured, pd.DataFrame(forecasts))
    assert cells["accuracy"].tolist() == pytest.approx([70, 80])
    assert cells[["inside", "above"]].to_numpy().tolist() == [[True, True], [False, True]]


def test_nothing_is_scored_before_it_is_run():
    assert (
        score_forecasts(
            Plan(CONFIG), history("mnist", 1, [50.0]), pd.DataFrame([told("svhn", 70, 71)])
        )
        == []
    )


@pytest.fixture
def forecast(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    sys.modules.pop("readings", None)
    from forecasts import forecast

    return forecast


def test_forecasts_hold_what_comes_and_move_by_the_offset_of_the_method(forecast):
    """Ours are 3 points below the paper with URE and 2 above with ReLU; a cell scatters by 1
    point.
    """
    random = np.random.default_rng(3)
    cells = published_cells().query("method in ['ure', 'relu', 'abs']").reset_index(drop=True)
    offsets = cells["method"].map({"ure": -3.0, "relu": 2.0, "abs": 0.0}).to_numpy()
    true = cells["published_mean"].to_numpy() + offsets + random.normal(0, 1.0, len(cells))
    readings = Readings(CONFIG)
    made = [readings.reading({"epochs": value}) for value in readings.values("epochs")]
    own = cells["dataset"].isin(["mnist", "fashion-mnist", "emnist-letters"]).to_numpy()
    trials = true[:, None] + random.normal(0, 0.5, (len(made), len(cells), 3))
    panel = Panel(made, cells[own].reset_index(drop=True), trials[:, own])
    new = cells[~own].assign(published_std=0.5, published_dataset=cells["dataset"])
    found = forecast(Model(panel), 0, new, 0.95)
    inside = (found["low"] <= true[~own]) & (true[~own] <= found["high"])
    assert inside.mean() >= 0.9
    width = (
        (found["high"] - found["low"]).groupby(found["dataset"].isin(["cifar-10", "svhn"])).mean()
    )
    assert width[False] < 8 < 24 < width[True]  # nothing is known of the other network
    found = found[~found["dataset"].isin(["cifar-10", "svhn"])]
    moved = (found["forecast"] - found["published_mean"]).groupby(found["method"]).mean()
    assert moved.to_dict() == pytest.approx({"ure": -3.0, "relu": 2.0, "abs": 0.0}, abs=0.8)


def test_the_shipped_forecasts_are_of_every_number_that_was_not_run():
    file = read_csv(REPOSITORY / "results" / "reference" / "forecasts.csv")
    unrun = published_cells().query("method in ['ure', 'relu', 'abs']")
    unrun = unrun[~unrun["dataset"].isin(["mnist", "fashion-mnist", "emnist-letters"])]
    keys = ["tuple_size", "n", "prior", "method"]
    for _, own in file.groupby("reading"):
        named = own[["published_dataset", *keys]].itertuples(index=False, name=None)
        assert sorted(named) == sorted(unrun[["dataset", *keys]].itertuples(index=False, name=None))
    assert (file["low"] < file["forecast"]).all()
    assert (file["forecast"] < file["high"]).all()
    assert file["commit"].str.fullmatch("[0-9a-f]{40}").all()
    assert file["date"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
