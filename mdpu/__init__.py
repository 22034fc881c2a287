"""Learning from M-tuple dominant positive and unlabeled data: method, experiments, report.

>>> from mdpu import MDPUClassifier, TupleClassifier, TupleLoss, read_groups

These load PyTorch and scikit-learn when they are first named; ``import mdpu`` alone loads neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdpu.estimator import MDPUClassifier, TupleClassifier
    from mdpu.losses import TupleLoss
    from mdpu.own.groups import read_groups

__version__ = "0.3.0"
__all__ = ["MDPUClassifier", "TupleClassifier", "TupleLoss", "read_groups"]

_MODULES = {
    "MDPUClassifier": "mdpu.estimator",
    "TupleClassifier": "mdpu.estimator",
    "TupleLoss": "mdpu.losses",
    "read_groups": "mdpu.own.groups",
}


def __getattr__(name: str) -> Any:
    """Return a public class or function from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the names of the module, those that are not loaded yet among them."""
    return sorted({*globals(), *__all__})
