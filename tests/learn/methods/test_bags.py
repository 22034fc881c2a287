"""The heads on bags against the paper-and-pencil version of what they estimate."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.law import Law, count_law
from mdpu.learn.bags import TINY, BagHead
from mdpu.learn.head import Batch
from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import available_methods, load_method
from mdpu.learn.methods.bag_count import BAG
from mdpu.learn.methods.bag_likelihood import PIN as LIKELIHOOD_PIN
from mdpu.learn.methods.bag_nce import PIN as NCE_PIN
from mdpu.learn.risk import CorrectedRiskHead
from mdpu.learn.task import Task
from mdpu.learn.trainer import head_of
from mdpu.losses import RiskLoss, TupleLoss
from mdpu.scores import joint, unlabeled_bags

CPU = torch.device("cpu")
LAWS = [
    Law.dominant(2),
    Law.dominant(3),
    Law.exactly(3, 1),
    Law.similar(2),
    Law((0.0, 0.3, 1.0, 0.6)),
    Law.comparison(),
    Law.dominant(3).broken(0.2),
]
BAG_METHODS = (
    "bag-relu",
    "bag-abs",
    "bag-nce",
    "bag-likelihood",
    "bag-contrast",
    "marginal-relu",
    "bag-em",
    "bag-count",
    "noisy-or",
)


def head(*tasks):
    made = head_of(tasks[0])(tasks, CPU)
    assert isinstance(made, BagHead)
    return made


def scores(R, B, M, unlabeled, scale=1.0):
    generator = torch.Generator().manual_seed(R + B + M)
    return Batch(
        scale * torch.randn(R, B, M, generator=generator), scale * torch.randn(R, unlabeled, generator=generator)
    )


def q(bags):
    """By the plain dynamic program in doubles, of dominant tuples."""
    r = bags.double().sigmoid().numpy()
    return Law.dominant(r.shape[-1]).passes(r, 1 - r)[0]


# -- q --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("score", [-40.0, -15.0, 15.0, 40.0, 200.0])
def test_the_small_tail_keeps_its_digits_in_single_precision(size, score):
    bags = torch.full((1, 1, size), score, requires_grad=True)
    dominant, other = joint(Law.dominant(size), bags)
    r, s = 1 / (1 + math.exp(-score)), 1 / (1 + math.exp(score))  # r and 1 - r, both exact
    fewest = math.ceil(size / 2)
    terms = [math.comb(size, k) * r**k * s ** (size - k) for k in range(size + 1)]
    assert dominant.item() == pytest.approx(sum(terms[fewest:]), rel=1e-5, abs=1e-37)
    assert other.item() == pytest.approx(sum(terms[:fewest]), rel=1e-5, abs=1e-37)
    (gradient,) = torch.autograd.grad((dominant + other).sum(), bags)
    assert torch.isfinite(gradient).all()


# -- bags -----------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 7))
def test_bags_share_no_image_and_leave_out_less_than_one_bag(images, size):
    bags = unlabeled_bags(torch.arange(2 * images).view(2, images), size)
    assert bags.shape[::2] == (2, size)
    assert bool((bags[1] - bags[0] == images).all())  # every run has its own images, bag for bag the same places
    if images >= size:
        assert len(bags[0].unique()) == bags[0].numel() > images - size
    else:
        assert bags.shape[1] == 1 and len(bags[0].unique()) == images


# -- objectives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shift", [-3.0, 3.0])
@pytest.mark.parametrize(
    ("method", "prior", "correction"),
    [("bag-relu", 0.4, "relu"), ("bag-abs", 0.4, "abs"), ("bag-contrast", None, None)],
)
def test_objectives_are_the_losses_for_any_loop(method, prior, correction, shift, law):
    """`tests/test_losses.py` holds those to an enumeration. The shifts make negative parts of both signs."""
    batch = scores(1, 6, law.size, 8 * law.size)
    batch = Batch(batch.tuples + 2, batch.unlabeled + shift)
    objective, recorded = head(Task(method, law.size, 0.4, law=law)).objective(batch)
    expected = TupleLoss(law, prior, correction)(batch.tuples[0], batch.unlabeled[0])
    assert objective.item() == pytest.approx(expected.item(), rel=1e-5)
    assert recorded is not None and recorded.item() == pytest.approx(batch.unlabeled.sigmoid().mean().item(), rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pinned_contrast_by_hand(size):
    prior, batch = 0.4, scores(1, 6, size, 4 * size)
    model_prior = batch.unlabeled.double().sigmoid().mean().item()
    rate = Law.dominant(size).rate(prior)
    tuple_q, bag_q = q(batch.tuples[0]), q(batch.unlabeled.view(4, size))
    expected = -(np.log(tuple_q / (tuple_q + rate)).mean() + np.log(rate / (bag_q + rate)).mean()) / 2
    expected += NCE_PIN * divergence(prior, model_prior)
    assert head(Task("bag-nce", size, prior)).objective(batch)[0].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_likelihood_by_hand(size):
    prior, batch = 0.4, scores(1, 6, size, 4 * size)
    model_prior = batch.unlabeled.double().sigmoid().mean().item()
    expected = math.log(Law.dominant(size).rate(model_prior)) - np.log(q(batch.tuples[0])).mean()
    expected += LIKELIHOOD_PIN * divergence(prior, model_prior)
    found = head(Task("bag-likelihood", size, prior)).objective(batch)[0].item()
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_marginal_risk_by_hand(size):
    prior, batch = 0.4, scores(1, 6, size, 4 * size)
    mix = Law.dominant(size).coefficients(prior)
    share = prior / mix.a

    def is_member(score):
        """The density ratio of a member to an unlabeled image, times the share that makes it at most 1."""
        r = score.double().sigmoid().numpy().ravel()
        return share * (mix.a / prior * r + mix.b / (1 - prior) * (1 - r))

    members, unlabeled = is_member(batch.tuples), is_member(batch.unlabeled)
    negative = (unlabeled**2).mean() - share * (members**2).mean()
    expected = share * ((1 - members) ** 2).mean() + max(0, negative)
    assert head(Task("marginal-relu", size, prior)).objective(batch)[0].item() == pytest.approx(expected, rel=1e-5)


def test_the_gradient_of_em_is_that_of_the_expected_labels():
    """By enumeration of a tuple's labels, given that it is dominant; unlabeled images are at the prior already."""
    tuples = torch.tensor([[[0.3, -1.0, 0.8]]], requires_grad=True)
    objective, _ = head(Task("bag-em", 3, 0.5)).objective(Batch(tuples, torch.tensor([[1.0, -1.0]])))
    (gradient,) = torch.autograd.grad(objective.sum(), tuples)
    r = tuples.detach().double().sigmoid().numpy().ravel()
    kept = {y: np.where(y, r, 1 - r).prod() for y in itertools.product((1, 0), repeat=3) if sum(y) >= 2}
    expected = sum(chance * np.array(y) for y, chance in kept.items()) / sum(kept.values())
    np.testing.assert_allclose(gradient[0, 0], (r - expected) / 4, rtol=1e-5)


