"""One file per method, discovered by being here: ``relu_part.py`` is the method ``relu-part``.

Each defines ``METHOD`` and imports torch only in its functions.
"""

from __future__ import annotations

import importlib

from mdpu.learn.method import CorrectedRisk, FittedMethod, NetworkMethod


def load_method(name: str) -> CorrectedRisk | NetworkMethod | FittedMethod:
    """Return the method called `name`."""
    method = importlib.import_module(f"mdpu.learn.methods.{name.replace('-', '_')}").METHOD
    assert isinstance(method, CorrectedRisk | NetworkMethod | FittedMethod)
    return method
