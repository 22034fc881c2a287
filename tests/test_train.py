"""The trainer: against a loop that is written apart, several seeds at once, interruptions,
histories.
"""

import itertools
import math
import pickle
import platform
import subprocess
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from blobs import (
    IMAGES,
    LABELS,
    SETTINGS,
    SIDE,
    TEST_IMAGES,
    TEST_LABELS,
    assert_same,
    draw_sample,
    rates,
    train_blobs,
)
from hypothesis import given
from hypothesis import strategies as st
from precision import in_float64
from torch import nn

import mdpu.train as trainer
from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.losses import RiskLoss, TupleLoss
from mdpu.methods import Objective, available_methods, load_method
from mdpu.methods.loss import LossObjective
from mdpu.randomness import Stream
from mdpu.settings import Settings, Task
from mdpu.train import TestSet, minibatches, train

NETWORK_METHODS = [name for name in available_methods() if load_method(name).trains_network]
RAGGED = [name for name in NETWORK_METHODS if load_method(name).takes_ragged]


def convolutional(shape):
    """A module with running statistics."""
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 1)
    )


# -- against a loop that is written apart ----------------------------------------------------------


def train_one(method, settings=SETTINGS, **others):
    """Train one seed on pairs."""
    [trained] = train_blobs(method, [draw_sample()], [3], settings, **others)
    return trained


def softplus(z):
    return torch.log1p(torch.exp(-z.abs())) + z.clamp(min=0)


def pixels(images):
    return torch.from_numpy(images).flatten(1).double() / 255


