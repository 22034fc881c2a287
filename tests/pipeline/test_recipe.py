"""Whether the numbers of finished runs would come out again, or `RECIPE` has to be raised.

Tiny runs of every method, law, loss, network and choice of the protocol go through plan, split and
job. Their numbers are compared with `numbers.json`. They are trained in float64. In float32 no
training repeats between CPUs: Adam divides a gradient by its size, so a gradient that is zero but
for rounding moves its weight by a whole step.

If a change of code moves the numbers on purpose, raise ``RECIPE`` in ``mdpu/settings.py``: every
run is trained anew then. Afterwards write the new numbers:

    python tests/pipeline/test_recipe.py
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from precision import in_float64

from mdpu.losses import LOSSES
from mdpu.methods import available_methods
from mdpu.pipeline.config import check_config, load_config, merge
from mdpu.pipeline.data.labels import write_labels
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.job import train_cell
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import read_runs
from mdpu.settings import RECIPE

NUMBERS = Path(__file__).with_name("numbers.json")
TOLERANCE = 1e-6  # of an objective; three instruction sets (AVX512, AVX2, SSE4.1) agree within 1e-9
SIDES = {"positive": [0, 2, 4, 6, 8], "negative": [1, 3, 5, 7, 9]}
DIGITS = {"title": "Digits", "source": "digits", **SIDES}
PAIRS = {"kind": "table", "title": "Pairs", "tuple_size": [2], "n": 60, "datasets": ["digits"]}
OVERLAY = {
    "name": "recipe",
    "device": "cpu",
    "shipped": None,
    "datasets": ["digits", "digits-components", "digits-resnet"],
    "experiments": ["methods", "triples", "losses", "variants", "laws", "components", "resnet"],
    "axes": {"prior": [0.4], "seed": [1]},
    "protocol": {
        "training": {
            "epochs": 12,
            "networks": {
                "mlp": {"hidden": [16, 8], "batch_size": 20, "learning_rate": 0.02},
                "components": {"hidden": [8], "batch_size": 25, "learning_rate": 0.01},
                "resnet34": {"batch_size": 8},
            },
        }
    },
    "definitions": {
        "datasets": {
            "digits": DIGITS,
            "digits-components": {**DIGITS, "network": "components"},
            "digits-resnet": {**DIGITS, "network": "resnet34"},
        },
        "laws": {"alarm": [0, 0.6, 0.9, 1]},
        "variants": {
            "images": {"sampling": {"n_counts": "images"}},
            "three-n": {"sampling": {"n_unlabeled": "3n"}},
            "no-replacement": {"sampling": {"replacement": False, "overlap": False}},
            "broken": {"sampling": {"broken": 0.2}},
            "offset": {"training": {"prior_offset": 0.1}},
            "adamw": {"training": {"optimizer": "adamw", "batch_counts": "images"}},
            "one-cycle": {"training": {"schedule": "one-cycle"}},
            "short": {"training": {"epochs": 2}},
        },
        "experiments": {
            "methods": {**PAIRS, "method": available_methods()},
            "triples": {
                **PAIRS,
                "tuple_size": [3],
                "method": ["relu", "bag-relu", "siamese", "llp"],
            },
            "losses": {**PAIRS, "variant": ["short"], "method": ["ure"], "loss": [*LOSSES][1:]},
            "variants": {
                **PAIRS,
                "method": ["ure"],
                "variant": [
                    "images",
                    "three-n",
                    "no-replacement",
                    "broken",
                    "offset",
                    "adamw",
                    "one-cycle",
                ],
            },
            "laws": {
                **PAIRS,
                "tuple_size": [3],
                "law": ["exactly-1", "at-least-1", "alarm"],
                "method": ["bag-relu"],
                "also": [
                    {"law": ["exactly-1"], "prior": [0.3333]},
                    {"tuple_size": [2], "law": ["similar"]},
                ],
            },
            "components": {**PAIRS, "datasets": ["digits-components"], "method": ["bag-relu"]},
            "resnet": {
                **PAIRS,
                "datasets": ["digits-resnet"],
                "method": ["ure"],
                "n": 8,
                "variant": ["short"],
            },
        },
    },
}


def measure(folder: Path) -> dict[str, list[float]]:
    """Return objective and true-positive rate of the last epoch of each run, trained in a
    folder.
    """
    config = merge(load_config(), OVERLAY)
    check_config(config)
    plan = Plan(config)
    write_source("digits", folder, None, folder / "images.npz")
    write_labels(folder / "images.npz", folder / "labels.npz", sides=SIDES, counts={})
    for split in plan.splits:
        write_split(folder / "labels.npz", folder / f"{split}.npz", plan.drawing(split))
    found = {}
    for cell, runs in plan.cells.items():
        out = folder / f"{cell}.parquet"
        files = [folder / f"{name}.npz" for name in ("images", "labels", runs[0].split)]
        with in_float64():
            train_cell(plan.spec(cell), *files, out, (), "cpu")
        for run in runs:
            last = read_runs(out)[plan.key(run)].history.iloc[-1]
            found[run.name] = [
                round(float(last[name]), 9) for name in ("objective", "true_positive_rate")
            ]
    return found


@pytest.mark.timeout(600)
def test_numbers_come_out_again_or_recipe_is_raised(tmp_path):
    recorded = json.loads(NUMBERS.read_text())
    assert recorded["recipe"] == RECIPE, (
        "write numbers.json again, as the docstring of this file says"
    )
    found = measure(tmp_path)
    assert found.keys() == recorded["numbers"].keys()
    moved = {
        name: (recorded["numbers"][name], numbers)
        for name, numbers in found.items()
        # A test image more or less is no sign; a hundredth is.
        if abs(numbers[0] - recorded["numbers"][name][0]) > TOLERANCE * max(1, abs(numbers[0]))
        or abs(numbers[1] - recorded["numbers"][name][1]) > 0.01
    }
    assert not moved, "raise RECIPE in mdpu/settings.py if this is meant"


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        numbers = measure(Path(scratch))
    NUMBERS.write_text(json.dumps({"recipe": RECIPE, "numbers": numbers}, indent=1) + "\n")
    print(f"{len(numbers)} runs", file=sys.stderr)
