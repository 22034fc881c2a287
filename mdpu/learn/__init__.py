"""A library that trains models from tuples and unlabeled images. It knows nothing of plans, paths and runs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mdpu.data import TupleData
from mdpu.learn.task import Settings, Task

if TYPE_CHECKING:
    from mdpu.learn.evaluation import TestRates
    from mdpu.learn.fitting import Fitted, fit, fit_each

__all__ = ["Fitted", "Settings", "Task", "TestRates", "TupleData", "fit", "fit_each"]

_LOADED_LATE = {
    "Fitted": "mdpu.learn.fitting",
    "TestRates": "mdpu.learn.evaluation",
    "fit": "mdpu.learn.fitting",
    "fit_each": "mdpu.learn.fitting",
}


def __getattr__(name: str) -> Any:
    """Load what needs torch on first use, so that plans and reports do not wait for it."""
    if name in _LOADED_LATE:
        return getattr(importlib.import_module(_LOADED_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
