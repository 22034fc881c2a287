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


KNOWN = ["mnist", "fashion-mnist", "emnist-letters"]


RISING = np.repeat([60.0, 80.0], 10)  # all epochs average 70, the last ten 80


RATES = ("accuracy", "true_positive_rate", "true_negative_rate")


def history(dataset, seed, accuracies, variant="base"):
    run = Run(dataset, variant, 2, 10000, "0.5", "ure", "logistic", seed)
    epochs = pd.DataFrame({"epoch": range(1, len(accuracies) + 1)})
    for rate in RATES:
        epochs[rate] = np.array(accuracies) / 100
    return epochs.assign(**vars(run))


def told(dataset, low, high, reading="caption"):
    return {
        "dataset": dataset,
        **KEYS,
        "published_mean": 80.0,
        "published_std": 1.0,
        "reading": reading,
        "forecast": (low + high) / 2,
        "low": low,
        "high": high,
        "level": 0.95,
    }


def test_a_forecast_is_scored_by_the_epochs_of_its_reading_and_by_what_lies_outside():
    """Two trials of SVHN average 70 and 74 over all epochs."""
    histories = [
        history("svhn", 1, RISING),
        history("svhn", 2, RISING + 4),
        history("cifar-10", 1, RISING),
        history("mnist", 1, RISING),
        history("svhn", 3, [0] * 20, "other"),
    ]
    forecasts = [
        told("svhn", 70, 71.5),
        told("svhn", 81, 83, "protocol"),
        told("cifar-10", 65, 71),
        told("emnist-digits", 80, 90),
    ]
    metrics = pd.concat(histories, ignore_index=True)

    rows = pd.DataFrame(score_forecasts(Plan(CONFIG), metrics, pd.DataFrame(forecasts)))

    assert rows["reading"].tolist() == ["caption", "caption", "caption", "protocol"]
    assert rows["dataset"].tolist() == ["svhn", "cifar-10", "all", "svhn"]
    assert rows["inside"].tolist() == [0, 1, 1, 1]
    assert rows["above"].tolist() == [1, 1, 2, 0]
    of_svhn = 1.5 + 40 * 0.5
    assert rows["score"].tolist() == pytest.approx([of_svhn, 6, (of_svhn + 6) / 2, 2])
    assert rows["paper_inside"].tolist() == [0, 0, 0, 1]
    # Student's interval of two means of three trials with deviation 1.
    assert rows["paper_width"][0] == pytest.approx(2 * 4.302653 * np.sqrt(2 / 3))


def test_runs_of_another_dataset_and_variant_score_a_forecast_that_their_dataset_names():
    plan = Plan(load_config([REPOSITORY / "config" / "own-split.yaml"]))
    histories = [
        history("own-cifar-10", 1, RISING, "torchvision"),
        history("own-svhn", 1, [50.0]),
    ]
    forecasts = [
        told("cifar-10", 65, 71),
        told("svhn", 40, 60),
        told("cifar-10", 70, 72, "protocol"),
    ]
    measured = as_forecast(plan, pd.concat(histories, ignore_index=True))
    cells = forecast_cells(plan, measured, pd.DataFrame(forecasts))
    assert cells["accuracy"].tolist() == pytest.approx([70, 80])
    assert cells["inside"].tolist() == [True, False]
    assert cells["above"].tolist() == [True, True]


def test_nothing_is_scored_before_it_is_run():
    forecasts = pd.DataFrame([told("svhn", 70, 71)])
    assert score_forecasts(Plan(CONFIG), history("mnist", 1, [50.0]), forecasts) == []


@pytest.fixture
def forecast(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    sys.modules.pop("readings", None)
    from forecasts import forecast

    return forecast


OFFSETS = {"ure": -3.0, "relu": 2.0, "abs": 0.0}


@pytest.fixture
def forecasts_by_offsets(forecast):
    """Forecasts from gaps to the paper of three datasets, and the truth of the others.

    Each method is off by its own number of points, and a cell scatters by 1 point.
    """
    random = np.random.default_rng(3)
    cells = published_cells().query("method in ['ure', 'relu', 'abs']")
    gaps = cells["method"].map(OFFSETS) + random.normal(0, 1, len(cells))
    cells["truth"] = cells["published_mean"] + gaps
    is_known = cells["dataset"].isin(KNOWN)
    known = cells[is_known].reset_index(drop=True)

    readings = Readings(CONFIG)
    by_epochs = [readings.reading({"epochs": value}) for value in readings.values("epochs")]
    trials = random.normal(0, 0.5, (len(by_epochs), len(known), 3))
    trials += known["truth"].to_numpy()[:, None]
    model = Model(Panel(by_epochs, known, trials))

    new = cells[~is_known].assign(published_std=0.5)
    new["published_dataset"] = new["dataset"]
    return forecast(model, 0, new, 0.95)


def test_forecasts_hold_what_comes(forecasts_by_offsets):
    cells = forecasts_by_offsets
    inside = cells["truth"].between(cells["low"], cells["high"])
    assert inside.mean() >= 0.9


def test_forecasts_are_wide_where_nothing_is_known_of_the_network(forecasts_by_offsets):
    cells = forecasts_by_offsets
    has_resnet = cells["dataset"].isin(["cifar-10", "svhn"])
    width = cells["high"] - cells["low"]
    assert width[~has_resnet].mean() < 8
    assert width[has_resnet].mean() > 24


def test_forecasts_move_by_the_offset_of_the_method(forecasts_by_offsets):
    cells = forecasts_by_offsets
    cells = cells[~cells["dataset"].isin(["cifar-10", "svhn"])]
    moved = cells["forecast"] - cells["published_mean"]
    by_method = moved.groupby(cells["method"]).mean()
    assert by_method.to_dict() == pytest.approx(OFFSETS, abs=0.8)


def sorted_rows(table, *columns):
    return sorted(table[[*columns, *KEYS]].itertuples(index=False, name=None))


def test_the_shipped_forecasts_are_of_every_number_that_was_not_run():
    shipped = read_csv(REPOSITORY / "results" / "reference" / "forecasts.csv")
    cells = published_cells().query("method in ['ure', 'relu', 'abs']")
    expected = sorted_rows(cells[~cells["dataset"].isin(KNOWN)], "dataset")
    for _, forecasts in shipped.groupby("reading"):
        assert sorted_rows(forecasts, "published_dataset") == expected


def test_the_shipped_forecasts_are_whole():
    shipped = read_csv(REPOSITORY / "results" / "reference" / "forecasts.csv")
    assert (shipped["low"] < shipped["forecast"]).all()
    assert (shipped["forecast"] < shipped["high"]).all()
    assert shipped["commit"].str.fullmatch("[0-9a-f]{40}").all()
    assert shipped["date"].str.fullmatch(r"\d{4}-\d\d-\d\d").all()
