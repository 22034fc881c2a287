"""ReLU correction of the whole risk, max(0, R) (Eq. 15)."""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("ReLU", k=0.0, origin="paper")
