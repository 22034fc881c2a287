"""How far open choices move the numbers, and how that is shown."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.evaluate.sensitivity import (
    paired_differences,
    published_panels,
    summarize_differences,
)
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

PAPER = load_config([REPOSITORY / "config.yaml"])
EPOCHS = 20
PUBLISHED = {
    (cell.dataset, cell.tuple_size, cell.n, cell.prior, cell.method): cell.published_mean
    for cell in published_cells().itertuples()
}


def study(**changes) -> Plan:
    """Return a plan with one small study of MNIST at prior 0.5."""
    config = copy.deepcopy(PAPER)
    experiment = {
        "kind": "sensitivity",
        "title": "Study",
        "datasets": ["mnist"],
        "tuple_size": [2, 3],
        "prior": [0.5],
        "seed": [1, 2, 3],
        "method": ["ure", "relu", "abs"],
        "variant": ["base", "unlabeled-3n", "decoupled", "disjoint"],
        "also": [{"method": ["relu-part", "abs-part"], "variant": ["base"]}],
        "reporting": ["last", "best-epoch"],
        "n": 10000,
        **changes,
    }
    experiment["options"] = {"reporting": experiment.pop("reporting")}
    config["definitions"]["experiments"] = {"study": experiment}
    config["experiments"], config["datasets"] = ["study"], experiment["datasets"]
    return Plan(config)


# What each choice adds to base's accuracy, in points.
EFFECTS = {"unlabeled-3n": 3.0, "decoupled": -1.0, "disjoint": 0.5, "relu-part": 2.0, "abs-part": 1.0}
SHIFT = {("ure", 1): 0.4, ("relu", 2): -0.7, ("abs", 3): 1.1}  # what sets a trial apart, whatever the choice


def histories(plan: Plan, below: float = 2.0, effects=EFFECTS, noise: float = 0.0, seed: int = 0) -> pd.DataFrame:
    """Return histories whose base lies `below` the paper's, flat but for a peak of 5 points in epoch 3."""
    rng = np.random.default_rng(seed)
    frames = []
    for run in plan.experiment("study").runs:
        method = run.method.split("-")[0]
        stated = plan.published_names[run.dataset]
        level = PUBLISHED[stated, run.tuple_size, run.n, run.prior, method] - below
        level += effects.get(run.variant, 0) + effects.get(run.method, 0) + effects.get(run.dataset, 0)
        level += SHIFT.get((method, run.seed), 0) + noise * rng.normal()
        accuracy = np.full(EPOCHS, level)
        accuracy[2] += 5
        accuracy[-1] += 0.2
        rates = {"accuracy": accuracy / 100, "true_positive_rate": 0.5, "true_negative_rate": 0.5}
        frames.append(pd.DataFrame({"epoch": range(1, EPOCHS + 1), **rates}).assign(**vars(run)))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def plan():
    return study()


@pytest.fixture(scope="module")
def differences(plan):
    return paired_differences(plan, plan.experiment("study"), histories(plan))


# -- paired differences ---------------------------------------------------------------------------


def test_each_alternative_moves_each_method_by_what_was_put_in(differences):
    expected = {
        ("n_unlabeled", "n", "3n"): {"ure": 3.0, "relu": 3.0, "abs": 3.0},
        ("optimizer", "adam", "adamw"): {"ure": -1.0, "relu": -1.0, "abs": -1.0},
        ("joint", "replacement = true, overlap = true", "replacement = false, overlap = false"): {
            "ure": 0.5,
            "relu": 0.5,
            "abs": 0.5,
        },
        ("scope", "whole", "part"): {"relu": 2.0, "abs": 1.0},
        # The mean of the last ten epochs has a tenth of the last one's 0.2 points.
        ("average_last", "10", "1"): {"ure": 0.18, "relu": 0.18, "abs": 0.18},
        ("average_last", "10", "best"): {"ure": 4.98, "relu": 4.98, "abs": 4.98},
    }
    found = {}
    for row in differences.itertuples():
        found.setdefault((row.key, row.base, row.value), {}).setdefault(row.method, []).append(row.difference)
    assert list(found) == list(expected)
    for alternative, by_method in expected.items():
        assert set(found[alternative]) == set(by_method)
        for method, effect in by_method.items():
            assert found[alternative][method] == pytest.approx([effect] * 6), alternative  # 2 sizes, 3 seeds


def test_a_summary_has_the_t_interval_of_the_paired_differences(plan):
    differences = paired_differences(plan, plan.experiment("study"), histories(plan, noise=1.0))
    found = summarize_differences(differences, 0.95).iloc[0]
    chosen = (differences[["key", "tuple_size", "method"]] == [found["key"], found["tuple_size"], found["method"]]).all(
        axis=1
    )
    values = differences.loc[chosen, "difference"]
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found["trials"], found["difference"]) == (3, pytest.approx(values.mean()))
    assert found["std"] == pytest.approx(values.std(ddof=1))
    assert (found["low"], found["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))


def test_a_diverged_trial_is_counted_and_left_out(plan):
    metrics = histories(plan)
    broken = (metrics["variant"] == "decoupled") & (metrics["method"] == "abs") & (metrics["seed"] == 2)
    metrics.loc[broken & (metrics["epoch"] > 15), "accuracy"] = np.nan
    found = summarize_differences(paired_differences(plan, plan.experiment("study"), metrics), 0.95)
    cell = found[(found["key"] == "optimizer") & (found["method"] == "abs")].iloc[0]
    assert (cell["trials"], cell["diverged"]) == (2, 1)
    assert cell["difference"] == pytest.approx(-1)


def test_two_readings_of_the_class_sides_are_an_alternative_of_the_dataset():
    plan = study(
        datasets=["emnist-letters", "emnist-letters-a-i"],
        n=7000,
        variant=["base"],
        also=[{"method": ["relu-part"], "variant": ["base"]}],
    )
    metrics = histories(plan, effects={"emnist-letters-a-i": 1.5})
    found = paired_differences(plan, plan.experiment("study"), metrics)
    sides_rows = found[found["key"] == "sides"]
    assert set(sides_rows["dataset"]) == {"emnist-letters"}
    assert set(sides_rows["value"]) == {"emnist-letters-a-i"}
    assert sides_rows["difference"].tolist() == pytest.approx([1.5] * len(sides_rows))


def test_the_published_cells_are_those_of_the_experiment_in_each_reading():
    assert published_panels(study(n=777), study(n=777).experiment("study")).empty
    plan = study(
        datasets=["emnist-letters", "emnist-letters-a-i"],
        n=7000,
        variant=["base"],
        also=[{"method": ["relu-part"], "variant": ["base"]}],
    )
    cells = published_panels(plan, plan.experiment("study"))
    assert cells.groupby("dataset").size().to_dict() == {"emnist-letters": 6, "emnist-letters-a-i": 6}
    for row in cells.itertuples():
        assert row.published_mean == PUBLISHED["emnist-letters", row.tuple_size, row.n, row.prior, row.method]
