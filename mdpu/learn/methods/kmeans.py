"""K-Means on concatenated tuples (MacQueen, 1967), the paper's unsupervised baseline.

The paper concatenates "three constituent images" and sets K = 2. It does not say what happens for pairs,
how one test image is scored against centroids of M images, or how clusters get their class.

The choices here: scikit-learn's `KMeans` with K = 2, k-means++ and the best of ten starts (its default
before 1.4) on the grey values of the M members, in order. The unlabeled images are not used, because they
form no tuples. A test image is repeated M times and belongs to the nearer centroid. The clusters are
unnamed: the accuracy is that of the better assignment on the test images, and the history's raw_accuracy
takes scikit-learn's cluster 1 as the positive class. The published values below 50 % (Table II, prior 0.6,
Fashion-MNIST and SVHN; Table III, prior 0.6, EMNIST-Digits) cannot come from the better assignment, so at
least there the authors used another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdpu.learn.method import Answers, FittedMethod
from mdpu.learn.network import unit_of
from mdpu.randomness import Stream

if TYPE_CHECKING:
    from mdpu.data import TupleData
    from mdpu.learn.task import Task

STARTS = 10


def fit(task: Task, sample: TupleData, images: NDArray[Any]) -> Answers:
    """Cluster the tuples; the objective is the mean squared distance to the centroids."""
    from sklearn.cluster import KMeans
    from sklearn.metrics.pairwise import euclidean_distances
    from threadpoolctl import threadpool_limits

    unit = unit_of(images)

    def vectors(images: NDArray[Any]) -> NDArray[np.float32]:
        return (images.reshape(len(images), -1) / unit).astype(np.float32)  # (N, d)

    random_state = int(Stream(task.seed, "k-means").integers(2**31, 1)[0])
    # Always one thread: scikit-learn divides sums among threads, and other rounding can lead to other clusters.
    with threadpool_limits(1):
        clusters = KMeans(n_clusters=2, n_init=STARTS, random_state=random_state)
        clusters.fit(vectors(images)[sample.tuples].reshape(len(sample.tuples), -1))
    centroids = clusters.cluster_centers_.reshape(2, task.tuple_size, -1)  # (2, M, d)

    def in_cluster_1(images: NDArray[Any]) -> NDArray[np.bool_]:
        with threadpool_limits(1):
            distances = sum(  # squared, from an image repeated M times to each centroid: (N, 2)
                euclidean_distances(vectors(images), centroids[:, member], squared=True)
                for member in range(task.tuple_size)
            )
        return np.argmin(distances, axis=1) == 1

    return Answers(clusters.inertia_ / len(sample.tuples), in_cluster_1)


METHOD = FittedMethod("K-Means", fit, unnamed=True, origin="baseline")
