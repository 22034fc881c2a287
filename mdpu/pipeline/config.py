"""Configuration files: read, merged, checked, and named by what is selected. Every error names the key."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mdpu.errors import CONTROL, UserError
from mdpu.learn.methods import available_methods
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.files import REPOSITORY, check, digest, resource

try:  # with the parser in C, which reads ten times as fast
    from yaml import CSafeLoader as PlainLoader
except ImportError:
    from yaml import SafeLoader as PlainLoader  # type: ignore[assignment]

Config = dict[str, Any]

SCHEMA = resource("mdpu/pipeline/config.schema.yaml")
PAPER = "config.yaml"

BASE = "base"
# Settings that every network has; each knows the others.
OPTIMIZATION = ("batch_size", "learning_rate", "weight_decay")
# Folders of results_dir that belong to no configuration.
OTHERS_FOLDERS = {"reference": "the committed reference results", "datasets": "the images"}
# The experiments of `./run`, each with what is laid over the paper's configuration.
EXPERIMENTS: Mapping[str, Sequence[Path]] = {
    "quick": [REPOSITORY / "config" / "quick.yaml"],
    "paper": [],
    "reference": [REPOSITORY / "config" / "reference.yaml"],
    "laws": [REPOSITORY / "config" / "laws.yaml"],
}
# Where and with how much to work: such a key selects nothing.
WORKING = ("data_dir", "mirror", "device", "threads", "memory_mb", "checkpoint_seconds")
LONGEST = 60  # characters of a selection's name


class _Loader(PlainLoader):
    """Makes plain values only, with keys of text, each once: YAML would silently keep the last of duplicates."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        name = loader.construct_object(key, deep=True)
        if not _is_plain(name):
            raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is no plain text", key.start_mark)
        if name in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is given twice", key.start_mark)
        seen.add(name)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_yaml(path: Path) -> Config:
    """Read a mapping from a YAML file; raise `UserError` if it is no file, or holds something else."""
    where = f"configuration file {path}"
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{where} is no file")
        return _parse(path.read_text(encoding="utf-8"), where)
    except FileNotFoundError:
        raise UserError(f"{where} does not exist") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"{where} could not be read ({error.strerror or error})") from None


def parse_value(text: str) -> Config:
    """Return the overlay that ``KEY=VALUE`` stands for; the value is YAML, such as ``{training: {epochs: 5}}``."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--config {text!r} is not of the form KEY=VALUE")
    return _parse(f"{key}: {value}", f"--config {text!r}")


def _parse(text: str, where: str) -> Config:
    """Read a mapping from YAML text; `where` begins the messages about it."""
    try:
        content = yaml.load(text, _Loader)
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


def load_config(paths: Sequence[Path], values: Sequence[str] = ()) -> Config:
    """Return YAML files and ``KEY=VALUE``, each merged over those before it, completed and checked."""
    config: Config = {}
    for path in paths:
        config = merge(config, load_yaml(Path(path)))
        check(Path(path))  # a file that the workflow wrote must be unchanged
    for value in values:
        config = merge(config, parse_value(value))
    config = completed(config)
    check_config(config)
    return config


@cache
def shipped(experiment: str) -> Config:
    """Return the configuration of an experiment of `./run` without anything laid over it."""
    return load_config([REPOSITORY / PAPER, *EXPERIMENTS[experiment]])


def select(experiment: str, files: Sequence[Path], values: Sequence[str]) -> Config:
    """Return the configuration of an experiment with files and ``KEY=VALUE`` laid over it, under a name of its own.

    Each selection has a folder of its own, so that none writes over another and the commands of every page stay valid.
    Its name is the one that the files and values give. Without one it is the experiment's, followed by the stem of each
    file and by the text of each value that changes more than how to work: ``paper-mnist``, ``paper-datasets-mnist``.
    """
    known(experiment, EXPERIMENTS, "experiment")
    whole = shipped(experiment)
    config, chosen = whole, []
    overlays = [(Path(file).stem, load_yaml(Path(file))) for file in files]
    overlays += [(value, parse_value(value)) for value in values]
    for text, overlay in overlays:
        before, config = config, merge(config, overlay)
        if any(config.get(key) != before.get(key) for key in config.keys() - {*WORKING}):
            chosen.append(text)
    for file in files:
        check(Path(file))  # one that the workflow wrote must be unchanged
    check_config(config)
    if chosen and config["name"] == whole["name"]:
        name = re.sub("[^a-z0-9]+", "-", " ".join([whole["name"], *chosen]).lower()).strip("-")
        if len(name) > LONGEST:
            name = f"{name[: LONGEST - 9].rstrip('-')}-{digest(name)[:8]}"
        config = {**config, "name": name}
    return config


def unreached(experiment: str, config: Config) -> dict[str, list[str]]:
    """Return, for each axis of which a selection changes the values, the tables and figures that do not take them.

    They set that axis themselves, to other values, which the selection leaves as they were.
    """
    whole = shipped(experiment)
    before, now = (one["definitions"]["experiments"] for one in (whole, config))
    found: dict[str, list[str]] = {}
    for axis, values in config["axes"].items():
        for name in selected(config, "experiments"):
            own = before.get(name, {}).get(axis, values)
            if values not in (own, whole["axes"].get(axis)) and now[name][axis] == own:
                found.setdefault(axis, []).append(name)
    return found


def completed(config: Config) -> Config:
    """Return a configuration with every required key: if some are missing, it is merged over the paper's."""
    return merge(_paper(), config) if set(schema()["required"]) - config.keys() else config


