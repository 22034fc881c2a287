"""A cohort trained, reused and retrained: what is recorded of it, and what makes it stale."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from configs import config

from mdpu.data import draw_split
from mdpu.errors import UserError
from mdpu.learn import device
from mdpu.learn.device import cpu_model
from mdpu.pipeline.cache import RunStore
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.data.labels import write_labels
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.files import write_csv
from mdpu.pipeline.plan import AXES, Plan
from mdpu.pipeline.train import Files, compare_histories, task_of, train, tune
from mdpu.randomness import Stream

NAME = "flat/base/m2/n30"


@pytest.fixture
def files(tmp_path):
    """Images of two classes, their labels, and the splits of a cohort, in a folder."""
    labels = np.where(np.arange(200) % 2, 1, -1).astype(np.int8)
    pixels = (100 * (labels[:, None, None] > 0) + Stream(1, "noise").integers(100, 200, 4, 4)).astype(np.uint8)
    ids = (labels > 0).astype(np.int64)
    images = ImageSet(pixels, ids, pixels[:50], ids[:50], ["no", "yes"], "made here", "none")
    write_images(images, tmp_path / "images.npz", 0.0, {})
    write_labels({"train": labels, "test": labels[:50]}, tmp_path / "labels.npz")
    for name in Plan(config()).cohort(NAME).splits:
        prior, seed = (float(part) for part in (name.split("prior")[1].split("/")[0], name.split("seed")[1]))
        write_split(draw_split(labels, 2, prior, 30, 30, int(seed)), tmp_path / "splits" / f"{name}.npz")
    return Files(
        tmp_path / "images.npz",
        tmp_path / "labels.npz",
        tmp_path / "splits",
        tmp_path / "runs",
        tmp_path / "checkpoints",
        tmp_path / "out.parquet",
    )


def planned(**changes):
    return Plan(config(device="cpu", **changes))


def facts_of(files):
    return json.loads(files.out.with_suffix(".json").read_text())


def test_a_run_records_by_whom_when_and_in_which_precision_it_was_trained(files, threads):
    before = datetime.now(UTC) - timedelta(seconds=1)
    train(planned(protocol__training__precision="bf16"), NAME, files, threads=1)
    (trained,) = facts_of(files)["trained"]
    assert len(trained["runs"]) == 8
    assert trained["precision"] == "bf16"
    assert trained["device"] == f"{cpu_model()} (1 threads)"
    assert before <= datetime.fromisoformat(trained["date"]) <= datetime.now(UTC)
    assert {"commit", "packages"} <= set(trained)
    assert facts_of(files)["settings"]["precision"] == "bf16"


@pytest.mark.parametrize(("has_bf16", "resolved"), [(True, "bf16"), (False, "fp32")])
def test_auto_is_recorded_as_what_it_became(has_bf16, resolved, files, monkeypatch, threads):
    monkeypatch.setattr(device, "_cpu_has_bf16", lambda: has_bf16)
    train(planned(protocol__training__precision="auto"), NAME, files, threads=1)
    (trained,) = facts_of(files)["trained"]
    assert trained["precision"] == resolved
    assert facts_of(files)["settings"]["precision"] == "auto"


@pytest.mark.parametrize("first_has_bf16", [True, False])
def test_what_hardware_of_another_precision_trained_counts_where_hardware_chooses(
    first_has_bf16, files, monkeypatch, threads
):
    """As on a machine without bf16 after one with it: it takes what is there, and trains in its own what is not."""
    auto = planned(protocol__training__precision="auto")
    first, second = ("bf16", "fp32") if first_has_bf16 else ("fp32", "bf16")
    monkeypatch.setattr(device, "_cpu_has_bf16", lambda: first_has_bf16)
    train(auto, NAME, files, threads=1)
    histories = pd.read_parquet(files.out)
    monkeypatch.setattr(device, "_cpu_has_bf16", lambda: not first_has_bf16)
    train(auto, NAME, files, threads=1)
    assert facts_of(files)["reused"] == 8
    pd.testing.assert_frame_equal(pd.read_parquet(files.out), histories, check_exact=True)

    lost = auto.cohort(NAME).runs[3]
    RunStore(files.store).path(lost).unlink()
    train(auto, NAME, files, threads=1)
    assert {part["precision"]: len(part["runs"]) for part in facts_of(files)["trained"]} == {first: 7, second: 1}
    kept = {run.name: RunStore(files.store).fingerprint(run) for run in auto.cohort(NAME).runs}
    assert facts_of(files)["fingerprints"] == kept


def test_where_the_protocol_names_a_precision_no_other_counts(files, monkeypatch, threads):
    monkeypatch.setattr(device, "_cpu_has_bf16", lambda: True)
    train(planned(protocol__training__precision="auto"), NAME, files, threads=1)
    train(planned(protocol__training__precision="bf16"), NAME, files, threads=1)
    assert facts_of(files)["reused"] == 8
    train(planned(protocol__training__precision="fp32"), NAME, files, threads=1)
    assert facts_of(files)["reused"] == 0
    (trained,) = facts_of(files)["trained"]
    assert trained["precision"] == "fp32"


def test_histories_are_kept_run_by_run_and_only_what_is_new_is_trained(files, threads):
    plan = planned()
    train(plan, NAME, files, threads=1)
    histories = pd.read_parquet(files.out)
    run = plan.cohort(NAME).runs[3]
    RunStore(files.store).path(run).unlink()
    train(plan, NAME, files, threads=1)
    assert facts_of(files)["reused"] == 7
    pd.testing.assert_frame_equal(pd.read_parquet(files.out), histories, check_exact=True)
    assert not list(files.checkpoints.rglob("*.pt"))


def test_a_network_too_large_for_the_jobs_memory_is_refused_in_one_sentence(files, threads):
    large = planned(memory_mb=2000, protocol__training__networks__mlp__hidden=[20_000, 20_000])
    with pytest.raises(UserError, match=r"takes about \d+ MB, but 500 MB are allowed; raise memory_mb or") as error:
        train(large, NAME, files, threads=1)
    assert "\n" not in str(error.value)


def test_measures_that_only_other_runs_have_are_no_difference():
    """Alone, a run comes back without them. One that it has itself is missed."""
    run = Plan(config()).cohort(NAME).runs[0]
    alone = pd.DataFrame([run]).assign(epoch=1, accuracy=0.9, risk=0.1)
    beside_others = alone.assign(estimated_prior=np.nan)[[*AXES, "epoch", "accuracy", "estimated_prior", "risk"]]
    assert compare_histories(beside_others, alone) == compare_histories(alone, beside_others) == {}
    assert compare_histories(alone, beside_others.assign(risk=0.3)) == {"risk": pytest.approx(0.2)}
    with pytest.raises(UserError, match="run the workflow again"):
        compare_histories(alone.assign(estimated_prior=0.5), alone)


def test_only_accuracies_may_differ_in_their_last_bit():
    run = Plan(config()).cohort(NAME).runs[0]
    history = pd.DataFrame([run]).assign(epoch=1, true_positive_rate=0.7, raw_accuracy=0.9, accuracy=0.9)
    after, later = np.nextafter(0.9, 1), np.nextafter(np.nextafter(0.9, 1), 1)
    assert compare_histories(history, history.assign(raw_accuracy=after, accuracy=after)) == {}
    assert compare_histories(history, history.assign(accuracy=later)).keys() == {"accuracy"}
    assert compare_histories(history, history.assign(accuracy=np.nan)) == {"accuracy": np.inf}
    rate = history.assign(true_positive_rate=np.nextafter(0.7, 1))
    assert compare_histories(history, rate).keys() == {"true_positive_rate"}


# -- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "told"), [(0.0, 0.4), (0.1, 0.5), (-0.1, 0.3)])
def test_a_prior_offset_tells_the_method_another_prior(offset, told):
    plan = planned(protocol__training__prior_offset=offset)
    run = next(run for run in plan.runs if run.prior == "0.4")
    task = task_of(plan, run)
    assert task.prior == told  # as it is written, not as 0.4 + 0.1 is added up
    assert (task.method, task.tuple_size, task.loss, task.sample) == (run.method, run.tuple_size, run.loss, run.split)
    assert (task.learning_rate, task.weight_decay) == (None, None)
    assert task_of(plan, run, (0.1, 0.2)).learning_rate == 0.1
    assert task_of(plan, run, (0.1, 0.2)).weight_decay == 0.2


def test_a_prior_that_leaves_the_unit_interval_is_refused():
    plan = planned(protocol__training__prior_offset=0.6)
    with pytest.raises(UserError, match="not strictly between 0 and 1"):
        for run in plan.runs:
            task_of(plan, run)


# -- tuning ---------------------------------------------------------------------------------------


def test_tuned_rates_are_those_of_the_grid_and_a_method_that_diverged_everywhere_is_told(files, tmp_path, threads):
    plan = planned(
        protocol__training__hyperparameters="tuned",
        tuning__grid={"learning_rate": [0.001, 0.01], "weight_decay": [0.0]},
        datasets=["flat"],
    )
    split = files.splits / f"{plan.cohort(NAME).splits[0]}.npz"
    out = tmp_path / "tuned.csv"
    tune(plan, "flat/base/m2", files.images, split, out, threads=1)
    table = pd.read_csv(out)
    assert table.groupby("method")["chosen"].sum().to_dict() == {"abs": 1, "ure": 1}
    tuned = Files(**{**files.__dict__, "tuned": out})
    train(plan, NAME, tuned, threads=1)
    first = pd.read_parquet(files.out)

    write_csv(table.assign(learning_rate=0.5), out)
    train(plan, NAME, tuned, threads=1)
    assert facts_of(files)["reused"] == 0
    assert not np.allclose(pd.read_parquet(files.out)["objective"], first["objective"])

    write_csv(table.assign(chosen=table["chosen"] & (table["method"] == "abs")), out)
    with pytest.raises(UserError, match=r"method ure diverged at every point of tuning\.grid; add smaller"):
        train(plan, NAME, tuned, threads=1)