def test_count_loss_by_hand():
    batch = scores(1, 6, 2, BAG)
    members = (np.full(BAG, 0.4), batch.unlabeled[0].double().sigmoid().numpy())
    laws = [count_law(values, 1 - values) for values in members]
    expected = -np.log(q(batch.tuples[0])).mean() - laws[0] @ np.log(np.maximum(laws[1], TINY))
    assert head(Task("bag-count", 2, 0.4)).objective(batch)[0].item() == pytest.approx(expected, rel=1e-4)


def test_noisy_or_by_hand():
    batch = scores(1, 6, 3, 12)
    none = [(1 - bags.double().sigmoid()).prod(dim=-1) for bags in (batch.tuples[0], batch.unlabeled.view(4, 3))]
    expected = -((1 - none[0]).log().mean() + none[1].log().mean()) / 2
    assert head(Task("noisy-or", 3, 0.4)).objective(batch)[0].item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("method", ["bag-relu", "bag-abs", "bag-nce", "bag-likelihood", "bag-contrast"])
def test_the_true_r_is_a_stationary_point(method, law):
    """Consistency in the large: on a sample that is nearly the density itself, the objective is flat at the truth.

    Images are of three kinds, and the free parameters are the three scores.
    """
    prior, given_positive, given_negative = 0.4, np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.2, 0.7])
    share = prior * given_positive + (1 - prior) * given_negative
    r = prior * given_positive / share
    size, told = law.size, law.at(prior)
    kinds = np.array(list(itertools.product(range(3), repeat=size)))
    total = 40_000
    density = share[kinds].prod(axis=1)
    tuple_counts = np.round(total * density * told.passes(r[kinds], 1 - r[kinds])[0] / law.rate(prior)).astype(int)
    bag_counts = np.round(total * density).astype(int)
    tuples = torch.from_numpy(np.repeat(kinds, tuple_counts, axis=0))  # (B, M)
    unlabeled = torch.from_numpy(np.repeat(kinds, bag_counts, axis=0)).flatten()
    made = head(Task(method, size, prior, law=law))

    def slope(values):
        free = torch.from_numpy(np.log(values / (1 - values))).float().requires_grad_()
        objective, _ = made.objective(Batch(free[tuples][None], free[unlabeled][None]))
        return torch.autograd.grad(objective.sum(), free)[0].abs().max()

    assert slope(r) < 2e-3
    assert max(slope(np.clip(r + 0.1, 0, 0.99)), slope(0.4 * r + 0.1)) > 5e-3


