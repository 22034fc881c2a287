"""Other readings of the paper's baselines, of which it says little more than their names.

``config/baselines.yaml`` runs them, and ``docs/explanation/findings.md`` says how far each is from the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.data import TupleData
from mdpu.methods import EMBEDDING, Method

if TYPE_CHECKING:
    from mdpu.settings import Task

Fitted = tuple[float, Callable[[Any], Any]]


def cluster_members(task: Task, seed: int | str, sample: TupleData, images: Any, *_: Any) -> Fitted:
    """K-Means of the tuples' members one by one: a test image belongs to the nearer of two images."""
    return _cluster(task, seed, TupleData(sample.tuples.reshape(-1, 1), sample.unlabeled), images)


def cluster_means(task: Task, seed: int | str, sample: TupleData, images: Any, *_: Any) -> Fitted:
    """K-Means of the tuples' mean images."""
    unit = 255 if images.dtype == np.uint8 else 1
    means = (images[sample.tuples] / unit).mean(axis=1)
    return _cluster(task, seed, TupleData(np.arange(len(means))[:, None], sample.unlabeled), means)


def _cluster(task: Task, seed: int | str, single: TupleData, images: Any) -> Fitted:
    from mdpu.methods.baselines import cluster  # it loads torch

    return cluster(replace(task, tuple_size=1), seed, single, images)


_EMBEDS: dict[str, Any] = {"outputs": EMBEDDING, "origin": "baseline"}
_CLUSTERS: dict[str, Any] = {"unnamed": True, "origin": "baseline"}
METHODS = {
    "siamese-unlabeled": Method(title="Siamese (unlabeled)", objective="baselines:AgainstUnlabeled", **_EMBEDS),
    "siamese-labels": Method(
        title="Siamese (labels)", objective="baselines:ByLabels", sees_labels=True, control=True, **_EMBEDS
    ),
    "contrastive-distance": Method(title="Contrastive (distance)", objective="baselines:ByDistance", **_EMBEDS),
    "kmeans-members": Method(title="K-Means (members)", fit=cluster_members, **_CLUSTERS),
    "kmeans-means": Method(title="K-Means (means)", fit=cluster_means, **_CLUSTERS),
}
