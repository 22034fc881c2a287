"""Losses, corrections and the estimator: against Table I, Eqs. 11 and 14-16, and a mixture of known risk."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from mdpu.law import Law
from mdpu.learn.head import Batch
from mdpu.learn.methods import load_method
from mdpu.learn.risk import CorrectedRiskHead, RiskHead
from mdpu.learn.task import Task
from mdpu.losses import LOSSES
from mdpu.randomness import Stream

CPU = torch.device("cpu")

# l(t, z) of Table I, and dl/dz, for one label t and score z.
TABLE_I = {
    "logistic": (lambda t, z: math.log(1 + math.exp(-t * z)), lambda t, z: -t / (1 + math.exp(t * z))),
    "ramp": (lambda t, z: min(1, max(0, 1 - t * z)), lambda t, z: -t if 0 < 1 - t * z < 1 else 0),
    "squared": (lambda t, z: (t * z - 1) ** 2 / 4, lambda t, z: t * (t * z - 1) / 2),
    "hinge": (lambda t, z: max(0, 1 - t * z), lambda t, z: -t if t * z < 1 else 0),
    # Not of Table I: Kiryo et al. (2017), Lu et al. (2019).
    "sigmoid": (
        lambda t, z: 1 / (1 + math.exp(t * z)),
        lambda t, z: -t * math.exp(t * z) / (1 + math.exp(t * z)) ** 2,
    ),
}

# The method, its k in f (Eq. 14), and what f is applied to.
METHODS = {
    "ure": (-1, "whole"),
    "relu": (0, "whole"),
    "abs": (1, "whole"),
    "relu-class": (0, "class"),
    "abs-class": (1, "class"),
    "relu-part": (0, "part"),
    "abs-part": (1, "part"),
}


# -- losses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize("name", TABLE_I)
def test_losses_and_gradients_are_those_of_table_i(name, label):
    # No score at a kink (0 or 1 for ramp and hinge), where the gradient is a choice.
    scores = torch.tensor([-7.3, -1.2, -0.4, 0.3, 0.9, 1.1, 6.5], dtype=torch.float64, requires_grad=True)
    value, slope = TABLE_I[name]
    found = LOSSES[name](scores, label)
    assert found.tolist() == pytest.approx([value(label, z) for z in scores.tolist()], rel=1e-12)
    (gradient,) = torch.autograd.grad(found.sum(), scores)
    assert gradient.tolist() == pytest.approx([slope(label, z) for z in scores.tolist()], rel=1e-12)


# -- the head -------------------------------------------------------------------------------------


def eq_11(tuples, unlabeled, size, prior, name):
    """Transcribe the summands of Eq. 11: T+, T-, U+, U- for score arrays of one run."""
    value = np.vectorize(TABLE_I[name][0], otypes=[float])
    p, q = prior, 1 - prior
    a = sum(math.comb(size - 1, k) * p ** (size - k) * q**k for k in range(size // 2 + 1))
    b = sum(math.comb(size - 1, k - 1) * p ** (size - k) * q**k for k in range(1, size // 2 + 1))
    total = sum(math.comb(size, k) * p ** (size - k) * q**k for k in range(size // 2 + 1))
    a, b = a / total, b / total
    apart = a * q - b * p
    return [
        p * q / len(tuples) * value(1, tuples).sum() / apart,
        -p * q / len(tuples) * value(-1, tuples).sum() / apart,
        -b * p / len(unlabeled) * value(1, unlabeled).sum() / apart,
        a * q / len(unlabeled) * value(-1, unlabeled).sum() / apart,
    ]


def corrected(terms, method):
    """Transcribe Eqs. 15-16 and their partial variants."""
    k, scope = METHODS[method]
    parts = {
        "whole": [sum(terms)],
        "class": [terms[0] + terms[2], terms[1] + terms[3]],
        "part": [terms[0] + terms[1], terms[2] + terms[3]],
    }[scope]
    return sum(part if part >= 0 else k * abs(part) for part in parts)


ALL_KINDS = [
    (method, loss, size, prior)
    for (method, loss), (size, prior) in zip(
        itertools.product(METHODS, LOSSES), itertools.cycle([(1, 0.3), (2, 0.4), (3, 0.5), (5, 0.6)]), strict=False
    )
]


def make_head(kinds):
    return RiskHead(
        [load_method(method) for method, _, _, _ in kinds],
        [Law.dominant(size).risk_weights(prior) for _, _, size, prior in kinds],
        [loss for _, loss, _, _ in kinds],
        CPU,
    )


def draw_scores(rows: int, shift: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw scores of 30 tuple members and 20 unlabeled images for each of `rows` runs, off any kink."""
    generator = np.random.default_rng(8)
    return (
        torch.from_numpy(generator.normal(shift, 2, (rows, 30))).float(),
        torch.from_numpy(generator.normal(-shift, 2, (rows, 20))).float(),
    )


