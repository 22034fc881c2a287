"""Where images come from: one file per publisher, discovered by being here.

Each defines ``SOURCES``, a `mdpu.pipeline.data.source.Source` for each name that a configuration may give, and imports
torchvision in its functions only.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from mdpu.pipeline.data.source import Source

_FILES = [importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)]

SOURCES: Mapping[str, Source] = {name: source for file in _FILES for name, source in file.SOURCES.items()}
MODULES: Mapping[str, str] = {name: file.__name__ for file in _FILES for name in file.SOURCES}
