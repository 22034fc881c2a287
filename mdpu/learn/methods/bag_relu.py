"""Non-negative PU learning on bags: a tuple is a positive bag, M random unlabeled images are an unlabeled one.

The risk of du Plessis et al. (2015) and the correction of Kiryo et al. (2017), max(0, .) on its negative part, with
bags for images, Z for the class prior and the probability q that a bag passes for the classifier. The loss is
the squared one on q, which is bounded; the run's loss is not used. The model is the running mean of the weights.
``docs/explanation/bags.md`` has the risk.
"""

from mdpu.learn.bags import EMA_DECAY, BagRiskHead
from mdpu.learn.method import NetworkMethod

METHOD = NetworkMethod("Bag ReLU", BagRiskHead, ema_decay=EMA_DECAY, takes_ragged=True, log_odds=True)