def initial_network(seed, hidden):
    """Return a multilayer perceptron with the weights that a seed gives."""
    layers = []
    sizes = [SIDE * SIDE, *hidden, 1]
    for place, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        uniform = Stream(seed, "initial weights", place).uniform(inputs + 1, outputs)
        values = torch.from_numpy((2 * uniform - 1) / math.sqrt(inputs))
        layer = nn.Linear(inputs, outputs, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(values[:-1].T)
            layer.bias.copy_(values[-1])
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def passing(scores):
    """Return the probability that pairs with the scores (B, 2) have a positive."""
    return 1 - (1 - scores.sigmoid()).prod(dim=1)


def bag_risk(tuples, unlabeled, p):
    """Return the bag risk of pairs, and the mean probability of unlabeled images."""
    z = 1 - (1 - p) ** 2
    bags = unlabeled[: len(unlabeled) // 2 * 2].view(-1, 2)
    q_of_tuples = passing(tuples)
    q_of_bags = passing(bags)
    positive = z * ((1 - q_of_tuples) ** 2).mean()
    subtracted = z * (q_of_tuples**2).mean()
    negative = (q_of_bags**2).mean() - subtracted
    share_positive = unlabeled.sigmoid().mean()
    return positive + negative.clamp(min=0), [share_positive.item()]


def paper_risk(tuples, unlabeled, p, method):
    """Return the risk of pairs with its correction, and its four terms (Eq. 11)."""
    q = 1 - p
    passed = p**2 + 2 * p * q  # pairs with at least one positive
    a = (p**2 + p * q) / passed
    b = p * q / passed
    terms = [
        p * q * softplus(-tuples).mean(),
        -p * q * softplus(tuples).mean(),
        -b * p * softplus(-unlabeled).mean(),
        a * q * softplus(unlabeled).mean(),
    ]
    terms = [term / (a * q - b * p) for term in terms]

    risk = sum(terms)
    corrected = {"ure": risk, "relu": risk.clamp(min=0), "abs": risk.abs()}
    return corrected[method], [term.item() for term in terms]


def one_cycle(step, steps):
    """Return the share of the learning rate, which rises over a fifth and falls over the rest."""
    rise = (step + 1) / (0.2 * steps)
    fall = (steps - step) / (0.8 * steps)
    return min(rise, fall, 1.0)


def written_apart(method, sample, seed, settings, prior=0.4):
    """Train pairs in doubles, as a book would: all pixels, torch.optim, every gradient; Eq. 11 and
    the bag risk.

    Returns the measures of each epoch, the scores of the test images, and whether each step had
    terms of a negative sum.
    """
    images = pixels(IMAGES)
    module = initial_network(seed, settings.architecture["hidden"])
    averaged = deepcopy(module)
    optimizers = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    optimizer = optimizers[settings.optimizer](
        module.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    n = len(sample.tuples)
    n_unlabeled = len(sample.unlabeled)
    batch = settings.batch_size
    steps = math.ceil(n / batch) * settings.epochs
    step = 0
    history = []
    negative = []

    for epoch in range(settings.epochs):
        tuples = sample.tuples[Stream(seed, "tuple order", epoch).permutation(n)]
        order = Stream(seed, "unlabeled order", epoch).permutation(n_unlabeled)
        unlabeled = sample.unlabeled[order]
        row = 0
        for first in range(0, n, batch):
            members = tuples[first : first + batch]
            start = round(first * n_unlabeled / n)
            stop = round((first + len(members)) * n_unlabeled / n)
            of_tuples = module(images[members])[..., 0]  # (B, 2)
            of_unlabeled = module(images[unlabeled[start:stop]])[..., 0]  # (B_U,)

            keep = 0.0
            if method == "bag-relu":
                keep = min(0.98, (1 + step) / (10 + step))
                objective, recorded = bag_risk(of_tuples, of_unlabeled, prior)
            else:
                objective, recorded = paper_risk(of_tuples, of_unlabeled, prior, method)
            if settings.schedule == "one-cycle":
                rate = settings.learning_rate * one_cycle(step, steps)
                optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            objective.backward()
            optimizer.step()
            with torch.no_grad():
                for mean, weight in zip(averaged.parameters(), module.parameters(), strict=True):
                    mean.lerp_(weight, 1 - keep)

            row += len(members) / n * np.array([objective.item(), *recorded])
            negative.append(sum(recorded) < 0)
            step += 1

        with torch.no_grad():
            scores = averaged(pixels(TEST_IMAGES))[:, 0].numpy()
        true_positive = (scores[TEST_LABELS > 0] > 0).mean()
        true_negative = (scores[TEST_LABELS < 0] <= 0).mean()
        history.append([*row, true_positive, true_negative])
    return np.array(history), scores, negative


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("ure", {}),
        ("ure", {"optimizer": "adamw", "weight_decay": 0.5}),
        ("ure", {"schedule": "one-cycle", "learning_rate": 0.01}),
        ("relu", {"learning_rate": 0.02, "epochs": 12}),
        ("abs", {"learning_rate": 0.02, "epochs": 12}),
        ("bag-relu", {"learning_rate": 0.01, "epochs": 8}),
    ],
)
def test_the_numbers_are_those_of_a_loop_that_is_written_apart(method, changes):
    settings = replace(SETTINGS, **changes)
    expected, expected_scores, negative = written_apart(method, draw_sample(), 3, settings)
    with in_float64():
        trained = train_one(method, settings)
        scores = trained.decision_function(TEST_IMAGES)

    history = trained.history.drop(columns=["epoch", "test_risk"], errors="ignore")
    tolerance = 1e-5 * np.abs(expected_scores).max()
    np.testing.assert_allclose(history, expected, atol=1e-5)
    np.testing.assert_allclose(scores, expected_scores, atol=tolerance)
    assert any(negative) == (method in ("relu", "abs"))  # corrections act


def test_no_pass_goes_backward_where_a_corrected_risk_is_flat():
    passes = []

    class Counted(nn.Linear):
        def forward(self, x):
            out = super().forward(x)
            if out.requires_grad:
                out.register_hook(passes.append)
            return out

    def network(shape):
        return nn.Sequential(nn.Flatten(), Counted(SIDE * SIDE, 1))

    settings = replace(SETTINGS, epochs=40, learning_rate=0.05, network=network, architecture={})
    counts = {}
    for method in ("ure", "relu"):
        passes.clear()
        train_blobs(method, [draw_sample()], [3], settings)
        counts[method] = len(passes)
    assert 0 < counts["relu"] < counts["ure"] == 40 * 3


# -- several seeds at once -------------------------------------------------------------------------


def both_ways(method, samples, settings=SETTINGS, **others):
    """Train seeds 3 and 4 at once and each by itself, and compare histories and outputs."""
    outputs = []
    with in_float64():
        together = train_blobs(method, samples, [3, 4], settings, **others)

        for seed, sample, trained in zip((3, 4), samples, together, strict=True):
            [alone] = train_blobs(method, [sample], [seed], settings, **others)
            expected = alone.outputs(TEST_IMAGES)
            output = trained.outputs(TEST_IMAGES)
            assert trained.seed == seed
            assert_same(trained.history, alone.history, 1e-6)
            np.testing.assert_allclose(output, expected, atol=1e-6)
            outputs.append(output)

    assert not np.allclose(*outputs, atol=1e-3)


@pytest.mark.parametrize("method", NETWORK_METHODS)
def test_seeds_at_once_are_the_seeds_one_by_one(method):
    both_ways(method, [draw_sample(1, 3), draw_sample(2, 3)])


@pytest.mark.parametrize("method", RAGGED)
def test_seeds_at_once_are_the_seeds_one_by_one_for_tuples_of_several_sizes(method):
    samples = [draw_sample(seed, 3) for seed in (1, 2)]
    for sample in samples:
        sample.tuples[::2, 2] = -1
        sample.tuples[::6, 1] = -1
    both_ways(method, samples)


@pytest.mark.parametrize("method", ["relu", "bag-relu"])
def test_seeds_at_once_are_the_seeds_one_by_one_for_a_module_with_running_statistics(method):
    both_ways(
        method,
        [draw_sample(1), draw_sample(2)],
        replace(SETTINGS, network=convolutional, architecture={}),
    )


def test_frozen_layers_stay_as_they_are_and_the_module_that_was_given_does():
    torch.manual_seed(0)
    module = convolutional(None)
    module[0].requires_grad_(False)
    before = deepcopy(module.state_dict())
    settings = replace(SETTINGS, network=module, architecture={})

    models = train_blobs("ure", [draw_sample(1), draw_sample(2)], [3, 4], settings)

    after = module.state_dict()
    assert all(after[name].equal(before[name]) for name in before)
    for trained in models:
        state = trained.module.state_dict()
        assert state["0.weight"].equal(before["0.weight"])
        assert not state["4.weight"].equal(before["4.weight"])
        assert state["1.num_batches_tracked"].item() == 4 * 3
        assert not state["1.running_mean"].equal(before["1.running_mean"])


@pytest.mark.parametrize("seeds", [[3], [3, 4]])
def test_parts_of_a_network_have_rates_of_their_own(seeds):
    """Adam's first step has the size of the rate, whatever the gradient."""
    samples = [draw_sample() for _ in seeds]

    def states(**changes):
        settings = replace(SETTINGS, epochs=1, batch_size=999, weight_decay=0, **changes)
        models = train_blobs("ure", samples, seeds, settings)
        return [trained.module.state_dict() for trained in models]

    starts = states(learning_rate=1e-12)
    by_one_rate = states()
    by_own_rates = states(rates={"0": 0.1, "2.": 3})

    for start, plain, own in zip(starts, by_one_rate, by_own_rates, strict=True):
        for name, factor in {"0.weight": 0.1, "0.bias": 0.1, "2.weight": 3}.items():
            expected = factor * (plain[name] - start[name])
            step = own[name] - start[name]
            torch.testing.assert_close(step, expected, atol=1e-6, rtol=1e-3)


def test_a_rate_of_a_part_that_no_network_has_is_refused():
    with pytest.raises(UserError, match="layer9"):
        train_one("ure", replace(SETTINGS, rates={"layer9": 0.1}))


# -- interruptions ---------------------------------------------------------------------------------


class Killed(BaseException):
    """As SIGKILL, but within the process."""


def kill_after(epochs):
    def hook(epoch, rows):
        if epoch == epochs:
            raise Killed

    return hook


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize(
    ("method", "seeds", "network"),
    [
        ("relu", [3], "mlp"),
        ("bag-relu", [3], convolutional),
        ("siamese", [3], "mlp"),
        ("abs", [3, 4], "mlp"),
        ("bag-relu", [3, 4], convolutional),
        ("ure", [3], lambda shape: nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(36, 1))),
    ],
)
def test_a_training_that_is_killed_goes_on_as_if_it_had_not_been(
    method, seeds, network, after, tmp_path
):
    own = SETTINGS.architecture if network == "mlp" else {}
    settings = replace(SETTINGS, network=network, architecture=own)
    samples = [draw_sample(seed) for seed in seeds]
    options = {"checkpoint": tmp_path / "folder" / "run.pt", "checkpoint_seconds": 0.0}
    undisturbed = train_blobs(method, samples, seeds, settings)
    with pytest.raises(Killed):
        train_blobs(method, samples, seeds, settings, on_epoch_end=kill_after(after), **options)
    assert [path.name for path in options["checkpoint"].parent.iterdir()] == ["run.pt"]
    # As if it had been killed while it wrote.
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / "folder" / f".run.{platform.node()}-{ended.pid}.pt").touch()
    epochs = []
    resumed = train_blobs(
        method, samples, seeds, settings, on_epoch_end=lambda e, rows: epochs.append(e), **options
    )
    assert epochs == list(range(after + 1, 5))
    for trained, expected in zip(resumed, undisturbed, strict=True):
        assert_same(trained.history, expected.history)
        assert (trained.outputs(TEST_IMAGES) == expected.outputs(TEST_IMAGES)).all()
    assert list(options["checkpoint"].parent.iterdir()) == []


