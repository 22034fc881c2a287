"""The paper's baselines: `siamese`, `contrastive`, `kmeans`. Also `llp`, and the controls:
`supervised` and others.

`siamese` and `contrastive` learn an embedding from pairs. The supervision is what these data can
give: members of one tuple are one group, two unlabeled images are not. For M > 2 every pair of a
tuple counts; both kinds of pairs weigh the same. A test image takes the class of the labelled
prototype, one per class, to which it is more similar; its rates are means over 10 random selections
of prototypes. At pi_+ = 1/2 a pair has one negative with probability 2/3, but two unlabeled images
differ only with probability 1/2: as a statement about equal labels, this supervision is worse than
none. What it does say is that negatives never meet in a pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, normalize, softplus

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.losses import LOSSES
from mdpu.methods import EMBEDDING, Batch, Objective, shares
from mdpu.randomness import Stream
from mdpu.settings import Task
from mdpu.threads import one_thread

if TYPE_CHECKING:
    from mdpu.networks import TestSet

SELECTIONS = 10  # of prototypes
MARGIN = 1.0  # of the contrastive loss
BAG = 100  # unlabeled images in a bag of `llp`
STARTS = 10  # of k-means
Fitted = tuple[float, Callable[[Any], Any]]  # the objective, and a function from images to answers


class Pairs(Objective):
    """Base of the embeddings: mean loss of pairs of one group, and of pairs that are not one.

    Raises
    ------
    UserError
        If tuples have one member, because these contain no pair.
    """

    def begin(self) -> None:
        """Note which members form pairs."""
        if self.task.tuple_size < 2:
            raise UserError(
                f"method {self.task.method} learns from pairs; tuples of one member hold none"
            )
        pairs = list(itertools.combinations(range(self.task.tuple_size), 2))
        self.first, self.second = torch.tensor(pairs, device=self.device).unbind(dim=1)
        self.drawn: NDArray[np.int64] | None = None

    def embedding(self, outputs: Tensor) -> Tensor:
        """Return the embeddings (S, ..., E) to compare, given the network's outputs."""
        return outputs

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return the loss of each pair, (S, P), given embeddings (S, P, E) of its two images."""
        raise NotImplementedError

    def similarity(self, images: Tensor, prototype: Tensor) -> Tensor:
        """Return the similarities (S, N) of images (S, N, E) to a prototype (S, 1, E), by
        embedding.
        """
        raise NotImplementedError

    def __call__(self, batch: Batch) -> tuple[Tensor, None]:
        """Return the objective (S,).

        All pairs of a tuple's members are of one group. Each unlabeled image and its successor in
        the minibatch's random order are not; the first image follows the last.
        """
        tuples = self.embedding(batch.tuples)
        unlabeled = self.embedding(batch.unlabeled)
        left = tuples[:, :, self.first].flatten(1, 2)
        right = tuples[:, :, self.second].flatten(1, 2)
        same = self.pair_loss(left, right, True).mean(dim=1)

        left, right = self.strangers(tuples, unlabeled)
        different = self.pair_loss(left, right, False).mean(dim=1)
        return (same + different) / 2, None

    def strangers(self, tuples: Tensor, unlabeled: Tensor) -> tuple[Tensor, Tensor]:
        """Return the embeddings (S, P, E) of the two images of pairs that are not of one group."""
        return unlabeled, unlabeled.roll(-1, dims=1)

    def measure(self, outputs: Callable[[Tensor], Tensor], test: TestSet) -> list[Tensor]:
        """Return the two rates (S,), means over selections, which are drawn once and used at every
        epoch.
        """
        if self.drawn is None:
            self.drawn = np.stack(
                [prototypes(test.train_labels, seed).ravel() for seed in self.seeds]
            )
        distinct, places = np.unique(self.drawn, return_inverse=True)
        by_seed = torch.arange(len(self.drawn), device=self.device)[:, None]
        # (S, 2 SELECTIONS)
        chosen = torch.from_numpy(places.reshape(self.drawn.shape)).to(self.device)
        # (S, 2 SELECTIONS, E)
        embedded = self.embedding(outputs(test.train_rows(distinct)))[by_seed, chosen]
        images = self.embedding(outputs(test.rows))
        # positive and negative in turn
        similarities = [
            self.similarity(images, prototype) for prototype in embedded.split(1, dim=1)
        ]
        pairs = zip(similarities[::2], similarities[1::2], strict=True)
        rates = [
            torch.stack(shares(positive > negative, test.sides)) for positive, negative in pairs
        ]
        return list(torch.stack(rates).mean(dim=0))


def prototypes(labels: NDArray[Any], seed: int | str) -> NDArray[np.int64]:
    """Return indices of a trial's prototypes, (SELECTIONS, 2): a positive and a negative image
    each.
    """
    columns = []
    for sign, side in ((1, "positive"), (-1, "negative")):
        pool = np.flatnonzero(labels == sign)
        columns.append(pool[Stream(seed, f"{side} prototypes").integers(pool.size, SELECTIONS)])
    return np.stack(columns, axis=1)


class Siamese(Pairs):
    """Siamese network (Koch, 2015): a learned distance of sigmoid embeddings, with binary
    cross-entropy.

    The paper gives the architecture's name and M = 2 and 3, but no loss, no supervision and no
    scoring. Here, as in Koch, the probability that a pair is of one group is sigmoid(sum_j alpha_j
    |h_1j - h_2j| + beta), alpha and beta learned. Koch has no beta, but without it the probability
    for two equal images would always be 1/2.
    """

    def begin(self) -> None:
        """Draw the distance's weights, as `torch.nn.Linear` does."""
        super().begin()
        drawn = np.stack(
            [2 * Stream(seed, "distance weights").uniform(EMBEDDING + 1) - 1 for seed in self.seeds]
        )
        values = torch.from_numpy(drawn / EMBEDDING**0.5).float().to(self.device)[:, None]
        self.alpha = values[..., :EMBEDDING].contiguous().requires_grad_()  # (S, 1, E)
        self.beta = values[..., EMBEDDING:].contiguous().requires_grad_()  # (S, 1, 1)
        self.parameters = [self.alpha, self.beta]

    def embedding(self, outputs: Tensor) -> Tensor:
        """Return Koch's sigmoid units."""
        return outputs.sigmoid()

    def similarity(self, images: Tensor, prototype: Tensor) -> Tensor:
        """Return the logits (S, N) that images (S, N, E) are of one group with others (S, 1 or N,
        E).
        """
        return ((images - prototype).abs() @ self.alpha.mT + self.beta).squeeze(2)

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return the binary cross-entropy of each pair, (S, P)."""
        logits = self.similarity(left, right)
        return softplus(-logits if same else logits)


class SiameseMixed(Siamese):
    """Another reading of the paper: a tuple's first image and an unlabeled one are not of one
    group.
    """

    def strangers(self, tuples: Tensor, unlabeled: Tensor) -> tuple[Tensor, Tensor]:
        """Return embeddings (S, P, E) of as many tuples as unlabeled images."""
        number = min(tuples.shape[1], unlabeled.shape[1])
        return tuples[:, :number, 0], unlabeled[:, :number]


class Contrastive(Pairs):
    """Contrastive loss (Hadsell et al., 2006) on Euclidean distances, scored by cosine
    similarity.
    """

    def pair_loss(self, left: Tensor, right: Tensor, same: bool) -> Tensor:
        """Return Hadsell's loss of each pair, (S, P)."""
        distance = torch.linalg.vector_norm(left - right, dim=2)  # its gradient at 0 is 0, not NaN
        return (distance if same else (MARGIN - distance).clamp(min=0)).square() / 2

    def similarity(self, images: Tensor, prototype: Tensor) -> Tensor:
        """Return the cosines (S, N)."""
        return (normalize(images, dim=2) @ normalize(prototype, dim=2).mT).squeeze(2)