def canonical(config: Config) -> Config:
    """Return a completed configuration with its keys in the order of the paper's.

    The order of its keys says nothing, but Snakemake compares params as text, and merges files in an order of its own.
    """
    return _in_order_of(_paper(), completed(config))


def _paper() -> Config:
    return load_yaml(resource(PAPER))


def _in_order_of(model: Mapping[str, Any], config: Mapping[str, Any]) -> Config:
    """Return `config` with the keys that `model` has first, in its order, at every level."""
    keys = [*(key for key in model if key in config), *(key for key in config if key not in model)]
    both = {key for key in keys if isinstance(config[key], Mapping) and isinstance(model.get(key), Mapping)}
    return {key: _in_order_of(model[key], config[key]) if key in both else config[key] for key in keys}


@cache
def schema() -> Config:
    """Return the JSON schema of a configuration."""
    return load_yaml(SCHEMA)


def check_config(config: Config) -> None:
    """Raise `UserError` with the key's name if `config` breaks the schema or contradicts itself."""
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import best_match

    types = Draft202012Validator.TYPE_CHECKER
    plain = types.redefine_many(
        {
            "string": lambda _, value: _is_plain(value),
            "integer": lambda _, value: types.is_type(value, "integer") and abs(value) < 2**63,
            "number": lambda _, value: types.is_type(value, "number") and abs(value) < 2**63,  # no NaN, no infinity
            "object": lambda _, value: isinstance(value, dict) and all(map(_is_plain, value)),
        }
    )
    validator = validators.extend(Draft202012Validator, type_checker=plain)  # type: ignore[no-untyped-call]
    error = best_match(validator(schema()).iter_errors(config))
    if error is not None:
        raise UserError(explain(error))
    if config["name"] in OTHERS_FOLDERS:
        raise UserError(
            f"config key name: {config['name']} is the folder of {OTHERS_FOLDERS[config['name']]}; choose another"
        )
    for name, dataset in config["definitions"]["datasets"].items():
        _check_dataset(dataset, f"config key definitions.datasets.{name}")
    margin, wider = config["comparison"]["margin"], config["comparison"]["wider_margin"]
    if wider < margin:
        raise UserError(
            f"config key comparison.wider_margin: {wider} is less than comparison.margin, {margin}; make it wider"
        )
    for key in ("datasets", "experiments"):
        for name in selected(config, key):
            known(name, config["definitions"][key], f"config key {key}")
    for name, overlay in config["definitions"]["variants"].items():
        if "reporting" in (overlay or {}):
            raise UserError(
                f"config key definitions.variants.{name}.reporting: how runs are reported needs no training of its "
                "own; put it under definitions.reportings"
            )
    if BASE in config["definitions"].get("reportings", {}):
        raise UserError(
            "config key definitions.reportings.base: base is protocol.reporting itself; choose another name"
        )
    for name, experiment in config["definitions"]["experiments"].items():
        for place, axes in enumerate(grids(merge(config["axes"], experiment))):
            _check_grid(axes, config, f"config key definitions.experiments.{name}{'.also' if place else ''}")
    _check_networks(config)