def other_sample(options):
    options["samples"] = [draw_sample(2)]


def other_settings(options):
    options["settings"] = replace(SETTINGS, learning_rate=0.001)


def other_images(options):
    options["images"] = IMAGES // 2


def damage(options):
    content = bytearray(options["checkpoint"].read_bytes())
    content[len(content) // 2] ^= 1
    options["checkpoint"].write_bytes(content)


def cut(options):
    options["checkpoint"].write_bytes(options["checkpoint"].read_bytes()[:20])


@pytest.mark.parametrize("change", [other_sample, other_settings, other_images, damage, cut])
def test_a_file_of_another_training_or_a_damaged_one_is_not_used(change, tmp_path, capsys):
    options = {
        "checkpoint": tmp_path / "run.pt",
        "checkpoint_seconds": 0.0,
        "samples": [draw_sample()],
    }
    with pytest.raises(Killed):
        train_blobs("relu", seeds=[3], on_epoch_end=kill_after(2), **options)
    change(options)
    epochs = []
    [trained] = train_blobs(
        "relu", seeds=[3], on_epoch_end=lambda epoch, rows: epochs.append(epoch), **options
    )
    assert epochs == [1, 2, 3, 4]
    assert "run.pt" in capsys.readouterr().err
    anew = {name: options[name] for name in ("samples", "settings", "images") if name in options}
    assert_same(trained.history, train_blobs("relu", seeds=[3], **anew)[0].history)


def test_a_training_with_another_loss_begins_anew(tmp_path):
    law = Law.dominant(2)
    options = {"checkpoint": tmp_path / "run.pt", "checkpoint_seconds": 0.0}
    samples = [draw_sample()]
    first = RiskLoss(law, 0.4, None, loss="squared")
    with pytest.raises(Killed):
        train_blobs("relu", samples, [3], loss=first, on_epoch_end=kill_after(2), **options)

    others = [
        RiskLoss(law, 0.4, "abs", loss="squared"),
        RiskLoss(law, 0.4, None, loss="logistic"),
        RiskLoss(law, 0.4, None, "part", loss="squared"),
        RiskLoss(law, 0.3, None, loss="squared"),
        RiskLoss(Law.exactly(2, 1).broken(0.1), 0.4, None, loss="squared"),
    ]
    assert len({repr(loss) for loss in [first, *others]}) == 6
    epochs = []
    train_blobs(
        "relu",
        samples,
        [3],
        loss=others[0],
        on_epoch_end=lambda epoch, rows: epochs.append(epoch),
        **options,
    )
    assert epochs == [1, 2, 3, 4]


def test_it_is_written_not_more_often_than_asked_for_and_never_half(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    with pytest.raises(Killed):
        train_one("ure", checkpoint=path, on_epoch_end=kill_after(3))
    assert not path.exists()  # a minute has not passed

    at_once = {"checkpoint": path, "checkpoint_seconds": 0}
    with pytest.raises(Killed):
        train_one("ure", on_epoch_end=kill_after(1), **at_once)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"run\.pt"):
        train_one("ure", **at_once)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]


