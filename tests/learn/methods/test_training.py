"""Methods trained: against ordinary loops and libraries, and in their order."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from torch import nn

from mdpu.learn import Sample, Settings, Task, fit
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.methods import load_method
from mdpu.learn.methods.kmeans import STARTS
from mdpu.learn.networks.mlp import StackedMLP
from mdpu.learn.stacks import make_stacks
from mdpu.learn.trainer import minibatches
from mdpu.pipeline.config import available_methods, load_config
from mdpu.pipeline.evaluate.collect import run_accuracies, summarize
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan
from mdpu.randomness import Stream

CPU = torch.device("cpu")
Train = Callable[..., dict[str, pd.DataFrame]]


def test_supervised_is_ordinary_training(
    train_digits: Train, digits: Any, draw: Callable[..., Sample], quick_settings: Settings
) -> None:
    """A plain torch loop on the same images, from the same weights, reaches the same objective and accuracy."""
    epochs, sample = 3, draw()
    history = train_digits("supervised", epochs=epochs)["supervised"]

    images, labels = digits.images, digits.labels
    x = torch.from_numpy(images.train_images).flatten(1) / 255
    y = torch.from_numpy(labels["train"]).float()
    start = StackedMLP([[1]], x.shape[1], [300, 300], torch.float32, CPU)
    model = nn.Sequential(
        nn.Linear(x.shape[1], 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1), nn.Flatten(0)
    )
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), start.linear(start.parameters, 0, 0), strict=True):
            parameter.copy_(value)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=quick_settings.learning_rate, weight_decay=quick_settings.weight_decay
    )
    tuples, unlabeled = torch.from_numpy(sample.tuples)[None], torch.from_numpy(sample.unlabeled)[None]
    for epoch in range(epochs):
        losses = []
        for tuple_batch, unlabeled_batch in minibatches([1], tuples, unlabeled, 100, epoch):
            rows = torch.cat([tuple_batch[0], unlabeled_batch[0]])
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), (y[rows] + 1) / 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert history["objective"][epoch] == pytest.approx(np.mean(losses), rel=1e-3)
    test = torch.from_numpy(images.test_images).flatten(1) / 255
    accuracy = ((model(test) > 0) == torch.from_numpy(labels["test"] > 0)).float().mean().item()
    assert history["accuracy"].iloc[-1] == pytest.approx(accuracy, abs=0.01)


def test_chance_is_the_majority_rate_for_either_test_prior(train_digits: Train, digits: Any) -> None:
    history = train_digits("chance", epochs=2)["chance"]
    share = digits.share_positive
    assert history["accuracy"].tolist() == pytest.approx([max(share, 1 - share)] * 2)
    skewed = history.assign(prior="0.3")
    matched = run_accuracies(skewed, {"average_last": 10, "test_prior": "matched"})
    assert matched["accuracy"].tolist() == pytest.approx([70])


@pytest.mark.parametrize("tuple_size", [2, 3])
def test_kmeans_is_scikit_learns_on_repeated_test_images(
    tuple_size: int, digits: Any, draw: Callable[..., Sample]
) -> None:
    images, labels, sample = digits.images, digits.labels, draw(tuple_size)
    task = Task("kmeans", tuple_size, 0.5, seed=1)
    few = Settings(epochs=1)
    (model,) = fit([task], images.train_images, sample, few, evaluation=digits.rates(), device="cpu")

    flat = (images.train_images.reshape(len(images.train_images), -1) / 255).astype(np.float32)
    vectors = flat[sample.tuples].reshape(400, -1)
    random_state = int(Stream(1, "k-means").integers(2**31, 1)[0])
    library = KMeans(n_clusters=2, n_init=STARTS, random_state=random_state).fit(vectors)
    test = (images.test_images.reshape(len(images.test_images), -1) / 255).astype(np.float32)
    answers = library.predict(np.tile(test, tuple_size)) == 1
    row = model.history.iloc[0]
    assert row["objective"] == pytest.approx(library.inertia_ / 400, rel=1e-4)
    assert row["true_positive_rate"] == pytest.approx(answers[labels["test"] > 0].mean(), abs=1e-6)
    assert row["true_negative_rate"] == pytest.approx(1 - answers[labels["test"] < 0].mean(), abs=1e-6)
    assert np.array_equal(model.predict(images.test_images) > 0, answers)


def test_kmeans_is_the_same_whatever_the_threads() -> None:
    """On noise, whose clusters hang on a rounding; enough of it that scikit-learn would divide the work."""
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (4000, 8, 8, 1), dtype=np.uint8)
    sample = Sample(np.arange(4000).reshape(2000, 2), np.arange(10))
    task = Task("kmeans", 2, 0.5, seed=1)
    before = torch.get_num_threads()
    try:
        found = set()
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            answers = load_method("kmeans").fit(task, sample, pixels)  # type: ignore[union-attr]
            found.add((answers.objective, answers.says_positive(pixels).tobytes()))
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1


def test_an_unnamed_method_takes_the_better_assignment_and_keeps_the_raw_one(train_digits: Train) -> None:
    for method in ("chance", "kmeans"):
        history = train_digits(method, epochs=1)[method].iloc[0]
        assert history["accuracy"] == pytest.approx(max(history["raw_accuracy"], 1 - history["raw_accuracy"]))
    named = train_digits("contrastive", epochs=1)["contrastive"].iloc[0]
    assert named["accuracy"] == named["raw_accuracy"]


def test_a_summary_holds_the_better_of_accuracy_and_its_complement() -> None:
    keys = {"dataset": "d", "variant": "base", "tuple_size": 2, "n": 9, "prior": "0.5", "method": "siamese"}
    keys |= {"law": "dominant"}
    trials = [{"loss": "logistic", "seed": seed, "accuracy": value} for seed, value in ((1, 40.0), (2, 55.0))]
    accuracies = pd.DataFrame([{**keys, **trial, "first_epoch": 1, "last_epoch": 2} for trial in trials])
    cell = summarize(accuracies).iloc[0]
    assert (cell["mean"], cell["better_mean"]) == (47.5, 57.5)


def test_order_on_digits(train_digits: Train) -> None:
    found = train_digits("supervised", "abs", "relu-part", "chance", epochs=30)
    accuracy = {method: history["accuracy"].tail(5).mean() for method, history in found.items()}
    assert accuracy["supervised"] > 0.9
    assert accuracy["supervised"] > max(accuracy["abs"], accuracy["relu-part"])
    assert min(accuracy["abs"], accuracy["relu-part"]) > accuracy["chance"] + 0.1


def test_every_method_trains_on_tuples_of_four(train_digits: Train) -> None:
    found = train_digits(*available_methods(), epochs=1, tuple_size=4, n=120)
    assert sorted(found) == available_methods()
    for method, history in found.items():
        assert history[["objective", "accuracy"]].notna().all(axis=None), method


def test_a_method_in_company_trains_as_alone(train_digits: Train) -> None:
    together = train_digits("siamese", "abs", "contrastive", epochs=2)
    for method in together:
        pd.testing.assert_frame_equal(together[method], train_digits(method, epochs=2)[method])


def test_stacks_hold_one_head() -> None:
    methods = ("ure", "siamese", "relu", "contrastive", "nnpu", "llp")
    tasks = [Task(method, 2, prior, seed=1, sample=str(prior)) for prior in (0.4, 0.5) for method in methods]
    for stack_by, corrected in (("stream", (3, 1)), ("shape", (3, 2))):
        stacks = make_stacks(tasks, True, stack_by)
        assert Counter(task for stack in stacks for row in stack for task in row) == Counter(tasks)
        shapes = {(len(s), len(s[0])) for s in stacks if s[0][0].method == "ure"}
        assert shapes == {corrected}
        for stack in stacks:
            assert len({load_method(task.method).head for row in stack for task in row}) == 1  # type: ignore[union-attr]


def test_an_embedding_method_resumes_where_it_was_killed(
    digits: Any, draw: Callable[..., Sample], quick_settings: Settings, tmp_path: Path
) -> None:
    """The learned distance of the Siamese network is in the checkpoint too."""
    task = Task("siamese", 2, 0.5, seed=1)
    settings = replace(quick_settings, epochs=4, batch_size=100)
    path = tmp_path / "stack.pt"

    def trained(advance: Callable[[int], None] = lambda done: None, saved: bool = True) -> pd.DataFrame:
        (model,) = fit(
            [task],
            digits.images.train_images,
            draw(),
            settings,
            evaluation=digits.rates(),
            device="cpu",
            advance=advance,
            checkpoint_of=lambda stack: Checkpoint(path, "key", 0) if saved else None,
        )
        return model.history

    whole = trained(saved=False)
    done = []

    def killed(task_epochs: int) -> None:
        done.append(task_epochs)
        if len(done) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(killed)
    assert path.exists()
    resumed_from: list[int] = []
    resumed = trained(resumed_from.append)
    assert resumed_from[0] == 3
    pd.testing.assert_frame_equal(resumed, whole)


def test_methods_without_a_network_make_cohorts_that_need_no_gpu() -> None:
    config = load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"])
    config["definitions"]["experiments"]["quick-pairs"]["method"] = ["abs", "kmeans", "siamese", "chance"]
    plan = Plan(config | {"experiments": ["quick-pairs"]})
    methods = {name: {run.method for run in cohort.runs} for name, cohort in plan.cohorts.items()}
    on_cpu = {name: methods[name] for name, cohort in plan.cohorts.items() if not cohort.needs_gpu}
    assert on_cpu == {"digits/base/m2/n800/cpu": {"kmeans", "chance"}}
    assert methods.keys() - on_cpu.keys() == {"digits/base/m2/n800"}
    assert methods["digits/base/m2/n800"] == {"abs", "siamese"}


def test_plans_and_reports_read_methods_without_torch() -> None:
    program = (
        "import sys; from mdpu.pipeline.config import available_methods; from mdpu.learn.methods import load_method;"
        "titles = [load_method(name).title for name in available_methods()];"
        "assert len(set(titles)) == len(titles) > 12; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY).returncode == 0


def test_only_methods_that_need_no_label_are_tuned() -> None:
    config = load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"])
    config["protocol"]["training"]["hyperparameters"] = "tuned"
    config["definitions"]["experiments"]["quick-pairs"]["method"] = available_methods()
    plan = Plan(config | {"experiments": ["quick-pairs"]})
    (tuning,) = plan.tunings.values()
    tuned = {run.method for run in tuning.runs}
    assert not tuned & {"siamese", "contrastive", "kmeans", "supervised", "chance"}
    assert {"ure", "relu", "abs", "nnpu", "llp"} <= tuned
