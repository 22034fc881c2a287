"""A job trained, reused and retrained: what is recorded of it, and what makes it train again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from configs import config

from mdpu.errors import UserError
from mdpu.learn import device
from mdpu.learn.device import cpu_model
from mdpu.pipeline.cache import cache_of, identity
from mdpu.pipeline.data.diagnostics import write_diagnosed_split
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.files import save_npz, write_csv
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.train import compare_histories, retrain, task_of, train, tune
from mdpu.randomness import Stream

NAME = "flat/base/m2/n30"


@pytest.fixture
def planned(tmp_path):
    """Return what makes a plan whose images of two classes, labels and splits are there."""

    def make(**changes):
        plan = Plan(config(device="cpu", shipped=None, results_dir=str(tmp_path), datasets=["flat"], **changes))
        labels = np.where(np.arange(200) % 2, 1, -1).astype(np.int8)
        noise = Stream(1, "noise").integers(100, 200, 4, 4)
        pixels = (100 * (labels[:, None, None] > 0) + noise).astype(np.uint8)
        ids = (labels > 0).astype(np.int64)
        images = ImageSet(pixels, ids, pixels[:50], ids[:50], ["no", "yes"], "made here", "none")
        if not plan.layout.images("flat").exists():
            write_images(images, plan.layout.images("flat"))
            save_npz(plan.layout.labels("flat"), train=labels, test=labels[:50])
        for split in [*plan.splits, *(tuning.runs[0].split for tuning in plan.tunings.values())]:
            write_diagnosed_split(plan.layout.labels("flat"), plan.layout.split(split), **plan.drawing(split))
        return plan

    return make


def facts_of(plan):
    return json.loads(plan.layout.manifest(NAME, identity(plan, NAME)).read_text())


def histories_of(plan):
    finished = cache_of(plan).load(facts_of(plan)["runs"].values())
    return pd.concat([one.history for one in finished.values()])


def lose(plan, place):
    """Delete a finished run and the manifest that names it; return the run's name."""
    name, lost = list(facts_of(plan)["runs"].items())[place]
    cache_of(plan).path(lost).unlink()
    plan.layout.manifest(NAME, identity(plan, NAME)).unlink()
    return name


def test_a_run_records_by_whom_when_and_in_which_precision_it_was_trained(planned, threads):
    before = datetime.now(UTC) - timedelta(seconds=1)
    plan = planned(protocol__training__precision="bf16")
    train(plan, NAME, threads=1)
    (trained,) = facts_of(plan)["trained"]
    assert len(trained["runs"]) == 8
    assert trained["precision"] == "bf16"
    assert trained["device"] == f"{cpu_model()} (1 thread)"
    assert before <= datetime.fromisoformat(trained["date"]) <= datetime.now(UTC)
    assert {"commit", "packages"} <= set(trained)
    (drawn,) = {json.dumps(facts["tuple_types"]["degrees"]) for facts in facts_of(plan)["splits"].values()}
    assert drawn == "1"


@pytest.mark.parametrize("first_has_bf16", [True, False])
def test_what_hardware_of_another_precision_trained_counts_where_hardware_chooses(
    first_has_bf16, planned, monkeypatch, threads
):
    """As on a machine without bf16 after one with it: it takes what is there, and trains in its own what is not."""
    auto = planned(protocol__training__precision="auto")
    first, second = ("bf16", "fp32") if first_has_bf16 else ("fp32", "bf16")
    monkeypatch.setattr(device, "_has_bf16", lambda _: first_has_bf16)
    train(auto, NAME, threads=1)
    histories = histories_of(auto)
    monkeypatch.setattr(device, "_has_bf16", lambda _: not first_has_bf16)
    train(auto, NAME, threads=1)
    assert facts_of(auto)["reused"] == 8
    pd.testing.assert_frame_equal(histories_of(auto), histories, check_exact=True)
    lose(auto, 3)
    train(auto, NAME, threads=1)
    assert {part["precision"]: len(part["runs"]) for part in facts_of(auto)["trained"]} == {first: 7, second: 1}


