"""Configuration files: read, merged and checked. Every error names the key."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

from mdpu.errors import CONTROL, UserError
from mdpu.methods import available_methods
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.files import resource

try:  # with the parser in C, which reads ten times as fast
    from yaml import CSafeLoader as PlainLoader
except ImportError:
    from yaml import SafeLoader as PlainLoader  # type: ignore[assignment]

Config = dict[str, Any]

SCHEMA = "mdpu/pipeline/config.schema.yaml"
# Every configuration is laid over these: definitions of datasets, studies beyond the paper,
# readings, the paper's own.
BASE_FILES = ("config/datasets.yaml", "config/studies.yaml", "config/readings.yaml", "config.yaml")
EXPONENT = re.compile(r"[-+]?[0-9]+([.][0-9]*)?[eE][-+]?[0-9]+")
BASE = "base"  # the variant that changes nothing


class _Loader(PlainLoader):
    """Makes plain values only, with keys of text, each once: YAML would silently keep the last of
    duplicates.
    """


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        name = loader.construct_object(key, deep=True)
        if not _is_plain(name):
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {name!r} is not plain text", key.start_mark
            )
        if name in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {name!r} is given twice", key.start_mark
            )
        seen.add(name)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_config(paths: Iterable[Path | str] = ()) -> Config:
    """Return the paper's configuration with YAML files laid over it, checked.

    Raises
    ------
    UserError
        If a file is missing or is not a YAML mapping, or the result breaks the schema or
        contradicts itself.
    """
    config = _read_all((*map(resource, BASE_FILES), *map(Path, paths)))
    check_config(config)
    return config


def _read_all(paths: Iterable[Path]) -> Config:
    """Return YAML files, each laid over those before it."""
    config: Config = {}
    for path in paths:
        config = merge(config, load_yaml(path))
    return config


def load_yaml(path: Path) -> Config:
    """Read a mapping from a YAML file; raise `UserError` if it is no file, or holds something
    else.
    """
    where = f"configuration file {path}"
    try:
        return _parse(path.read_text(encoding="utf-8"), where)
    except FileNotFoundError:
        raise UserError(f"{where} does not exist") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"{where} could not be read ({error.strerror or error})") from None


def _parse(text: str, where: str) -> Config:
    """Read a mapping from YAML text; `where` begins the messages about it."""
    try:
        # it is yaml.SafeLoader, and refuses doubled keys
        content = yaml.load(text, _Loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{where} is not valid YAML: {error.problem}{line}") from None
    except RecursionError:
        raise UserError(f"{where} is not valid YAML: it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise UserError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise UserError(f"{where} holds no mapping of keys")
    return content


def _is_plain(text: Any) -> bool:
    """Return whether a value is text that a file and a terminal can show."""
    return isinstance(text, str) and not CONTROL.search(text)


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Config:
    """Return `base` with `overlay` on top: mappings merge, everything else is replaced."""
    merged = dict(base)
    for key, value in overlay.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def from_snakemake(config: Mapping[str, Any]) -> Config:
    """Return Snakemake's configuration, or that of a workflow that uses this one as a module, laid
    over the paper's.
    """
    complete = merge(_read_all(map(resource, BASE_FILES)), config)
    check_config(complete)
    return complete


def as_yaml(value: Any) -> Any:
    """Return a value of ``--config`` as YAML reads it; what is nested in it arrives as text."""
    if isinstance(value, dict):
        return {key: as_yaml(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_yaml(inner) for inner in value]
    return (
        _parse(f"value: {value}", f"--config {value!r}")["value"]
        if isinstance(value, str)
        else value
    )


@cache
def schema() -> Config:
    """Return the JSON schema of a configuration."""
    return load_yaml(resource(SCHEMA))


def check_config(config: Config) -> None:
    """Raise `UserError` with the key's name if `config` breaks the schema or contradicts itself."""
    types = Draft202012Validator.TYPE_CHECKER
    plain = types.redefine_many(
        {
            "string": lambda _, value: _is_plain(value),
            "integer": lambda _, value: type(value) is int and abs(value) < 2**63,
            # no NaN, no infinity
            "number": lambda _, value: types.is_type(value, "number") and abs(value) < 2**63,
            "object": lambda _, value: isinstance(value, dict) and all(map(_is_plain, value)),
        }
    )
    validator = validators.extend(Draft202012Validator, type_checker=plain)(schema())  # type: ignore[no-untyped-call]
    errors = [*validator.iter_errors(config)]
    if errors:
        for error in errors:
            _read_exponents(config, error)
        errors = [*validator.iter_errors(config)]
    if errors:
        raise UserError(explain(best_match(errors)))
    margin = config["comparison"]["margin"]
    wider = config["comparison"]["wider_margin"]
    if wider < margin:
        raise UserError(
            f"config key comparison.wider_margin: {wider} is less than comparison.margin, {margin}"
        )
    definitions = config["definitions"]
    for name, dataset in definitions["datasets"].items():
        _check_dataset(dataset, f"config key definitions.datasets.{name}")
    for key in ("datasets", "experiments"):
        for name in selected(config, key):
            known(name, definitions[key], f"config key {key}")
    for name, overlay in definitions["variants"].items():
        if "reporting" in (overlay or {}):
            raise UserError(
                f"config key definitions.variants.{name}.reporting: how runs are reported needs no "
                "training of its own"
            )
    _check_readings(config)
    for name, experiment in definitions["experiments"].items():
        for place, axes in enumerate(grids(with_axes(experiment, config))):
            _check_grid(
                axes, config, f"config key definitions.experiments.{name}{'.also' if place else ''}"
            )