# -- what the trainer asks of a head --------------------------------------------------------------


@pytest.mark.parametrize("method", BAG_METHODS)
def test_runs_of_several_laws_get_what_they_would_get_alone(method):
    laws = (None, Law.exactly(3, 1), Law.dominant(3).broken(0.1))
    tasks = [Task(method, 3, 0.4, seed=seed, law=law) for seed, law in enumerate(laws)]
    batch = scores(3, 20, 3, 30)
    together = head(*tasks).objective(batch)[0]
    alone = [head(tasks[r]).objective(Batch(batch.tuples[r : r + 1], batch.unlabeled[r : r + 1]))[0] for r in range(3)]
    torch.testing.assert_close(together, torch.cat(alone))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("method", ["relu", "abs-class", "ure"])
def test_corrected_risks_take_any_law(method, law):
    batch, kind = scores(1, 20, law.size, 30), load_method(method)
    assert isinstance(kind, CorrectedRisk)
    objective, _ = CorrectedRiskHead([Task(method, law.size, 0.4, law=law)], CPU).objective(batch)
    correction = {-1: None, 0: "relu", 1: "abs"}[int(kind.k)]
    expected = RiskLoss(law, 0.4, correction, kind.scope)(batch.tuples[0], batch.unlabeled[0])
    assert objective.item() == pytest.approx(expected.item(), rel=1e-5)
    with pytest.raises(UserError, match="no risk of single members"):
        CorrectedRiskHead([Task(method, 2, 0.5, law=Law.similar(2))], CPU)


@pytest.mark.parametrize("method", BAG_METHODS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_objective_and_gradient_are_finite_however_sure_the_network_is(method, scale):
    batch = scores(2, 50, 3, 60, scale)
    tuples, unlabeled = batch.tuples.requires_grad_(), batch.unlabeled.requires_grad_()
    objective, _ = head(Task(method, 3, 0.5), Task(method, 3, 0.6)).objective(Batch(tuples, unlabeled))
    for value in (objective, *torch.autograd.grad(objective.sum(), [tuples, unlabeled])):
        assert torch.isfinite(value).all()


def divergence(prior, model):
    return prior * math.log(prior / model) + (1 - prior) * math.log((1 - prior) / (1 - model))


@pytest.mark.parametrize("method", [name for name in available_methods() if name.startswith("bag-")])
def test_the_objective_of_several_sizes_is_the_mean_of_the_sizes_objectives(method):
    kind = load_method(method)
    if not kind.takes_ragged:
        pytest.skip("takes tuples of one size")
    generator = torch.Generator().manual_seed(1)
    sizes = torch.tensor([[3, 2, 2, 3, 2]])
    scores, unlabeled = torch.randn(1, 5, 3, generator=generator), torch.randn(1, 10, generator=generator)
    found = kind.head([Task(method, 3, 0.4)], CPU).objective(Batch(scores, unlabeled, sizes=sizes))[0]
    model_prior, expected = unlabeled.sigmoid().mean(dim=1), 0.0
    for size, size_unlabeled in ((2, unlabeled[:, :6]), (3, unlabeled[:, 6:])):
        size_scores = scores[:, sizes[0] == size, :size]
        head = kind.head([Task(method, size, 0.4)], CPU)
        expected += size_scores.shape[1] / 5 * head.loss(size_scores, size_unlabeled, model_prior)[0]
    torch.testing.assert_close(found[0], expected)