@pytest.mark.parametrize("shift", [-2.0, 0.0, 2.0])
def test_the_head_is_eq_11_with_its_corrections_for_mixed_methods_and_losses(shift):
    """The shifts make risks of both signs, so that each correction does and does not act."""
    tuples, unlabeled = draw_scores(len(ALL_KINDS), shift)
    objective, terms = make_head(ALL_KINDS)(tuples, unlabeled)
    for row, (method, loss, size, prior) in enumerate(ALL_KINDS):
        expected = eq_11(tuples[row].numpy(), unlabeled[row].numpy(), size, prior, loss)
        # Terms of opposite sign cancel in the objective, so its error is measured against their size.
        scale = max(map(abs, expected))
        assert terms[row].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5 * scale)
        assert objective[row].item() == pytest.approx(corrected(expected, method), abs=1e-5 * scale)


def test_risks_of_both_signs_occur_in_the_test_above():
    signs = {
        np.sign(sum(eq_11(t.numpy(), u.numpy(), size, prior, loss)))
        for shift in (-2.0, 0.0, 2.0)
        for (_, loss, size, prior), t, u in zip(ALL_KINDS, *draw_scores(len(ALL_KINDS), shift), strict=True)
    }
    assert signs == {-1, 1}


# -- the estimator ----------------------------------------------------------------------------------

POSITIVE, NEGATIVE = stats.norm(1.0, 1.0), stats.norm(-0.5, 1.5)  # class-conditional densities of x
TRIALS, N = 100, 300


def score(x):
    return 0.8 * x + 0.3  # a fixed classifier g


def known_risk(prior, name):
    """R(g) = pi_+ E_+[l(g, +1)] + pi_- E_-[l(g, -1)] by quadrature."""

    def expected(density, label):
        # The densities are negligible beyond eight deviations; the points are the kinks of ramp and hinge.
        kinks = [(z - 0.3) / 0.8 for z in (-1, 0, 1)]
        low, high = density.mean() - 8 * density.std(), density.mean() + 8 * density.std()
        value = TABLE_I[name][0]
        return integrate.quad(lambda x: value(label, score(x)) * density.pdf(x), low, high, points=kinks)[0]

    return prior * expected(POSITIVE, 1) + (1 - prior) * expected(NEGATIVE, -1)


def p_value(name: str, size: int, prior: float, believed: float) -> float:
    """Student's t-test, two-sided, of the estimates of TRIALS data sets of N tuples and N unlabeled points each.

    The data follow `prior`, the weights `believed`.
    """
    stream = Stream(17, f"mixture {name}", size, round(100 * prior))

    def scores(labels):
        normal = stats.norm.ppf(stream.uniform(*labels.shape))
        points = np.where(labels > 0, *(d.mean() + d.std() * normal for d in (POSITIVE, NEGATIVE)))
        return torch.from_numpy(score(points)).float()

    tuples = scores(Law.dominant(size).draw(prior, TRIALS * N, stream).reshape(TRIALS, N * size))
    unlabeled = scores(np.where(stream.uniform(TRIALS, N) < prior, 1, -1))
    head = RiskHead(
        [load_method("ure")] * TRIALS, [Law.dominant(size).risk_weights(believed)] * TRIALS, [name] * TRIALS, CPU
    )
    estimates, _ = head(tuples, unlabeled)
    return stats.ttest_1samp(estimates.double().numpy(), known_risk(prior, name)).pvalue


@pytest.mark.parametrize("prior", [0.3, 0.6])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", TABLE_I)
def test_the_estimator_is_unbiased_on_a_mixture_of_known_risk(name, size, prior):
    """Each of the 40 tests would fail a right estimator for one choice of seed in a million.

    The data sets are small on purpose: an estimator that is only consistent would show its bias.
    """
    assert p_value(name, size, prior, prior) > 1e-6


@pytest.mark.parametrize("name", TABLE_I)
def test_the_test_of_unbiasedness_notices_weights_of_another_prior(name):
    """Its power: with weights for pi_+ = 0.7 where the data have 0.6 it fails for all losses."""
    assert p_value(name, 2, 0.6, 0.7) < 1e-9


@pytest.mark.parametrize("method", ["ure", "relu-part", "abs-class"])
def test_the_risk_of_several_sizes_is_the_mean_of_the_sizes_risks_by_their_numbers(method):
    generator = torch.Generator().manual_seed(1)
    sizes = torch.tensor([[3, 1, 2, 3, 2]])
    scores, unlabeled = torch.randn(1, 5, 3, generator=generator), torch.randn(1, 4, generator=generator)
    _, terms = CorrectedRiskHead([Task(method, 3, 0.4)], CPU).objective(Batch(scores, unlabeled, sizes=sizes))
    expected = torch.zeros(4)
    for size in (1, 2, 3):
        size_scores = scores[:, sizes[0] == size, :size]
        head = CorrectedRiskHead([Task(method, size, 0.4)], CPU)
        expected += size_scores.shape[1] / 5 * head.objective(Batch(size_scores, unlabeled))[1][0]
    torch.testing.assert_close(terms[0], expected)