def _check_networks(config: Config) -> None:
    from mdpu.learn.networks import available_networks, load_network

    networks = available_networks()
    for name in config["training_jobs"]:
        known(name, networks, "config key training_jobs")
    variants = {f"definitions.variants.{name}": overlay for name, overlay in config["definitions"]["variants"].items()}
    for where, overlay in {"protocol": config["protocol"], **variants}.items():
        for name, settings in (overlay or {}).get("training", {}).get("networks", {}).items():
            known(name, networks, f"config key {where}.training.networks")
            network, place = load_network(name), f"{where}.training.networks.{name}"
            for key in (key for key in settings if key not in OPTIMIZATION):
                if key not in network.known:
                    raise UserError(_unknown_key(place, key, (*OPTIMIZATION, *network.known)))
                try:
                    network.read({key: settings[key]})
                except UserError as error:
                    raise UserError(f"config key {place}: {error}") from None


def _check_dataset(dataset: Config, where: str) -> None:
    from mdpu.learn.networks import available_networks
    from mdpu.pipeline.data.sources import SOURCES

    if "network" in dataset:
        known(dataset["network"], available_networks(), f"{where}.network")
    if not is_path(dataset["source"]):
        known(dataset["source"], SOURCES, f"{where}.source")
    both = set(map(str, dataset["positive"])) & set(map(str, dataset["negative"]))
    if both:
        raise UserError(
            f"{where}: class {', '.join(sorted(both))} is on both sides; list it as positive or negative, not both"
        )


def _check_grid(axes: Config, config: Config, where: str) -> None:
    datasets, methods = config["definitions"]["datasets"], available_methods()
    for method in all_values(axes["method"]):
        known(method, methods, f"{where}.method")
    for dataset in axes.get("datasets", []):
        known(dataset, datasets, f"{where}.datasets")
    for axis, names in (("n", datasets), ("method", datasets), ("seed", methods)):
        if isinstance(axes.get(axis), Mapping):
            for name in axes[axis].keys() - {"default"}:
                known(name, [*names, "default"], f"{where}.{axis}")
    for variant in axes["variant"]:
        known(variant, config["definitions"]["variants"], f"{where}.variant")


def grids(spec: Mapping[str, Any]) -> list[Config]:
    """Return the grids of an experiment's definition, which has inherited its axes: its own and those of ``also``."""
    own = {key: value for key, value in spec.items() if key != "also"}
    return [own, *({**own, **other} for other in spec.get("also", []))]


def all_values(axis: Any) -> list[Any]:
    """Return the values of an axis that is a list, or a list for each dataset or method; each once."""
    lists = axis.values() if isinstance(axis, Mapping) else [axis]
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))


def known(name: str, names: Collection[str], where: str) -> None:
    """Raise `UserError`, with a suggestion, if `name` is not one of `names`; `where` says where it occurs."""
    if name not in names:
        raise UserError(f"{where}: {name!r} is unknown; {_hint(name, sorted(names))}")


def _hint(name: str, names: Sequence[str]) -> str:
    guess = difflib.get_close_matches(name, names, n=1)
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    return f"did you mean {guess[0]!r}?" if guess else f"known are {', '.join(names[:30])}{more}"


def explain(error: Any, within: str = "") -> str:
    """Return what an error of jsonschema says, in one sentence with the key, which lies `within` another one."""
    where = ".".join(filter(None, (within, *map(str, error.absolute_path))))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        allowed = error.schema.get("properties", {})
        for key in sorted(set(error.instance) - set(allowed)):
            return _unknown_key(where, key, allowed)
    if error.instance is None:
        return f"config key {where} is empty; give it a value or delete it"
    if error.validator == "required":
        return f"config key {where or '(top level)'}: {error.message}"
    if error.validator == "pattern" and "description" in error.schema:
        return f"config key {where}: {error.instance!r} may hold {error.schema['description']}, and nothing else"
    message = error.message if len(error.message) < 200 else f"{error.message[:80]} ... {error.message[-80:]}"
    return f"config key {where or '(top level)'}: {message}"


def _unknown_key(where: str, key: object, allowed: Iterable[str]) -> str:
    return f"config key {where + '.' if where else ''}{key} is unknown; {_hint(str(key), sorted(allowed))}"


def selected(config: Config, kind: str) -> list[str]:
    """Return the names that ``datasets`` or ``experiments`` selects; ``all`` selects every one defined."""
    choice = config[kind]
    return list(config["definitions"][kind]) if choice == "all" else list(choice)
