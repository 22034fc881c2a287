"""Unbiased risk estimator, uncorrected (Eq. 11)."""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("URE", origin="paper")
