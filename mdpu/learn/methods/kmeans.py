"""K-Means on concatenated tuples (MacQueen, 1967), the paper's unsupervised baseline.

The paper concatenates "three constituent images" and sets K = 2; it says neither what happens for
pairs, nor how one test image is scored against centroids of M images, nor how clusters get their class.
Chosen: scikit-learn's `KMeans` with K = 2, k-means++ and the best of ten starts (its default before
1.4) on the grey values of the M members, in order; the unlabeled images are not used, since they form
no tuples. A test image is repeated M times and belongs to the nearer centroid. The clusters are
unnamed: accuracy is that of the better assignment on the test images, and the history's raw_accuracy
takes scikit-learn's cluster 1 for the positive class. The published values below 50 % (Table
II, prior 0.6, Fashion-MNIST and SVHN; Table III, prior 0.6, EMNIST-Digits) cannot come from the better
assignment, so at least there the authors used another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mdpu.learn.method import FittedMethod
from mdpu.randomness import Stream

if TYPE_CHECKING:
    from mdpu.data.splits import Split
    from mdpu.learn.trainer import TrainingData
    from mdpu.study.grid import Run

STARTS = 10


def fit(run: Run, split: Split, data: TrainingData) -> tuple[float, float, float]:
    """Cluster the tuples; return the mean squared distance to the centroids and the raw rates."""
    import numpy as np
    import torch
    from sklearn.cluster import KMeans
    from sklearn.metrics.pairwise import euclidean_distances
    from threadpoolctl import threadpool_limits

    from mdpu.learn.head import rates

    def vectors(images: torch.Tensor) -> np.ndarray:
        return (images.flatten(1).cpu().numpy() / 255).astype(np.float32)  # (N, d)

    images = vectors(data.train_images)
    random_state = int(Stream(run.seed, "k-means").integers(2**31, 1)[0])
    # One thread always: scikit-learn divides sums among threads, and a rounding can end in other clusters.
    with threadpool_limits(1):
        clusters = KMeans(n_clusters=2, n_init=STARTS, random_state=random_state)
        clusters.fit(images[split.tuples].reshape(len(split.tuples), -1))
        centroids = clusters.cluster_centers_.reshape(2, run.tuple_size, -1)  # (2, M, d)
        test = vectors(data.test_images)
        distances = sum(  # squared, from a test image repeated M times to each centroid: (N, 2)
            euclidean_distances(test, centroids[:, member], squared=True) for member in range(run.tuple_size)
        )
    in_cluster_1 = torch.from_numpy(np.argmin(distances, axis=1) == 1)
    positive, negative = rates(in_cluster_1[None], data.test_labels.cpu())
    return clusters.inertia_ / len(split.tuples), float(positive), float(negative)


METHOD = FittedMethod("K-Means", fit, unnamed=True)