# -- the hook, the history, what is left alone -----------------------------------------------------


def test_the_hook_sees_every_epoch_of_every_seed_and_may_end_the_training():
    seen = {}

    def hook(epoch, rows):
        seen[epoch] = rows
        return epoch == 3

    trained = train_blobs("relu", [draw_sample(1), draw_sample(2)], [3, 4], on_epoch_end=hook)
    assert list(seen) == [1, 2, 3]
    for s, model in enumerate(trained):
        assert [rows[s] for rows in seen.values()] == model.history.drop(columns="epoch").to_dict(
            "records"
        )
        assert model.history["epoch"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("method", ["kmeans", "chance"])
def test_a_method_without_a_network_has_the_same_measures_at_every_epoch(method):
    epochs = []
    trained = train_one(method, on_epoch_end=lambda epoch, rows: epochs.append(epoch))
    measures = trained.history.drop(columns="epoch")
    answers = trained.predict(TEST_IMAGES)

    assert epochs == [1, 2, 3, 4]
    assert trained.history["epoch"].tolist() == epochs
    assert (measures.nunique() == 1).all()
    assert measures["true_positive_rate"][0] == (answers[TEST_LABELS > 0] == 1).mean()
    assert measures["true_negative_rate"][0] == (answers[TEST_LABELS < 0] == -1).mean()


class Breaks(nn.Module):
    """Ends in infinity after six steps, for one seed in two."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(SIDE * SIDE, 1)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("breaks", (torch.rand(()) < 0.5).float())

    def forward(self, x):
        if self.training:
            self.steps += 1
        broken = self.breaks * (self.steps > 6).float()
        return self.layer(x.flatten(1)) / (1 - broken)


def test_a_training_that_diverges_has_gaps_from_then_on_and_its_neighbour_has_not():
    settings = replace(SETTINGS, network=lambda shape: Breaks(), architecture={})

    models = train_blobs("ure", [draw_sample()] * 8, list(range(8)), settings)

    patterns = set()
    for trained in models:
        gaps = trained.history.drop(columns="epoch").isna()
        assert (gaps.nunique(axis=1) == 1).all()
        patterns.add(tuple(gaps["objective"]))
    assert patterns == {
        (False, False, False, False),
        (False, False, True, True),
    }


def test_generators_and_switches_of_the_process_are_left_as_they_are(monkeypatch):
    """A CPU has no TF32; torch would set it for some."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    switches = []

    def hook(epoch, rows):
        cudnn = torch.backends.cudnn
        switches.append((torch.get_float32_matmul_precision(), cudnn.allow_tf32, cudnn.benchmark))
        raise Killed

    state = torch.get_rng_state()
    for precision in ("float32", "tf32", "bfloat16"):
        with pytest.raises(Killed):
            train_blobs(
                "ure",
                [draw_sample()],
                [3],
                replace(SETTINGS, precision=precision),
                on_epoch_end=hook,
            )
        assert torch.backends.cudnn.allow_tf32
    assert switches == [("highest", False, False)] * 3
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda seed: train_blobs("ure", [draw_sample()], [seed], SETTINGS), range(4)))
    assert torch.get_rng_state().equal(state)


