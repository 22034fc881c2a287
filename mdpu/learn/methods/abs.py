"""Absolute value of the whole risk, |R| (Eq. 16)."""

from mdpu.learn.method import CorrectedRisk

METHOD = CorrectedRisk("ABS", k=1.0, origin="paper")
