"""`bag-relu` without the prior: it is estimated from the same sample first (`mdpu.learn.prior`).

The estimate trains `bag-contrast` for a share of the epochs on four fifths of the sample. Then the bag risk trains on
the whole sample, told the estimate. The task's prior is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mdpu.learn.bags import MEMORY, BagRiskHead
from mdpu.learn.method import NetworkMethod

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from mdpu.learn.prior import PriorEstimate
    from mdpu.learn.task import Sample, Settings


def prior(
    images: NDArray[Any], sample: Sample, settings: Settings, seed: int | str, device: torch.device
) -> PriorEstimate:
    """Return the prior that the sample gives, with its interval."""
    from mdpu.learn.prior import brief_estimate

    return brief_estimate(images, sample, settings, seed, device)


METHOD = NetworkMethod("Bag ReLU, prior-free", BagRiskHead, memory=MEMORY, prior=prior, log_odds=True)
