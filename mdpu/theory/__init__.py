"""The mathematics of the setting, free of torch: the law of the tuples and the weights of the risk estimator."""

from mdpu.theory.law import (
    Coefficients,
    RiskWeights,
    broken_tuple_law,
    check_prior,
    check_tuple_size,
    coefficients,
    risk_weights,
    tuple_law,
)

__all__ = [
    "Coefficients",
    "RiskWeights",
    "broken_tuple_law",
    "check_prior",
    "check_tuple_size",
    "coefficients",
    "risk_weights",
    "tuple_law",
]
