"""A small configuration to plan from, and changes of it."""

from __future__ import annotations

import copy

import yaml

from mdpu.pipeline.config import merge
from mdpu.pipeline.files import REPOSITORY

# The paper's configuration, with small definitions of its own: a key that the schema demands tomorrow is there.
CONFIG = {
    **merge(
        yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8")),
        {
            "name": "tests",
            "experiments": "all",
            "axes": {"prior": [0.4, 0.5], "method": ["ure", "abs"], "seed": [1, 2]},
            "protocol": {"training": {"epochs": 3, "networks": {"mlp": {"hidden": [8], "batch_size": 10}}}},
        },
    ),
    "definitions": {
        "datasets": {
            "flat": {"title": "Flat", "source": "digits", "positive": [0], "negative": [1], "network": "mlp"},
            "deep": {"title": "Deep", "source": "digits", "positive": [0], "negative": [1], "network": "resnet34"},
        },
        "variants": {"base": None, "three-n": {"sampling": {"n_unlabeled": "3n"}}},
        "experiments": {
            "first": {"kind": "table", "title": "First", "tuple_size": [2], "n": {"default": 30, "deep": 20}},
            "second": {"kind": "curves", "title": "Second", "datasets": ["flat"], "tuple_size": [2, 3], "n": 30},
        },
    },
}

FIRST = "definitions__experiments__first__"
FLAT = "definitions__datasets__flat__"

VARIANTS = {
    "base": None,
    "three-n": {"sampling": {"n_unlabeled": "3n"}},
    "ninety": {"sampling": {"n_unlabeled": 90}},
    "adam": {"training": {"optimizer": "adam"}},
    "stem": {"training": {"networks": {"resnet34": {"stem": "imagenet"}}}},
    "both": {"sampling": {"overlap": False}, "training": {"networks": {"mlp": {"hidden": [8, 8]}}}},
}

SETTING = {"kind": "setting", "uses": "split", "title": "Setting", "tuple_size": [3], "prior": [0.5], "n": 40}


def config(**changes):
    """Return a copy of CONFIG with values set at dotted keys, written with double underscores."""
    changed = copy.deepcopy(CONFIG)
    for dotted, value in changes.items():
        *parents, last = dotted.split("__")
        place = changed
        for key in parents:
            place = place[key]
        place[last] = value
    return changed


def study(**keys):
    """Return CONFIG with one experiment of kind sensitivity; `reporting` is among its options."""
    changed = config(definitions__reportings={"last": {"average_last": 1}, "best": {"average_last": "best"}})
    experiment = {"kind": "sensitivity", "title": "Study", "tuple_size": [2], "n": 30, "datasets": ["flat"], **keys}
    if "reporting" in experiment:
        experiment["options"] = {"reporting": experiment.pop("reporting")}
    changed["definitions"]["experiments"] = {"study": experiment}
    return changed
