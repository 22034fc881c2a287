"""Control of `bag-relu`: the same without its finish, so that the model is the last weights."""

from mdpu.learn.bags import BagRiskHead
from mdpu.learn.method import NetworkMethod

METHOD = NetworkMethod("Bag ReLU, last weights", BagRiskHead, takes_ragged=True, log_odds=True)