def test_bfloat16_rounds_products_and_nothing_else():
    at_start = replace(SETTINGS, epochs=1, learning_rate=1e-30, weight_decay=0.0)
    exact = train_one("ure", at_start)
    rounded = train_one("ure", replace(at_start, precision="bfloat16"))

    difference = exact.history["objective"] - rounded.history["objective"]
    assert 1e-7 < difference.abs().max() < 1e-2
    assert all(parameter.dtype == torch.float32 for parameter in rounded.module.parameters())


def test_large_images_are_read_where_they_lie_with_the_same_numbers(tmp_path, monkeypatch):
    kept = train_one("relu")
    np.save(tmp_path / "images.npy", IMAGES)
    on_disk = np.load(tmp_path / "images.npy", mmap_mode="r")

    monkeypatch.setattr(trainer, "LARGE", 0)
    read = train_one("relu", images=on_disk)

    assert_same(read.history, kept.history)


def test_scores_that_training_starts_from_fade_over_the_first_third(monkeypatch):
    """At a rate of almost zero, the objective is that of the networks' scores and what is left of
    these.
    """

    def start(objective, sample, seed, images):
        return LABELS * 5.0

    monkeypatch.setattr(Objective, "start", start)
    settings = replace(SETTINGS, epochs=6, learning_rate=1e-30, weight_decay=0.0)

    values = train_one("supervised", settings).history["objective"].to_numpy()

    assert values[0] < values[1] < 0.9 * values[2]
    assert np.ptp(values[2:]) < 0.02


