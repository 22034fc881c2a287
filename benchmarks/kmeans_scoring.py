"""Which way of scoring a single image against centroids of tuples gives the paper's K-Means accuracy?

    python benchmarks/kmeans_scoring.py results/datasets/mnist.npz

Prints accuracy in percent, of the better assignment, for MNIST at prior 0.5, n = 10,000, trial 1: scored
against the whole centroids (what `mdpu.learn.methods.kmeans` does), against one position of them, and with
centroids of single members. Ten seconds of one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.splits import draw_split

STARTS = 4


def main() -> None:
    """Print one line per tuple size and start."""
    images = read_images(Path(sys.argv[1]))
    train, test = (
        (part.reshape(len(part), -1) / 255).astype(np.float32) for part in (images.train_images, images.test_images)
    )
    even = images.test_labels % 2 == 0

    def accuracy(distances: np.ndarray) -> float:
        agreement = float(((distances.argmin(axis=1) == 1) == even).mean())
        return round(100 * max(agreement, 1 - agreement), 1)

    signs = np.where(images.train_labels % 2 == 0, 1, -1).astype(np.int8)
    for tuple_size in (2, 3):
        tuples = draw_split(signs, tuple_size, 0.5, 10000, 10000, 1).tuples
        for start in range(STARTS):
            clusters = KMeans(2, n_init=1, random_state=start).fit(train[tuples].reshape(len(tuples), -1))
            centroids = clusters.cluster_centers_.reshape(2, tuple_size, -1)
            by_position = [
                euclidean_distances(test, centroids[:, position], squared=True) for position in range(tuple_size)
            ]
            print(
                f"M = {tuple_size}, start {start}: objective {clusters.inertia_ / len(tuples):.2f},"
                f" whole centroids {accuracy(sum(by_position))},"
                f" by position {', '.join(str(accuracy(distances)) for distances in by_position)}"
            )
        single = KMeans(2, n_init=3, random_state=0).fit(train[tuples].reshape(-1, train.shape[1]))
        print(f"M = {tuple_size}, single members: {accuracy(euclidean_distances(test, single.cluster_centers_))}")


if __name__ == "__main__":
    main()
