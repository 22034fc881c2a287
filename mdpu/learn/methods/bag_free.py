"""`bag-relu` without the prior: it is estimated from the same sample first (`mdpu.learn.prior`).

The estimate trains `bag-contrast` for a share of the epochs on a part of the sample. Then the bag risk trains on
the whole sample, told the estimate. The task's prior is not used.
"""

from __future__ import annotations

from mdpu.learn.bags import EMA_DECAY, BagRiskHead
from mdpu.learn.method import NetworkMethod

METHOD = NetworkMethod("Bag ReLU, prior-free", BagRiskHead, ema_decay=EMA_DECAY, estimates_prior=True, log_odds=True)
