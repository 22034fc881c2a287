"""Each loss against an example worked by hand and against a library that has it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import hinge_loss, log_loss
from torch.nn import functional

from mdpu.errors import UserError
from mdpu.learn.evaluation import TestImages as Images
from mdpu.learn.head import Batch
from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import available_methods, load_method
from mdpu.learn.methods.contrastive import ContrastiveHead
from mdpu.learn.methods.llp import BAG
from mdpu.learn.methods.siamese import OUTPUTS, SiameseHead
from mdpu.learn.pairs import SELECTIONS, PairHead, prototypes
from mdpu.learn.task import Task
from mdpu.learn.trainer import head_of

CPU = torch.device("cpu")


def task(method, tuple_size=2, prior=0.5, loss="logistic", seed=1):
    return Task(method, tuple_size, prior, loss, seed)


def head(*tasks):
    return head_of(tasks[0])(tasks, CPU)


def scores(R, B, M, unlabeled, *outputs):
    generator = torch.Generator().manual_seed(R + B + M)
    return Batch(
        torch.randn(R, B, M, *outputs, generator=generator), torch.randn(R, unlabeled, *outputs, generator=generator)
    )


@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_nnpu_is_kiryos_estimator_with_every_member_a_positive(shift):
    prior, batch = 0.4, scores(1, 5, 3, 7)
    batch = Batch(batch.tuples + 2, batch.unlabeled + shift)
    objective, terms = head(task("nnpu", tuple_size=3, prior=0.4)).objective(batch)
    positives, unlabeled = batch.tuples.flatten(), batch.unlabeled.flatten()
    negative_part = functional.softplus(unlabeled).mean() - prior * functional.softplus(positives).mean()
    expected = prior * functional.softplus(-positives).mean() + max(0, negative_part)
    assert objective.item() == pytest.approx(expected.item(), rel=1e-5)
    assert (negative_part < 0) == (shift < 0)
    uncorrected = prior * functional.softplus(-positives).mean() + negative_part
    assert terms.sum().item() == pytest.approx(uncorrected.item(), rel=1e-5)


@pytest.mark.parametrize(("method", "cut"), [("bag-relu", math.log(3)), ("abs", 0.0)])
def test_log_odds_are_cut_where_they_are_even_at_the_prior_of_the_target(method, cut):
    """Odds of 3 at the prior 1/2 are even odds at 1/4; a risk has the target's prior in its weights instead."""
    own = head(replace(task(method), target_prior=0.25))
    outputs = torch.tensor([[cut + 0.01, cut - 0.01, cut - 0.01]])
    images = Images(torch.zeros(3), torch.tensor([1, 1, -1], dtype=torch.int8), lambda i: i, np.zeros(0, np.int8))
    assert [rate.item() for rate in own.rates(lambda _: outputs, images)] == [0.5, 1.0]


def test_llp_by_hand_and_against_scikit_learn():
    # Pairs at prior 1/2 have one negative with probability 2/3, so a = 2/3. Probabilities of the members:
    # (3/4, 1/4) and (3/4, 3/4), of the unlabeled images 1/2.
    third = math.log(3)
    batch = Batch(torch.tensor([[[third, -third], [third, third]]]), torch.zeros(1, 2))
    cross_entropies = [
        log_loss([1, 0], [share, share], sample_weight=[a, 1 - a])
        for a, share in ((2 / 3, 0.5), (2 / 3, 0.75), (0.5, 0.5))
    ]
    by_hand = [math.log(2), -(2 / 3) * math.log(0.75) - (1 / 3) * math.log(0.25), math.log(2)]
    assert cross_entropies == pytest.approx(by_hand)
    expected = ((by_hand[0] + by_hand[1]) / 2 + by_hand[2]) / 2
    assert head(task("llp")).objective(batch)[0].item() == pytest.approx(expected, rel=1e-6)