@pytest.mark.parametrize(
    ("start", "low", "high"),
    [
        pytest.param(LossObjective.start, 0.9, 1.0, id="second moments"),
        pytest.param(Objective.start, 0.0, 0.6, id="none"),
    ],
)
def test_a_law_with_a_saddle_is_learned_from_second_moments_and_not_without(
    start, low, high, monkeypatch
):
    """Exactly one positive of three at 1/3: single members say nothing."""
    monkeypatch.setattr(LossObjective, "start", start)
    told = {"law": Law.exactly(3, 1), "prior": 1 / 3}
    seeds = [3, 4, 5]
    samples = [draw_sample(seed, n=400, unlabeled=400, **told) for seed in seeds]
    settings = replace(SETTINGS, epochs=40, batch_size=50, learning_rate=0.02)

    for trained in train_blobs("bag-relu", samples, seeds, settings, **told):
        rates = trained.history[["true_positive_rate", "true_negative_rate"]]
        assert low <= rates.iloc[-1].mean() <= high


# -- a loss of one's own -------------------------------------------------------------------------


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(
    ("method", "loss"),
    [("bag-relu", TupleLoss(Law.dominant, 0.4)), ("relu", RiskLoss(Law.dominant, 0.4))],
)
def test_a_function_trains_as_the_method_whose_loss_it_computes(method, loss, ragged):
    samples = [draw_sample(1), draw_sample(2)]
    if ragged:
        for sample in samples:
            sample.tuples[::3, 1] = -1
    with in_float64():
        by_name = train_blobs(method, samples, [3, 4])
        by_function = train_blobs(method, samples, [3, 4], loss=lambda *scores: loss(*scores))
    for trained, expected in zip(by_function, by_name, strict=True):
        shared = ["epoch", "objective", "true_positive_rate", "true_negative_rate"]
        assert list(trained.history.columns) == shared
        assert_same(trained.history, expected.history[shared], 1e-9)


