"""Configuration files: read, merged and checked. Every error names the key."""

from __future__ import annotations

import difflib
import itertools
import math
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mdpu.errors import UserError
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.files import PACKAGE, resource
from mdpu.pipeline.seals import check
from mdpu.pipeline.strict_yaml import load_yaml, parse_yaml

Config = dict[str, Any]

SCHEMA = resource("mdpu/pipeline/config.schema.yaml")
# Not a `resource` by its literal name: then it would be an input of every job, and an edit would rerun them all.
PAPER = "config.yaml"
METHODS_FOLDER = PACKAGE / "learn" / "methods"

BASE = "base"
# Settings that every network has; `check_networks` knows the others.
OPTIMIZATION = ("batch_size", "learning_rate", "weight_decay")
GRID = ("variant", "tuple_size", "n", "prior", "method", "loss", "seed")
MOST_RUNS = 1_000_000
# Folders of results_dir that belong to no configuration.
OTHERS_FOLDERS = {"reference": "the committed reference results", "datasets": "the images"}


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Config:
    """Return `base` with `overlay` on top: mappings merge, everything else is replaced."""
    merged = dict(base)
    for key, value in overlay.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def load_config(paths: Sequence[Path], values: Sequence[str] = ()) -> Config:
    """Read YAML files, merge each over those before it, and validate the result.

    `completed` fills in what they leave open.

    Parameters
    ----------
    paths : sequence of Path
    values : sequence of str
        ``KEY=VALUE`` with a YAML value, merged over the files.

    Raises
    ------
    UserError
        If a file is missing or is not plain data, or if the merged configuration is invalid.
    """
    config: Config = {}
    for path in paths:
        config = merge(config, load_yaml(Path(path)))
        check(Path(path))  # a file that the workflow wrote must be unchanged
    for value in values:
        config = merge(config, parse_value(value))
    config = completed(config)
    check_config(config)
    return config


def parse_value(text: str) -> Config:
    """Return the overlay that ``KEY=VALUE`` stands for; the value is YAML, such as ``{training: {epochs: 5}}``.

    Raises
    ------
    UserError
        If `text` has no ``=``, or the value is not plain data.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--config {text!r} is not of the form KEY=VALUE")
    return parse_yaml(f"{key}: {value}", f"--config {text!r}")


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
    """Return the JSON schema of a configuration, with all kinds of experiment and their own keys."""
    from mdpu.pipeline.kind import available_kinds, load_kind

    kinds = {name: load_kind(name) for name in available_kinds()}
    content = load_yaml(SCHEMA)
    experiment = content["properties"]["definitions"]["properties"]["experiments"]["additionalProperties"]
    experiment["properties"]["kind"] |= {"enum": list(kinds)}
    for kind in kinds.values():
        experiment["properties"] |= kind.keys
    without_grid = [name for name, kind in kinds.items() if kind.shows == "nothing"]
    experiment["if"] = {"properties": {"kind": {"enum": without_grid}}}
    experiment["else"] = {"required": ["tuple_size", "n"]}
    return content


def check_config(config: Config) -> None:
    """Raise `UserError` with the key's name if `config` breaks the schema or contradicts itself."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema()).iter_errors(config))
    if error is not None:
        raise UserError(_explain(error))
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
        _check_experiment(experiment, config, f"config key definitions.experiments.{name}")


def check_networks(config: Config) -> None:
    """Raise `UserError` with the key's name if `config` has an unknown network or a wrong setting of one.

    This is not part of `check_config`, so that commands that only need the datasets of a configuration do not depend on
    the code of networks.
    """
    from mdpu.learn.networks import available_networks

    networks = available_networks()
    for name, dataset in config["definitions"]["datasets"].items():
        if "network" in dataset:
            known(dataset["network"], networks, f"config key definitions.datasets.{name}.network")
    for name in config["cohort"]:
        known(str(name), networks, "config key cohort")
    for where, settings_by_name in _network_settings(config):
        for name, settings in settings_by_name.items():
            known(str(name), networks, f"config key {where}")
            _check_network(name, settings, f"{where}.{name}")


def _network_settings(config: Config) -> Iterator[tuple[str, Config]]:
    """Yield, for the protocol and each variant, the key that holds settings of networks, and these by name."""
    overlays = {f"definitions.variants.{name}": overlay for name, overlay in config["definitions"]["variants"].items()}
    for where, overlay in {"protocol": config["protocol"], **overlays}.items():
        yield f"{where}.training.networks", (overlay or {}).get("training", {}).get("networks", {})


def _check_network(name: str, settings: Config, where: str) -> None:
    from mdpu.learn.networks import load_network

    network = load_network(name)
    for key, value in settings.items():
        if key not in (*OPTIMIZATION, *network.known):
            raise UserError(_unknown_key(where, key, (*OPTIMIZATION, *network.known)))
        if key in network.known:
            try:
                network.read({key: value})
            except UserError as error:
                raise UserError(f"config key {where}: {error}") from None