class Proportions(Objective):
    """Learning from label proportions with the expected proportions, because the exact ones are
    hidden here.

    Empirical proportion risk (Yu et al., 2014) with the cross-entropy between a bag's proportion
    and its mean predicted probability (Ardehaly and Culotta, 2017; Tsai and Lin, 2020). The
    proportion of a tuple is taken to be its expectation a (Lemma 6). The unlabeled images form bags
    of `BAG` in the minibatch's random order, with the proportion pi_+. The two kinds of bags weigh
    the same. The run's loss is not used.
    """

    def begin(self) -> None:
        """Read the law of the tuples."""
        law = self.task.law_of(self.task.tuple_size)
        self.positive_share = law.coefficients(self.task.prior).a

    def __call__(self, batch: Batch) -> tuple[Tensor, None]:
        """Return the mean over the two kinds of bags of their mean cross-entropy, (S,)."""
        losses = []
        bags = batch.unlabeled.sigmoid().split(BAG, dim=1)
        of_bags = torch.stack([bag.mean(dim=1) for bag in bags], dim=1)  # (S, bags)
        of_tuples = batch.tuples.sigmoid().mean(dim=2)  # (S, B)
        proportions = ((of_tuples, self.positive_share), (of_bags, self.task.prior))
        for predicted, expected in proportions:
            goal = torch.full_like(predicted, expected)
            losses.append(binary_cross_entropy(predicted, goal, reduction="none").mean(dim=1))
        return torch.stack(losses).mean(dim=0), None


