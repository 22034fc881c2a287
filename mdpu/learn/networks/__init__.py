"""One file per network, discovered by being here: ``resnet34.py`` is the network ``resnet34``.

Each defines ``NETWORK``, a `mdpu.learn.network.Architecture`, and imports torch in its functions only.
"""

from __future__ import annotations

import importlib
import pkgutil

from mdpu.errors import UserError
from mdpu.learn.network import Architecture


def available_networks() -> list[str]:
    """Return the names of the networks, without importing them."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def load_network(name: str | Architecture) -> Architecture:
    """Return the network called `name`, or the one that is given; raise `UserError` if it is unknown."""
    if isinstance(name, Architecture):
        return name
    if name not in available_networks():
        raise UserError(f"network {name!r} is unknown; known are {', '.join(available_networks())}")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    network = getattr(module, "NETWORK", None)
    if not isinstance(network, Architecture):
        raise UserError(f"{module.__file__} declares no NETWORK: an Architecture")
    return network
