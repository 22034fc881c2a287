"""One file per method, discovered by being here: ``relu_part.py`` is the method ``relu-part``.

Each defines ``METHOD``.
"""

from __future__ import annotations

import importlib

from mdpu.learn.method import CorrectedRisk


def load_method(name: str) -> CorrectedRisk:
    """Return the method called `name`."""
    method = importlib.import_module(f"mdpu.learn.methods.{name.replace('-', '_')}").METHOD
    assert isinstance(method, CorrectedRisk)
    return method
