"""YAML as plain data: no tags that make objects, no duplicate keys, no cycles, no infinite or missing numbers."""

from __future__ import annotations

import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

try:  # with the parser in C, which reads ten times as fast
    from yaml import CSafeLoader as PlainLoader
except ImportError:
    from yaml import SafeLoader as PlainLoader  # type: ignore[assignment]

from mdpu.errors import UserError

MEBIBYTES = 4  # a configuration of the whole paper has 0.02
NODES = 100_000  # a few aliases of aliases can stand for billions


class _Loader(PlainLoader):
    """Makes plain values only, and refuses duplicate keys, of which YAML would silently keep the last."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[Hashable] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        name = loader.construct_object(key, deep=True)
        if not isinstance(name, Hashable):
            raise yaml.constructor.ConstructorError(None, None, "a key is no text and no number", key.start_mark)
        if name in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is given twice", key.start_mark)
        seen.add(name)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping from a YAML file.

    Raises
    ------
    UserError
        If the file is missing, not a regular file, too large, not UTF-8, not YAML or not a mapping, or if it holds
        something other than plain data: a tag, a duplicate key, a cycle, a number that is not finite.
    """
    where = f"configuration file {path}"
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{where} is no file")
        if path.stat().st_size > MEBIBYTES * 2**20:
            raise UserError(f"{where} is larger than {MEBIBYTES} MiB")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{where} does not exist") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"{where} could not be read ({error.strerror or error})") from None
    return parse_yaml(text, where)


def parse_yaml(text: str, where: str) -> dict[str, Any]:
    """Read a mapping from YAML text; `where` begins the messages about it.

    Raises
    ------
    UserError
        As `load_yaml` does.
    """
    try:
        content = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise UserError(f"{where} is not valid YAML: {_reason(error)}") from None
    except (RecursionError, ValueError, TypeError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UserError(f"{where} is not valid YAML: {reason}") from None
    if not isinstance(content, dict):
        raise UserError(f"{where} holds no mapping of keys")
    _check_values(content, where)
    return content


def _reason(error: yaml.YAMLError) -> str:
    """Return the reason that yaml gives over several lines as part of a sentence."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if problem is None or mark is None:
        return " ".join(str(error).split())
    return f"{problem}, line {mark.line + 1}"


def _check_values(content: dict[str, Any], where: str) -> None:
    """Raise `UserError` for a number that is not finite, or for more values than a configuration can need."""
    ahead: list[tuple[Any, str]] = [(content, "")]
    visited = 0
    while ahead:
        value, keys = ahead.pop()
        visited += 1
        if visited > NODES:
            raise UserError(f"{where} stands for more than {NODES} values; it repeats itself through aliases")
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{where}, key {keys}: {value} is no number to work with")
        if isinstance(value, dict | list):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            ahead += [(child, f"{keys}.{key}" if keys else str(key)) for key, child in pairs]
