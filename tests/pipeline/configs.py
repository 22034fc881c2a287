"""A small configuration to plan from, and changes of it."""

import copy

from mdpu.pipeline.config import load_yaml, merge
from mdpu.pipeline.files import REPOSITORY

# The paper's configuration, with small definitions of its own: a key that the schema demands
# tomorrow is there.
CONFIG = {
    **merge(
        load_yaml(REPOSITORY / "config.yaml"),
        {
            "name": "tests",
            "experiments": "all",
            "axes": {"prior": [0.4, 0.5], "method": ["ure", "abs"], "seed": [1, 2]},
            "protocol": {
                "training": {"epochs": 3, "networks": {"mlp": {"hidden": [8], "batch_size": 10}}}
            },
        },
    ),
    "definitions": {
        "datasets": {
            "flat": {
                "title": "Flat",
                "source": "digits",
                "positive": [0],
                "negative": [1],
                "network": "mlp",
            },
            "deep": {
                "title": "Deep",
                "source": "digits",
                "positive": [0],
                "negative": [1],
                "network": "resnet34",
            },
        },
        "variants": {"base": None, "three-n": {"sampling": {"n_unlabeled": "3n"}}},
        "experiments": {
            "first": {
                "kind": "table",
                "title": "First",
                "tuple_size": [2],
                "n": {"default": 30, "deep": 20},
            },
            "second": {
                "kind": "curves",
                "title": "Second",
                "datasets": ["flat"],
                "tuple_size": [2, 3],
                "n": 30,
            },
        },
    },
}

FIRST = "definitions__experiments__first__"
FLAT = "definitions__datasets__flat__"
SETTING = {
    "kind": "setting",
    "title": "Setting",
    "options": {"tuple_size": 3, "prior": 0.5, "n": 40},
}


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