def test_llp_cuts_unlabeled_images_into_bags_and_weighs_each_alike():
    unlabeled = torch.cat([torch.full((1, BAG), 2.0), torch.full((1, 10), -2.0)], dim=1)
    batch = Batch(torch.zeros(1, 1, 2), unlabeled)
    entropy = -0.5 * (math.log(torch.tensor(2.0).sigmoid()) + math.log(torch.tensor(-2.0).sigmoid()))
    assert head(task("llp")).objective(batch)[0].item() == pytest.approx((math.log(2) + entropy) / 2, rel=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_supervised_is_the_mean_loss_of_the_library(loss):
    library = {
        "logistic": functional.soft_margin_loss,
        "hinge": lambda score, label: torch.tensor(hinge_loss(label.numpy(), score.numpy())),
        "squared": lambda score, label: functional.mse_loss(score, label) / 4,
    }[loss]
    batch = scores(2, 3, 2, 4)
    tuple_labels, unlabeled_labels = torch.randn(2, 3, 2).sign(), torch.randn(2, 4).sign()
    seen = Batch(batch.tuples, batch.unlabeled, tuple_labels, unlabeled_labels)
    objective, terms = head(task("supervised", loss=loss), task("supervised", loss=loss, seed=2)).objective(seen)
    assert terms is None
    for r in range(2):
        score = torch.cat([batch.tuples[r].flatten(), batch.unlabeled[r]])
        label = torch.cat([tuple_labels[r].flatten(), unlabeled_labels[r]])
        assert objective[r].item() == pytest.approx(library(score, label).item(), rel=1e-5)


@pytest.mark.parametrize("same", [True, False])
def test_contrastive_loss_against_torch(same):
    """Torch has the loss without square and half: D for a pair of one group, max(0, m - D) for another."""
    left, right = torch.rand(2, 50, 8), torch.rand(2, 50, 8)
    ours = ContrastiveHead([task("contrastive")], CPU).pair_loss(left, right, same)
    distance = functional.pairwise_distance(left, right, eps=0)
    labels = torch.full_like(distance, 1 if same else -1)
    margin = functional.hinge_embedding_loss(distance, labels, margin=1.0, reduction="none")
    torch.testing.assert_close(ours, margin.square() / 2)


@pytest.mark.parametrize("same", [True, False])
def test_contrastive_gradient_of_a_pair_of_equal_images_is_finite(same):
    left = torch.ones(1, 1, 4, requires_grad=True)
    ContrastiveHead([task("contrastive")], CPU).pair_loss(left, torch.ones(1, 1, 4), same).sum().backward()
    assert left.grad is not None and torch.isfinite(left.grad).all()


def test_siamese_loss_by_hand_and_against_scikit_learn():
    siamese = SiameseHead([task("siamese")], CPU)
    with torch.no_grad():
        siamese.alpha.zero_()
        siamese.alpha[0, 0, :2] = torch.tensor([-2.0, 4.0])
        siamese.beta.fill_(0.5)
    left, right = torch.zeros(1, 1, OUTPUTS), torch.zeros(1, 1, OUTPUTS)
    right[0, 0, :3] = torch.tensor([math.log(3), -math.log(3), 9.0])  # sigmoids 3/4 and 1/4; alpha of the third is 0
    logit = -2 * 0.25 + 4 * 0.25 + 0.5
    left, right = siamese.embedding(left), siamese.embedding(right)
    assert siamese.logits(left, right).item() == pytest.approx(logit)
    probability = 1 / (1 + math.exp(-logit))
    for same in (True, False):
        expected = log_loss([int(same)], [probability], labels=[0, 1])
        assert siamese.pair_loss(left, right, same).item() == pytest.approx(expected, rel=1e-6)


class Recorder(PairHead):
    """Takes down the pairs that it is given, of one-dimensional embeddings."""

    def pair_loss(self, left, right, same):
        found = sorted(zip(left[0, :, 0].tolist(), right[0, :, 0].tolist(), strict=True))
        self.pairs = {**getattr(self, "pairs", {}), same: found}
        return torch.full(left.shape[:2], 1.0 if same else 3.0)


def test_all_pairs_of_a_tuple_are_same_and_neighbouring_unlabeled_images_are_not():
    recorder = Recorder([task("siamese", tuple_size=3)], CPU)
    tuples = torch.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]])[..., None]
    objective, _ = recorder.objective(Batch(tuples, torch.tensor([[7.0, 8.0, 9.0, 10.0]])[..., None]))
    assert recorder.pairs[True] == [(1, 2), (1, 3), (2, 3), (4, 5), (4, 6), (5, 6)]
    assert recorder.pairs[False] == [(7, 8), (8, 9), (9, 10), (10, 7)]
    assert objective.item() == 2


