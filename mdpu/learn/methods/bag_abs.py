"""`bag-relu` with |.| instead of max(0, .) on the negative part of the bag risk."""

from mdpu.learn.bags import EMA_DECAY, BagRiskHead
from mdpu.learn.method import NetworkMethod


class BagABSHead(BagRiskHead):
    """The bag risk with the correction of Eq. 16; parameters of `Head`."""

    k = 1.0


METHOD = NetworkMethod("Bag ABS", BagABSHead, ema_decay=EMA_DECAY, takes_ragged=True, log_odds=True)