def test_histories_are_kept_run_by_run_and_only_what_is_new_is_trained(planned, threads):
    plan = planned()
    train(plan, NAME, threads=1)
    histories = histories_of(plan)
    lose(plan, 3)
    train(plan, NAME, threads=1)
    assert facts_of(plan)["reused"] == 7
    pd.testing.assert_frame_equal(histories_of(plan), histories, check_exact=True)
    assert not list(plan.layout.checkpoints.rglob("*.pt"))


def test_a_finished_run_is_trained_again_from_a_split_that_is_drawn_again(planned, tmp_path, threads):
    plan = planned()
    train(plan, NAME, threads=1)
    run = plan.job(NAME).runs[3]
    plan.layout.split(run.split).unlink()
    ((_, recorded, again),) = retrain(plan, [run], tmp_path / "scratch", threads=1)
    assert compare_histories(recorded.history, again.history) == {}
    assert recorded.fingerprint == again.fingerprint
    lose(plan, 3)
    with pytest.raises(UserError, match="is not finished, or its code or protocol has changed"):
        list(retrain(plan, [run], tmp_path / "scratch", threads=1))


def test_only_accuracies_may_differ_in_their_last_bit():
    history = pd.DataFrame({"epoch": [1], "true_positive_rate": [0.7], "raw_accuracy": [0.9], "accuracy": [0.9]})
    after, later = np.nextafter(0.9, 1), np.nextafter(np.nextafter(0.9, 1), 1)
    assert compare_histories(history, history.assign(raw_accuracy=after, accuracy=after)) == {}
    assert compare_histories(history, history.assign(accuracy=later)).keys() == {"accuracy"}
    assert compare_histories(history, history.assign(accuracy=np.nan)) == {"accuracy": np.inf}
    rate = history.assign(true_positive_rate=np.nextafter(0.7, 1))
    assert compare_histories(history, rate).keys() == {"true_positive_rate"}


# -- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "told"), [(0.0, 0.4), (0.1, 0.5), (-0.1, 0.3)])
def test_a_prior_offset_tells_the_method_another_prior(offset, told):
    plan = Plan(config(protocol__training__prior_offset=offset))
    run = next(run for run in plan.runs if run.prior == "0.4")
    task = task_of(plan, run)
    assert task.prior == told  # as it is written, not as 0.4 + 0.1 is added up
    assert (task.method, task.tuple_size, task.loss, task.sample) == (run.method, run.tuple_size, run.loss, run.split)
    assert (task.learning_rate, task.weight_decay) == (None, None)
    assert task_of(plan, run, (0.1, 0.2)).learning_rate == 0.1
    assert task_of(plan, run, (0.1, 0.2)).weight_decay == 0.2


def test_wrong_shares_are_those_of_both_sets_and_none_is_above_one():
    singles = {"definitions__experiments__first__tuple_size": [1], "experiments": ["first"]}
    plan = Plan(config(**singles, protocol__training__shares_factor=1.5, protocol__training__target_prior=0.49))
    for run in plan.runs:
        told = task_of(plan, run)
        assert (told.prior, told.target_prior) == (round(1.5 * float(run.prior), 12), 0.49)
        assert told.law.coefficients(told.prior).a == 1


# -- tuning ---------------------------------------------------------------------------------------


def test_tuned_rates_are_those_of_the_grid_and_a_method_that_diverged_everywhere_is_told(planned, threads):
    plan = planned(
        protocol__training__hyperparameters="tuned",
        tuning__grid={"learning_rate": [0.001, 0.01], "weight_decay": [0.0]},
    )
    out = plan.layout.tuned("flat/base/m2")
    tune(plan, "flat/base/m2", threads=1)
    table = pd.read_csv(out)
    assert table.groupby("method")["chosen"].sum().to_dict() == {"abs": 1, "ure": 1}
    train(plan, NAME, threads=1)
    first = histories_of(plan)

    write_csv(table.assign(learning_rate=0.5), out)
    train(plan, NAME, threads=1)
    assert facts_of(plan)["reused"] == 0
    assert not np.allclose(histories_of(plan)["objective"], first["objective"])

    write_csv(table.assign(chosen=table["chosen"] & (table["method"] == "abs")), out)
    with pytest.raises(UserError, match=r"method ure diverged at every point of tuning\.grid; add smaller"):
        train(plan, NAME, threads=1)
