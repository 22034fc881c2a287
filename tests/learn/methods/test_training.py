"""Methods trained: against ordinary loops and libraries, and in their order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from mdpu.data import TupleData
from mdpu.estimator import MDPUClassifier
from mdpu.learn import Settings, Task, fit
from mdpu.learn.methods import available_methods, load_method
from mdpu.learn.methods.kmeans import STARTS
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan
from mdpu.randomness import Stream


def test_chance_is_the_majority_rate_for_either_test_prior(train_digits, digits):
    history = train_digits("chance", epochs=2)["chance"]
    share = digits.share_positive
    assert history["accuracy"].tolist() == pytest.approx([max(share, 1 - share)] * 2)
    skewed = history.assign(prior="0.3")
    matched = run_accuracies(skewed, {"average_last": 10, "test_prior": "matched"})
    assert matched["accuracy"].tolist() == pytest.approx([70])


@pytest.mark.parametrize("tuple_size", [2, 3])
def test_kmeans_is_scikit_learns_on_repeated_test_images(tuple_size, digits, draw):
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


def test_kmeans_is_the_same_whatever_the_threads():
    """On noise, whose clusters hang on a rounding; enough of it that scikit-learn would divide the work."""
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (4000, 8, 8, 1), dtype=np.uint8)
    sample = TupleData(np.arange(4000).reshape(2000, 2), np.arange(10))
    task = Task("kmeans", 2, 0.5, seed=1)
    before = torch.get_num_threads()
    try:
        found = set()
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            answers = load_method("kmeans").fit(task, sample, pixels)
            found.add((answers.objective, answers.says_positive(pixels).tobytes()))
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1


@pytest.mark.parametrize("method", ["linear", "student", "trees"])
@pytest.mark.parametrize("tuple_size", [2, 3])
def test_learners_of_tables_answer_as_the_classifiers_do(method, tuple_size, digits, draw):
    images, sample = digits.images, draw(tuple_size)
    if tuple_size > 2:
        sample.tuples[::3, 2] = -1
    rows = images.train_images.astype(np.float32)
    (model,) = fit([Task(method, tuple_size, 0.4, seed=1)], rows, sample, Settings(epochs=1), device="cpu")
    classifier = MDPUClassifier(0.4, learner=method, compare_prior=False, random_state=1).fit(rows, sample)
    assert np.array_equal(model.predict(images.test_images) > 0, classifier.predict(images.test_images) > 0)
    assert 0 < model.history["objective"].item() < 2 * np.log(2)


def test_methods_without_a_network_make_jobs_that_need_no_gpu():
    config = load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"])
    config["definitions"]["experiments"]["quick-pairs"]["method"] = ["abs", "kmeans", "siamese", "chance"]
    plan = Plan(config | {"experiments": ["quick-pairs"]})
    methods = {name: {run.method for run in job.runs} for name, job in plan.jobs.items()}
    on_cpu = {name: methods[name] for name, job in plan.jobs.items() if not job.needs_gpu}
    assert on_cpu == {"digits/base/m2/n800/cpu": {"kmeans", "chance"}}
    assert methods.keys() - on_cpu.keys() == {"digits/base/m2/n800"}
    assert methods["digits/base/m2/n800"] == {"abs", "siamese"}


def test_only_methods_that_need_no_label_are_tuned():
    config = load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"])
    config["protocol"]["training"]["hyperparameters"] = "tuned"
    config["definitions"]["experiments"]["quick-pairs"]["method"] = available_methods()
    plan = Plan(config | {"experiments": ["quick-pairs"]})
    (tuning,) = plan.tunings.values()
    tuned = {run.method for run in tuning.runs}
    assert not tuned & {"siamese", "contrastive", "kmeans", "supervised", "chance"}
    assert {"ure", "relu", "abs", "nnpu", "llp"} <= tuned
