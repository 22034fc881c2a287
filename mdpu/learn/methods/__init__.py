"""One file per method, discovered by being here: ``relu_part.py`` is the method ``relu-part``.

Each defines ``METHOD`` and imports torch only in its functions.
"""

from __future__ import annotations

import importlib

from mdpu.errors import UserError
from mdpu.learn.method import CorrectedRisk, FittedMethod, NetworkMethod


def load_method(name: str) -> CorrectedRisk | NetworkMethod | FittedMethod:
    """Return the method called `name`; raise `UserError` if its file declares none."""
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    method = getattr(module, "METHOD", None)
    if not isinstance(method, CorrectedRisk | NetworkMethod | FittedMethod):
        raise UserError(f"{module.__file__} declares no METHOD: a CorrectedRisk, a NetworkMethod or a FittedMethod")
    return method