class Supervised(Objective):
    """Control: the same network on the same images with their true labels, the ceiling.

    Every image of the minibatch, tuple member or unlabeled, counts once, as in ordinary training
    with the run's loss. The tuples contain more positives than the prior says (a share a, Lemma 6).
    This is not corrected, because a practitioner who had these images labelled would train on them
    as they are.
    """

    test_measures = ("test_risk",)

    def __call__(self, batch: Batch) -> tuple[Tensor, None]:
        """Return the mean loss (S,) over all images of the minibatch."""
        assert batch.labels is not None
        of_tuples, of_unlabeled = batch.labels
        margins_of_tuples = (batch.tuples * of_tuples).flatten(1)
        margins_of_unlabeled = batch.unlabeled * of_unlabeled
        margins = torch.cat([margins_of_tuples, margins_of_unlabeled], dim=1)  # (S, rows)
        return LOSSES[self.task.loss](margins, 1).mean(dim=1), None


def cluster(
    task: Task, seed: int | str, sample: TupleData, images: NDArray[Any], *_: Any
) -> Fitted:
    """K-Means on concatenated tuples (MacQueen, 1967): mean squared distance to the centroids, and
    the answers.

    The paper concatenates "three constituent images" and sets K = 2. It does not say what happens
    for pairs, how one test image is scored against centroids of M images, or how clusters get their
    class. Here: k-means++ and the best of ten starts (scikit-learn's default before 1.4) on the
    grey values of the M members, in order. The unlabeled images form no tuples and are not used. A
    test image is repeated M times and belongs to the nearer centroid. The clusters are unnamed: the
    accuracy is that of the better assignment. The published values below 50 % (Table II, prior 0.6,
    Fashion-MNIST and SVHN; Table III, prior 0.6, EMNIST-Digits) cannot come from it, so there the
    authors used another.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics.pairwise import euclidean_distances

    def vectors(rows: NDArray[Any]) -> NDArray[np.float32]:
        unit = 255 if rows.dtype == np.uint8 else 1
        return (rows.reshape(len(rows), -1) / unit).astype(np.float32)  # (N, d)

    random_state = int(Stream(seed, "k-means").integers(2**31, 1)[0])
    tuples = vectors(images[sample.tuples.ravel()]).reshape(len(sample.tuples), -1)
    # scikit-learn divides sums among threads, and other rounding can lead to other clusters
    with one_thread():
        clusters = KMeans(n_clusters=2, n_init=STARTS, random_state=random_state).fit(tuples)
    centroids = clusters.cluster_centers_.reshape(2, task.tuple_size, -1)  # (2, M, d)

    def in_cluster_1(rows: NDArray[Any]) -> NDArray[np.bool_]:
        with one_thread():
            x = vectors(rows)
            members = range(task.tuple_size)
            # (N, 2)
            distances = [
                euclidean_distances(x, centroids[:, member], squared=True) for member in members
            ]
        return np.argmin(np.sum(distances, axis=0), axis=1) == 1

    return clusters.inertia_ / len(tuples), in_cluster_1


def cluster_members(
    task: Task, seed: int | str, sample: TupleData, images: NDArray[Any], *_: Any
) -> Fitted:
    """K-Means on the members of the tuples one by one, another reading of the paper: centroids are
    single images.
    """
    single = TupleData(sample.tuples.reshape(-1, 1), sample.unlabeled)
    return cluster(replace(task, tuple_size=1), seed, single, images)


def cluster_means(
    task: Task, seed: int | str, sample: TupleData, images: NDArray[Any], *_: Any
) -> Fitted:
    """K-Means on the mean images of the tuples, another reading of the paper."""
    largest = 255 if images.dtype == np.uint8 else 1
    means = (images[sample.tuples] / largest).mean(axis=1)
    single = TupleData(np.arange(len(means))[:, None], sample.unlabeled)
    return cluster(replace(task, tuple_size=1), seed, single, means)


def nearest_prototype(
    task: Task, seed: int | str, sample: TupleData, images: NDArray[Any], labels: NDArray[Any]
) -> Fitted:
    """Control: one labelled image per class and no learning; the objective is 0.

    A test image takes the class of the prototype at the smaller Euclidean distance of the grey
    values. The selections are those of `siamese` and `contrastive`; an answer is the share of them
    that say positive. What these two reach above it comes from their training, and not from the
    labels of the prototypes.
    """
    chosen = images[prototypes(labels, seed)].astype(np.float64)
    pairs = chosen.reshape(SELECTIONS, 2, -1)  # a positive and a negative image each

    def share_positive(rows: NDArray[Any]) -> Any:
        x = rows.reshape(len(rows), -1).astype(np.float64)
        answers = []
        for p, q in pairs:
            is_nearer = 2 * x @ (p - q) > p @ p - q @ q  # |x - p| < |x - q|
            answers.append(is_nearer)
        return np.mean(answers, axis=0)

    return 0.0, share_positive


def always_positive(task: Task, *_: Any) -> Fitted:
    """Control: one answer for every image, the floor; the objective is its 0-1 risk at the training
    prior.

    The better of the two constant answers counts, so the accuracy is the majority rate of the test
    set.
    """
    return min(task.prior, 1 - task.prior), lambda images: np.ones(len(images), dtype=bool)