@pytest.mark.parametrize("method", ["siamese", "contrastive"])
def test_tuples_of_one_image_hold_no_pair(method):
    with pytest.raises(UserError, match="tuples of size 1 hold none"):
        head(task(method, tuple_size=1))


def test_prototypes_are_labelled_images_of_both_sides_and_decided_by_the_trial():
    labels = np.array([0, 1, -1, 1, -1, 0, -1, 1], dtype=np.int8)
    chosen = prototypes(labels, 1)
    assert chosen.shape == (SELECTIONS, 2)
    assert (labels[chosen] == [1, -1]).all()
    assert (prototypes(labels, 1) == chosen).all()
    assert (prototypes(labels, 2) != chosen).any()


@pytest.mark.parametrize("method", ["siamese", "contrastive"])
def test_prototype_scoring_by_hand(method):
    generator = np.random.default_rng(0)
    train, test = (torch.from_numpy(generator.standard_normal((count, OUTPUTS))).float() for count in (12, 9))
    train_labels = np.array([1, -1] * 6, dtype=np.int8)
    test_labels = torch.tensor([1, -1, -1, 1, 1, -1, 1, -1, -1], dtype=torch.int8)
    images = Images(test, test_labels, lambda indices: train[torch.from_numpy(indices)], train_labels)
    tasks = [task(method, seed=2), task(method, seed=1)]
    scorer = head(*tasks)
    found = scorer.rates(lambda given: torch.stack([given, -2 * given]), images)

    for r, factor in enumerate((1, -2)):
        hits: dict[int, list[bool]] = {1: [], -1: []}
        for positive, negative in prototypes(train_labels, tasks[r].seed):
            for image, label in zip(test * factor, test_labels.tolist(), strict=True):
                if method == "contrastive":
                    near, far = (
                        functional.cosine_similarity(image, train[i] * factor, dim=0) for i in (positive, negative)
                    )
                else:
                    alpha = scorer.alpha[r, 0]
                    near, far = (
                        ((image.sigmoid() - (train[i] * factor).sigmoid()).abs() * alpha).sum()
                        for i in (positive, negative)
                    )
                hits[label].append(bool(near > far) == (label > 0))
        assert found[0][r].item() == pytest.approx(np.mean(hits[1]), abs=1e-6)
        assert found[1][r].item() == pytest.approx(np.mean(hits[-1]), abs=1e-6)


def test_every_head_gives_each_run_what_it_would_get_alone():
    for name in available_methods():
        method = load_method(name)
        if isinstance(method, FittedMethod) or method.sees_labels:
            continue
        tasks = [task(name, prior=0.4, seed=1), task(name, prior=0.6, seed=2)]
        batch = scores(2, 5, 2, 6, *((method.outputs,) if method.outputs > 1 else ()))
        together = head(*tasks).objective(batch)[0]
        for r in range(2):
            alone = head(tasks[r]).objective(Batch(batch.tuples[r : r + 1], batch.unlabeled[r : r + 1]))[0]
            assert alone.item() == pytest.approx(together[r].item(), rel=1e-5), name


def test_a_head_is_told_nothing_of_labels_unless_its_method_sees_them(train_digits, monkeypatch):
    seen: list[tuple[bool, bool]] = []
    from mdpu.learn.methods import llp, supervised

    for module, class_name in ((llp, "ProportionHead"), (supervised, "SupervisedHead")):
        original = getattr(module, class_name).objective

        def spy(self, batch, original=original):
            seen.append((batch.tuple_labels is not None, batch.unlabeled_labels is not None))
            return original(self, batch)

        monkeypatch.setattr(getattr(module, class_name), "objective", spy)
    train_digits("llp", epochs=1)
    assert set(seen) == {(False, False)}
    seen.clear()
    train_digits("supervised", epochs=1)
    assert set(seen) == {(True, True)}
