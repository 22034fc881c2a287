"""Control of `bag-relu`: the same bag risk without a correction of its negative part."""

from mdpu.learn.bags import EMA_DECAY, BagRiskHead
from mdpu.learn.method import NetworkMethod


class BagUREHead(BagRiskHead):
    """The unbiased bag risk; parameters of `Head`."""

    k = -1.0


METHOD = NetworkMethod("Bag URE", BagUREHead, ema_decay=EMA_DECAY, takes_ragged=True, log_odds=True)
