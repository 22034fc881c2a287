"""The trainer: against a loop that is written apart, several seeds at once, interruptions,
histories.
"""

import itertools
import math
import pickle
import platform
import subprocess
from concurrent.futures import ThreadPoolExecutor
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


def softplus(z):
    return torch.log1p(torch.exp(-z.abs())) + z.clamp(min=0)


def written_apart(method, sample, seed, settings, prior=0.4):
    """Train pairs in doubles, as a book would: all pixels, torch.optim, every gradient; Eq. 11 and
    the bag risk.
    """
    sizes = [SIDE * SIDE, *settings.architecture["hidden"], 1]
    module = nn.Sequential(
        *[m for p in itertools.pairwise(sizes) for m in (nn.Linear(*p), nn.ReLU())][:-1]
    ).double()
    with torch.no_grad():
        for place, layer in enumerate(module[::2]):
            bound = 1 / math.sqrt(layer.in_features)
            drawn = Stream(seed, "initial weights", place).uniform(
                layer.in_features + 1, layer.out_features
            )
            drawn = torch.from_numpy((2 * drawn - 1) * bound)
            layer.weight.copy_(drawn[:-1].T)
            layer.bias.copy_(drawn[-1])
    x, test = (
        torch.from_numpy(images).flatten(1).double() / 255 for images in (IMAGES, TEST_IMAGES)
    )
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    optimizer = kind(
        module.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    p = prior
    q = 1 - prior
    passed = p**2 + 2 * p * q  # pairs with at least one positive
    a = (p**2 + p * q) / passed
    b = p * q / passed
    n = len(sample.tuples)
    n_unlabeled = len(sample.unlabeled)
    batch = settings.batch_size
    steps = math.ceil(n / batch)
    step = 0
    mean = [w.detach().clone() for w in module.parameters()]
    total = steps * settings.epochs
    rows = []
    flat = 0
    for epoch in range(settings.epochs):
        tuples = sample.tuples[Stream(seed, "tuple order", epoch).permutation(n)]
        others = sample.unlabeled[Stream(seed, "unlabeled order", epoch).permutation(n_unlabeled)]
        row = np.zeros(5)
        for first in range(0, n, batch):
            own = tuples[first : first + batch]
            edges = [round(edge * n_unlabeled / n) for edge in (first, min(n, first + batch))]
            t = module(x[own.ravel()])[:, 0]
            u = module(x[others[slice(*edges)]])[:, 0]
            if method == "bag-relu":
                bags = u[: len(u) // 2 * 2].view(-1, 2)
                t_q, u_q = (1 - (1 - g.sigmoid()).prod(dim=1) for g in (t.view(-1, 2), bags))
                negative = (u_q**2).mean() - passed * (t_q**2).mean()
                objective = passed * ((1 - t_q) ** 2).mean() + negative.clamp(min=0)
                recorded = [u.sigmoid().mean().item()]
            else:
                scale = a * q - b * p
                terms = [p * q * softplus(-t).mean(), -p * q * softplus(t).mean()]
                terms += [-b * p * softplus(-u).mean(), a * q * softplus(u).mean()]
                terms = [term / scale for term in terms]
                risk = sum(terms)
                objective = {"ure": risk, "relu": risk.clamp(min=0), "abs": risk.abs()}[method]
                recorded = [term.item() for term in terms]
                flat += risk.item() < 0
            rise = min((step + 1) / (0.2 * total), (total - step) / (0.8 * total), 1.0)
            optimizer.param_groups[0]["lr"] = settings.learning_rate * (
                rise if settings.schedule != "constant" else 1
            )
            optimizer.zero_grad()
            objective.backward()
            optimizer.step()
            keep = min(0.98, (1 + step) / (10 + step)) if method == "bag-relu" else 0.0
            mean = [
                keep * m + (1 - keep) * w.detach()
                for m, w in zip(mean, module.parameters(), strict=True)
            ]
            row[: 1 + len(recorded)] += len(own) / n * np.array([objective.item(), *recorded])
            step += 1
        layers = list(zip(mean[::2], mean[1::2], strict=True))
        with torch.no_grad():
            scores = test
            for place, (weight, bias) in enumerate(layers):
                scores = (scores.clamp(min=0) if place else scores) @ weight.T + bias
        positive = (scores[:, 0] > 0).numpy()
        true = [positive[TEST_LABELS > 0].mean(), 1 - positive[TEST_LABELS < 0].mean()]
        rows.append([*row[: 1 + len(recorded)], *true])
    return np.array(rows), scores[:, 0].numpy(), flat


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
    sample = draw_sample()
    expected, scores, flat = written_apart(method, sample, 3, settings)
    with in_float64():
        [trained] = train_blobs(method, [sample], [3], settings)
        found_scores = trained.decision_function(TEST_IMAGES)
    found = trained.history.drop(columns=["epoch", "test_risk"], errors="ignore")
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found_scores, scores, atol=1e-5 * np.abs(scores).max())
    assert (flat > 0) == (method in ("relu", "abs"))  # corrections act


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
    with in_float64():
        together = train_blobs(method, samples, [3, 4], settings, **others)
        outputs = [trained.outputs(TEST_IMAGES) for trained in together]

        for sample, trained, output in zip(samples, together, outputs, strict=True):
            [alone] = train_blobs(method, [sample], [trained.seed], settings, **others)
            assert_same(trained.history, alone.history, 1e-6)
            np.testing.assert_allclose(output, alone.outputs(TEST_IMAGES), atol=1e-6)

    assert [trained.seed for trained in together] == [3, 4]
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
    given_module = convolutional(None)
    given_module[0].requires_grad_(False)
    before = {name: value.clone() for name, value in given_module.state_dict().items()}
    settings = replace(SETTINGS, network=given_module, architecture={})
    for trained in train_blobs("ure", [draw_sample(1), draw_sample(2)], [3, 4], settings):
        state = trained.module.state_dict()
        assert all(value.equal(before[name]) for name, value in given_module.state_dict().items())
        assert state["0.weight"].equal(before["0.weight"])
        assert not state["4.weight"].equal(before["4.weight"])
        assert int(state["1.num_batches_tracked"]) == 4 * 3
        assert not state["1.running_mean"].equal(before["1.running_mean"])


@pytest.mark.parametrize("seeds", [[3], [3, 4]])
def test_parts_of_a_network_have_rates_of_their_own(seeds):
    """Adam's first step has the size of the rate, whatever the gradient."""
    first = {}
    for own in ({}, {"0": 0.1, "2.": 3}):
        settings = replace(SETTINGS, epochs=1, batch_size=999, weight_decay=0, rates=own)
        first[len(own)] = train_blobs("ure", [draw_sample() for _ in seeds], seeds, settings)
    start = train_blobs(
        "ure",
        [draw_sample() for _ in seeds],
        seeds,
        replace(SETTINGS, epochs=1, learning_rate=1e-12),
    )
    for before, plain, own in zip(start, first[0], first[2], strict=True):
        states = [model.module.state_dict() for model in (before, plain, own)]
        for name, factor in {"0.weight": 0.1, "0.bias": 0.1, "2.weight": 3}.items():
            steps = [state[name] - states[0][name] for state in states[1:]]
            torch.testing.assert_close(steps[1], factor * steps[0], atol=1e-6, rtol=1e-3)
    with pytest.raises(UserError, match="layer9"):
        train_blobs("ure", [draw_sample()], [3], replace(SETTINGS, rates={"layer9": 0.1}))


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


def test_it_is_written_not_more_often_than_asked_for_and_never_half(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    with pytest.raises(Killed):
        train_blobs("ure", [draw_sample()], [3], checkpoint=path, on_epoch_end=kill_after(3))
    assert not path.exists()  # a minute has not passed
    with pytest.raises(Killed):
        train_blobs(
            "ure",
            [draw_sample()],
            [3],
            checkpoint=path,
            checkpoint_seconds=0,
            on_epoch_end=kill_after(1),
        )
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"run\.pt"):
        train_blobs("ure", [draw_sample()], [3], checkpoint=path, checkpoint_seconds=0)
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
    [trained] = train_blobs(
        method, [draw_sample()], [3], on_epoch_end=lambda epoch, rows: epochs.append(epoch)
    )
    assert epochs == trained.history["epoch"].tolist() == [1, 2, 3, 4]
    assert (trained.history.drop(columns="epoch").nunique() == 1).all()
    answers = trained.predict(TEST_IMAGES)
    assert trained.history["true_positive_rate"][0] == (answers[TEST_LABELS > 0] == 1).mean()
    assert trained.history["true_negative_rate"][0] == (answers[TEST_LABELS < 0] == -1).mean()


def test_a_training_that_diverges_has_gaps_from_then_on_and_its_neighbour_has_not():
    class Breaks(nn.Module):
        """Ends in infinity after some steps, for one seed."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(SIDE * SIDE, 1)
            self.register_buffer("steps", torch.zeros(()))
            self.register_buffer("broken", (torch.rand(()) < 0.5).float())

        def forward(self, x):
            if self.training:
                self.steps += 1
            return self.layer(x.flatten(1)) / (1 - self.broken * (self.steps > 6).float())

    settings = replace(SETTINGS, network=lambda shape: Breaks(), architecture={})
    trained = train_blobs("ure", [draw_sample()] * 8, list(range(8)), settings)
    gaps = {tuple(model.history["objective"].isna()) for model in trained}
    assert gaps == {(False,) * 4, (False, False, True, True)}
    for model in trained:
        assert (model.history.drop(columns="epoch").isna().nunique(axis=1) == 1).all()


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
    [exact] = train_blobs("ure", [draw_sample()], [3])
    [rounded] = train_blobs("ure", [draw_sample()], [3], replace(SETTINGS, precision="bfloat16"))
    difference = (exact.history - rounded.history)["objective"].abs().max()
    assert 1e-7 < difference < 1e-2
    assert all(parameter.dtype == torch.float32 for parameter in rounded.module.parameters())


def test_large_images_are_read_where_they_lie_with_the_same_numbers(tmp_path, monkeypatch):
    [kept] = train_blobs("relu", [draw_sample()], [3])
    np.save(tmp_path / "images.npy", IMAGES)
    monkeypatch.setattr(trainer, "LARGE", 0)
    lying = np.load(tmp_path / "images.npy", mmap_mode="r")
    [read] = train_blobs("relu", [draw_sample()], [3], images=lying)
    assert_same(read.history, kept.history)


def test_scores_that_training_starts_from_fade_over_the_first_third(monkeypatch):
    """At a rate of almost zero, the objective is that of the networks' scores and what is left of
    these.
    """
    monkeypatch.setattr(Objective, "start", lambda self, sample, seed, images: LABELS * 5.0)
    settings = replace(SETTINGS, epochs=6, learning_rate=1e-30, weight_decay=0.0)
    [trained] = train_blobs("supervised", [draw_sample()], [3], settings)
    objective = trained.history["objective"].to_numpy()
    assert objective[0] < objective[1] < 0.9 * objective[2]
    assert np.ptp(objective[2:]) < 0.02


def test_a_law_with_a_saddle_is_learned_from_second_moments_and_not_without(monkeypatch):
    """Exactly one positive of three at 1/3: single members say nothing."""
    law = Law.exactly(3, 1)
    seeds = [3, 4, 5]
    samples = [draw_sample(seed, n=400, unlabeled=400, law=law, prior=1 / 3) for seed in seeds]
    settings = replace(SETTINGS, epochs=40, batch_size=50, learning_rate=0.02)
    for start, (low, high) in ((LossObjective.start, (0.9, 1.0)), (Objective.start, (0.0, 0.6))):
        monkeypatch.setattr(LossObjective, "start", start)
        for trained in train_blobs("bag-relu", samples, seeds, settings, prior=1 / 3, law=law):
            balanced = trained.history[["true_positive_rate", "true_negative_rate"]].iloc[-1].mean()
            assert low <= balanced <= high


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
    [trained] = train_blobs("relu", [draw_sample()], [3], loss=TupleLoss(Law.dominant, 0.4))
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


@given(st.integers(1, 40), st.integers(1, 60), st.integers(1, 50), st.integers(1, 3))
def test_an_epoch_sees_every_tuple_and_every_unlabeled_image_once(n, n_unlabeled, batch, S):
    tuples = torch.arange(2 * n).view(1, n, 2).repeat(S, 1, 1)
    unlabeled = torch.arange(n_unlabeled).repeat(S, 1)
    seeds = list(range(S))
    for epoch in (0, 1):
        members, others = zip(*minibatches(seeds, tuples, unlabeled, batch, epoch), strict=True)
        assert len(members) == math.ceil(n / batch)
        assert all(part.shape[1] == batch for part in members[:-1])
        assert all(part.shape[1] >= 1 for part in others)
        for s in range(S):
            assert sorted(torch.cat(members, dim=1)[s, :, 0].tolist()) == list(range(0, 2 * n, 2))
            seen = torch.cat(others, dim=1)[s].tolist()
            assert set(seen) == set(range(n_unlabeled))
            assert n_unlabeled < len(members) or len(seen) == n_unlabeled


def test_orders_differ_between_epochs_and_seeds_and_are_drawn_again():
    tuples = torch.arange(100).view(1, 50, 2).repeat(2, 1, 1)
    unlabeled = torch.arange(60).repeat(2, 1)

    def first(epoch):
        return next(minibatches([1, 2], tuples, unlabeled, 50, epoch))

    for part, again in zip(first(0), first(0), strict=True):
        assert part.equal(again) and not part[0].equal(part[1])
    assert not any(part.equal(other) for part, other in zip(first(0), first(1), strict=True))


@pytest.mark.parametrize(
    ("counts", "size", "expected"), [("tuples", 3, 10), ("images", 3, 3), ("images", 20, 1)]
)
def test_a_minibatch_counts_tuples_or_their_members(counts, size, expected, monkeypatch):
    cut = []
    monkeypatch.setattr(
        trainer, "minibatches", lambda *given: cut.append(given[3]) or minibatches(*given)
    )
    train_blobs(
        "relu",
        [draw_sample(3, size)],
        [3],
        replace(SETTINGS, epochs=1, batch_size=10, batch_counts=counts),
    )
    assert cut == [expected]


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
    kept = labels != 0
    [some] = train_blobs(
        "ure", [draw_sample()], [3], evaluation=TestSet(TEST_IMAGES, labels, IMAGES, LABELS)
    )
    few = TestSet(TEST_IMAGES[kept], labels[kept], IMAGES, LABELS)
    [same] = train_blobs("ure", [draw_sample()], [3], evaluation=few)
    assert few.share_positive == (labels > 0).sum() / kept.sum() != rates().share_positive
    assert_same(some.history, same.history)


def test_without_an_evaluation_the_training_is_the_same():
    sample = draw_sample()
    [bare] = train(Task("relu", 2, 0.4), IMAGES, [sample], [3], SETTINGS)
    [measured] = train_blobs("relu", [sample], [3])
    assert_same(bare.history, measured.history[bare.history.columns])
    assert (bare.outputs(TEST_IMAGES) == measured.outputs(TEST_IMAGES)).all()