def test_a_loss_that_is_given_records_what_it_measures():
    trained = train_one("relu", loss=TupleLoss(Law.dominant, 0.4))
    assert "model_prior" in trained.history


@pytest.mark.parametrize(
    ("method", "loss", "said"),
    [
        ("relu", TupleLoss, "instance"),
        ("llp", lambda tuples, unlabeled: tuples.mean(), "llp"),
        ("kmeans", lambda tuples, unlabeled: tuples.mean(), "kmeans"),
        ("relu", lambda tuples, unlabeled: 1.0, "one number"),
        ("relu", lambda tuples, unlabeled: unlabeled, "one number"),
        ("relu", lambda tuples, unlabeled: unlabeled.mean().detach(), "depends"),
    ],
)
def test_a_function_that_is_no_loss_is_refused(method, loss, said):
    with pytest.raises(UserError, match=said):
        train_blobs(method, [draw_sample()], [3], loss=loss)


# -- minibatches -----------------------------------------------------------------------------------


def in_order(n, n_unlabeled, S):
    """Return the indices of pairs (S, n, 2) and of unlabeled images (S, n_unlabeled)."""
    tuples = torch.arange(2 * n).view(n, 2)
    unlabeled = torch.arange(n_unlabeled)
    return tuples.expand(S, n, 2), unlabeled.expand(S, n_unlabeled)


@given(st.integers(1, 40), st.integers(1, 60), st.integers(1, 50), st.integers(1, 3))
def test_an_epoch_sees_every_tuple_and_every_unlabeled_image_once(n, n_unlabeled, batch, S):
    tuples, unlabeled = in_order(n, n_unlabeled, S)
    for epoch in (0, 1):
        batches = list(minibatches(list(range(S)), tuples, unlabeled, batch, epoch))
        of_tuples, of_unlabeled = zip(*batches, strict=True)
        assert len(batches) == math.ceil(n / batch)
        assert all(part.shape[1] == batch for part in of_tuples[:-1])
        assert all(part.shape[1] >= 1 for part in of_unlabeled)

        seen_tuples = torch.cat(of_tuples, dim=1)
        seen_unlabeled = torch.cat(of_unlabeled, dim=1)
        for s in range(S):
            assert sorted(seen_tuples[s].tolist()) == tuples[s].tolist()
            assert set(seen_unlabeled[s].tolist()) == set(range(n_unlabeled))
        if n_unlabeled >= n:
            assert seen_unlabeled.shape[1] == n_unlabeled


def test_orders_differ_between_epochs_and_seeds_and_are_drawn_again():
    tuples, unlabeled = in_order(50, 60, S=2)

    def order(epoch):
        return next(minibatches([1, 2], tuples, unlabeled, 50, epoch))

    for first, again, later in zip(order(0), order(0), order(1), strict=True):
        assert first.equal(again)
        assert not first[0].equal(first[1])
        assert not first.equal(later)


@pytest.mark.parametrize(
    ("counts", "size", "expected"),
    [
        ("tuples", 3, 10),
        ("images", 3, 3),
        ("images", 20, 1),
    ],
)
def test_a_minibatch_counts_tuples_or_their_members(counts, size, expected, monkeypatch):
    sizes = []

    def watched(seeds, tuples, unlabeled, batch, epoch):
        sizes.append(batch)
        return minibatches(seeds, tuples, unlabeled, batch, epoch)

    monkeypatch.setattr(trainer, "minibatches", watched)
    settings = replace(SETTINGS, epochs=1, batch_size=10, batch_counts=counts)
    train_blobs("relu", [draw_sample(3, size)], [3], settings)
    assert sizes == [expected]


# -- what is given ---------------------------------------------------------------------------------