def _read_exponents(config: Config, error: ValidationError) -> None:
    """Make a number of a text such as ``1e-3`` where the schema wants a number; YAML wants
    ``1.0e-3``.
    """
    for cause in error.context or ():
        _read_exponents(config, cause)
    text = str(error.instance)
    wants_number = error.validator == "type" and "number" in str(error.validator_value)
    if not wants_number or not EXPONENT.fullmatch(text):
        return
    *above, key = error.absolute_path
    place: Any = config
    for step in above:
        place = place[step]
    place[key] = float(text)


def _check_readings(config: Config) -> None:
    """Raise `UserError` if a choice names an unknown dataset or method, or a reading an unknown
    choice or value.
    """
    definitions = config["definitions"]
    choices = definitions.get("choices", {})
    for choice, spec in choices.items():
        for value, change in spec["values"].items():
            where = f"config key definitions.choices.{choice}.values.{value}"
            for dataset in change.get("datasets", {}).values():
                known(dataset, definitions["datasets"], where)
            for method in change.get("methods", {}).values():
                # a loss may follow the dot
                known(method.partition(".")[0], available_methods(), where)
    for name, reading in definitions.get("readings", {}).items():
        for choice, value in reading.items():
            known(choice, choices, f"config key definitions.readings.{name}")
            known(
                value, choices[choice]["values"], f"config key definitions.readings.{name}.{choice}"
            )


def _check_dataset(dataset: Config, where: str) -> None:
    if not is_path(dataset["source"]):
        known(dataset["source"], SOURCES, f"{where}.source")
    both = set(map(str, dataset["positive"])) & set(map(str, dataset["negative"]))
    if both:
        raise UserError(
            f"{where}: class {', '.join(sorted(both))} is on both sides; list it as positive or "
            "negative, not both"
        )


def _check_grid(axes: Config, config: Config, where: str) -> None:
    datasets = config["definitions"]["datasets"]
    methods = available_methods()
    for method in all_values(axes["method"]):
        known(method, methods, f"{where}.method")
    for dataset in axes.get("datasets", []):
        known(dataset, datasets, f"{where}.datasets")
    for axis, names in (("n", datasets), ("method", datasets), ("seed", [*datasets, *methods])):
        if isinstance(axes.get(axis), Mapping):
            for name in axes[axis].keys() - {"default"}:
                known(name, [*names, "default"], f"{where}.{axis}")
    for variant in axes["variant"]:
        known(variant, config["definitions"]["variants"], f"{where}.variant")


def with_axes(experiment: Mapping[str, Any], config: Config) -> Config:
    """Return an experiment's definition with the axes that it does not have itself; one that it has
    is all its own.
    """
    return {**config["axes"], **experiment}


def grids(spec: Mapping[str, Any]) -> list[Config]:
    """Return the grids of an experiment's definition, which has inherited its axes: its own and
    those of ``also``.
    """
    first = {key: value for key, value in spec.items() if key != "also"}
    return [first, *({**first, **more} for more in spec.get("also", []))]


def all_values(axis: Any) -> list[Any]:
    """Return the values of an axis that is a list, or a list for each dataset or method; each
    once.
    """
    lists = axis.values() if isinstance(axis, Mapping) else [axis]
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))


def selected(config: Config, kind: str) -> list[str]:
    """Return the names that ``datasets`` or ``experiments`` selects; ``all`` selects every one
    defined.
    """
    choice = config[kind]
    return list(config["definitions"][kind]) if choice == "all" else list(choice)


def known(name: str, names: Collection[str], where: str) -> None:
    """Raise `UserError`, with a suggestion, if `name` is not one of `names`; `where` says where it
    occurs.
    """
    if name not in names:
        raise unknown(name, names, where)


def unknown(name: str, names: Collection[str], where: str) -> UserError:
    """Return the error for a name that is not one of `names`. Its suggestion takes seconds where
    there are thousands of names.
    """
    return UserError(f"{where}: {name!r} is unknown; {_hint(name, sorted(names))}")


def _hint(name: str, names: Sequence[str]) -> str:
    guess = difflib.get_close_matches(name, names, n=1)
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    return f"did you mean {guess[0]!r}?" if guess else f"known are {', '.join(names[:30])}{more}"


def explain(error: Any, within: str = "") -> str:
    """Return an error of jsonschema as one sentence with the key, which lies `within` another
    one.
    """
    where = ".".join(filter(None, (within, *map(str, error.absolute_path))))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        allowed = error.schema.get("properties", {})
        for key in sorted(set(error.instance) - set(allowed)):
            return (
                f"config key {where + '.' if where else ''}{key} is unknown; "
                f"{_hint(str(key), sorted(allowed))}"
            )
    if error.instance is None:
        return f"config key {where} is empty; give it a value or delete it"
    if error.validator == "pattern" and "description" in error.schema:
        return (
            f"config key {where}: {error.instance!r} may hold {error.schema['description']}, and "
            "nothing else"
        )
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        place = f"config key {where}" if where else "the configuration"
        return (
            f"{place} lacks {missing!r}; give it, or lay this file over one that does, such as "
            "--configfile config/quick.yaml FILE"
        )
    if error.validator == "not":
        return f"config key {where}: {error.instance!r} is taken; choose another name"
    message = (
        error.message
        if len(error.message) < 200
        else f"{error.message[:80]} ... {error.message[-80:]}"
    )
    return f"config key {where or '(top level)'}: {message}"
