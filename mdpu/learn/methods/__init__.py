"""One file per method, discovered by being here: ``relu_part.py`` is the method ``relu-part``.

Each defines ``METHOD`` and imports torch only in its functions.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from mdpu.errors import UserError
from mdpu.learn.method import CorrectedRisk, FittedMethod, NetworkMethod


def available_methods() -> list[str]:
    """Return the names of the methods, without importing them."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


@cache
def load_method(name: str) -> CorrectedRisk | NetworkMethod | FittedMethod:
    """Return the method called `name`; raise `UserError` if there is none, or its file declares none."""
    if name not in available_methods():
        raise UserError(f"method {name!r} is unknown; known are {', '.join(available_methods())}")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    method = getattr(module, "METHOD", None)
    if not isinstance(method, CorrectedRisk | NetworkMethod | FittedMethod):
        raise UserError(f"{module.__file__} declares no METHOD: a CorrectedRisk, a NetworkMethod or a FittedMethod")
    return method