PAIRS = TupleData(np.arange(40).reshape(20, 2), np.arange(40, 70))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"method": "nothing"}, "nothing"),
        ({"samples": [], "seeds": []}, "samples"),
        ({"seeds": [1, 2]}, "seeds"),
        (
            {"samples": [PAIRS, TupleData(PAIRS.tuples[:9], PAIRS.unlabeled)], "seeds": [1, 2]},
            "samples",
        ),
        ({"samples": [TupleData(PAIRS.tuples, np.array([300]))]}, "unlabeled"),
        ({"samples": [TupleData(PAIRS.tuples, np.array([], np.int64))]}, "unlabeled"),
        ({"samples": [TupleData(PAIRS.tuples - 2, PAIRS.unlabeled)]}, "tuples"),
        ({"samples": [TupleData(np.array([[-1, 1]]), PAIRS.unlabeled)]}, "tuple"),
        (
            {"samples": [TupleData(np.array([[1, -1, 2]]), PAIRS.unlabeled)], "tuple_size": 3},
            "tuple",
        ),
        ({"tuple_size": 3}, "tuple_size"),
        ({"law": Law.dominant(3)}, "law"),
        (
            {"method": "llp", "samples": [TupleData(np.array([[1, -1], [2, 3]]), PAIRS.unlabeled)]},
            "llp",
        ),
        ({"method": "supervised"}, "supervised"),
        ({"prior": 1.0}, "prior"),
        ({"images": IMAGES.astype(np.int64)}, "int64"),
        ({"images": np.where(IMAGES > 150, np.nan, IMAGES)}, "finite"),
        ({"network": "resnet34", "images": IMAGES.reshape(300, -1)}, "resnet34"),
        ({"network": lambda shape: "a module"}, "network"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, key):
    options = {
        "method": "relu",
        "tuple_size": 2,
        "prior": 0.5,
        "law": None,
        "samples": [PAIRS],
        "seeds": [1],
    }
    options |= {"images": IMAGES, "network": "mlp", **changes}
    task = Task(options["method"], options["tuple_size"], options["prior"], law=options["law"])
    settings = Settings(epochs=1, network=options["network"])
    with pytest.raises(UserError, match=key):
        train(task, options["images"], options["samples"], options["seeds"], settings)


# -- what comes out --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["relu", "contrastive"])
def test_a_trained_model_is_read_back_as_it_was(method):
    [trained] = train_blobs(method, [draw_sample()], [3], replace(SETTINGS, epochs=1))
    again = pickle.loads(pickle.dumps(trained))
    assert (again.outputs(TEST_IMAGES) == trained.outputs(TEST_IMAGES)).all()
    if method == "contrastive":
        assert trained.outputs(TEST_IMAGES).shape == (120, 64)
        with pytest.raises(UserError, match="contrastive"):
            trained.predict(TEST_IMAGES)
    else:
        assert (
            again.predict(TEST_IMAGES)
            == np.where(trained.decision_function(TEST_IMAGES) > 0, 1, -1)
        ).all()


def test_a_test_set_leaves_out_images_of_neither_side():
    labels = TEST_LABELS.copy()
    labels[::5] = 0
    is_kept = labels != 0
    whole = TestSet(TEST_IMAGES, labels, IMAGES, LABELS)
    kept = TestSet(TEST_IMAGES[is_kept], labels[is_kept], IMAGES, LABELS)

    by_whole = train_one("ure", evaluation=whole)
    by_kept = train_one("ure", evaluation=kept)

    assert_same(by_whole.history, by_kept.history)
    assert kept.share_positive == (labels > 0).sum() / is_kept.sum()
    assert kept.share_positive != rates().share_positive


def test_without_an_evaluation_the_training_is_the_same():
    task = Task("relu", 2, 0.4)
    [bare] = train(task, IMAGES, [draw_sample()], [3], SETTINGS)
    measured = train_one("relu")

    assert_same(bare.history, measured.history[bare.history.columns])
    assert (bare.outputs(TEST_IMAGES) == measured.outputs(TEST_IMAGES)).all()
