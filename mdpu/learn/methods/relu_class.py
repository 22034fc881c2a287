"""ReLU correction of the positive and the negative partial risk, as in the related literature.

Kiryo et al. (2017) for PU learning; Lu et al. (2020) for two unlabeled sets.
"""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("ReLU (class)", k=0.0, scope="class")