def _check_dataset(dataset: Config, where: str) -> None:
    if not is_path(dataset["source"]):
        known(dataset["source"], available_sources(), f"{where}.source")
    both = set(map(str, dataset["positive"])) & set(map(str, dataset["negative"]))
    if both:
        raise UserError(
            f"{where}: class {', '.join(sorted(both))} is on both sides; list it as positive or negative, not both"
        )


def _check_experiment(experiment: Config, config: Config, where: str) -> None:
    from mdpu.pipeline.kind import available_kinds, load_kind

    axes = merge(config["axes"], experiment)
    kind = load_kind(experiment["kind"])
    for other in available_kinds():
        for key in load_kind(other).keys.keys() & experiment.keys() - kind.keys.keys():
            raise UserError(f"{where}.{key}: only an experiment of kind {other} has a {key}")
    kind.check(axes, config, where)
    runs = _number_of_runs(axes, selected(config, "datasets"))
    if runs > MOST_RUNS:
        raise UserError(f"{where} asks for {runs:,} runs, but {MOST_RUNS:,} is the most; shorten its axes")
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
    for axis in kind.single:
        values = axes[axis].values() if isinstance(axes[axis], Mapping) else [axes[axis]]
        if any(isinstance(value, list) and len(value) > 1 for value in values):
            raise UserError(
                f"{where}.{axis}: an experiment of kind {experiment['kind']} shows one {axis.replace('_', ' ')}, "
                "but several are given; make it several experiments"
            )


def all_values(axis: Any) -> list[Any]:
    """Return the values of an axis that is a list, or a list for each dataset or method; each once."""
    lists = axis.values() if isinstance(axis, Mapping) else [axis]
    return list(dict.fromkeys(itertools.chain.from_iterable(lists)))


def _number_of_runs(axes: Config, datasets: Sequence[str]) -> int:
    """Return an upper bound of the number of runs of a definition's grid, without making them."""
    return math.prod(_most_values(axes[axis]) for axis in GRID if axis in axes) * len(datasets)


def _most_values(axis: Any) -> int:
    """Return the number of values of an axis; the largest, if they are given by dataset or by method."""
    if isinstance(axis, Mapping):
        return max(map(_most_values, axis.values()))
    return len(axis) if isinstance(axis, list) else 1


def known(name: str, names: Iterable[str], where: str) -> None:
    """Raise `UserError`, with a suggestion, if `name` is not one of `names`.

    Parameters
    ----------
    name : str
    names : iterable of str
    where : str
        Where the name occurs, for the message.
    """
    names = sorted(names)
    if name not in names:
        guess = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {guess[0]!r}?" if guess else f"; known are {_some(names)}"
        raise UserError(f"{where}: {name!r} is unknown{hint}")


def _some(names: Sequence[str], many: int = 30) -> str:
    return ", ".join(names[:many]) + (f" and {len(names) - many} more" if len(names) > many else "")


def _explain(error: Any) -> str:
    where = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        allowed = error.schema.get("properties", {})
        for key in sorted(set(error.instance) - set(allowed)):
            return _unknown_key(where, key, allowed)
    if error.validator == "required":
        return f"config key {where or '(top level)'}: {error.message}"
    if error.validator == "pattern" and "description" in error.schema:
        return f"config key {where}: {error.instance!r} may hold {error.schema['description']}, and nothing else"
    message = error.message if len(error.message) < 200 else f"{error.message[:80]} ... {error.message[-80:]}"
    return f"config key {where}: {message}"


def _unknown_key(where: str, key: object, allowed: Iterable[str]) -> str:
    allowed = sorted(allowed)
    guess = difflib.get_close_matches(str(key), allowed, n=1)
    hint = f"did you mean {guess[0]!r}?" if guess else f"known keys are {', '.join(allowed)}"
    return f"config key {where + '.' if where else ''}{key} is unknown; {hint}"


def selected(config: Config, kind: str) -> list[str]:
    """Return the names that ``datasets`` or ``experiments`` selects; ``all`` selects every one defined."""
    choice = config[kind]
    return list(config["definitions"][kind]) if choice == "all" else list(choice)


def available_methods() -> list[str]:
    """Return the methods discovered in ``mdpu/learn/methods``, without importing them."""
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules([str(METHODS_FOLDER)]))


def available_sources() -> list[str]:
    """Return the sources discovered in ``mdpu/pipeline/data/sources``."""
    from mdpu.pipeline.data.sources import SOURCES

    return sorted(SOURCES)


def find_dataset(config: Config, name: str) -> Config:
    """Return the definition of a dataset: source, sides, title; raise `UserError` if it is unknown."""
    known(name, config["definitions"]["datasets"], "dataset")
    definition: Config = config["definitions"]["datasets"][name]
    return definition
