"""Key shipped runs by recipe, once: from fingerprints of split files to fingerprints of recipes.

The folder holds the results of `./run reference` under the former code, which recomputed every former fingerprint from
redrawn splits. A run is taken over only if that fingerprint is the one under which it was shipped.

    python benchmarks/rekey.py OLD/results/paper-reference OLD/results/reference/finished.parquet OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from mdpu.pipeline.cache import Finished, export, fingerprint, own_columns, recipes_of
from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import AXES, Plan, Run


def main() -> None:
    """Write the runs under their new fingerprints."""
    old, shipped, out = map(Path, sys.argv[1:])
    plan = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "reference.yaml"]))
    verified: dict[str, str] = {}
    inputs: dict[str, str] = {}
    for path in sorted((old / "histories").rglob("*.json")):
        facts = json.loads(path.read_text())
        assert facts["reused"] == facts["runs"], f"{path} trained a run"
        verified |= facts["fingerprints"]
        inputs |= {str(Path(*Path(name).parts[1:])): checksum for name, checksum in facts["inputs"].items()}
    packed = pd.read_parquet(shipped)
    runs, seen = [], set()
    for key, rows in packed.groupby(list(AXES), sort=False):
        run = Run(*key)
        mark = rows["fingerprint"].iloc[0]
        assert verified[run.name] == mark, f"{run.name} has another fingerprint"
        own_origin = json.loads(rows["origin"].iloc[0])
        history = own_columns(rows.drop(columns=[*AXES, "fingerprint", "origin"]).reset_index(drop=True))
        source = plan.dataset(run.dataset)["source"]
        content = {
            "images": inputs[f"datasets/{source}.npz"],
            "labels": inputs[f"paper-reference/labels/{run.dataset}.npz"],
        }
        (recipe,) = recipes_of(plan, run, content, None, own_origin["precision"])
        diagnostics = json.loads((old / "splits" / f"{run.split}.json").read_text())
        del diagnostics["provenance"]
        about = {"origin": own_origin, "split": inputs[f"paper-reference/splits/{run.split}.npz"]}
        runs.append(Finished.of(recipe, history, diagnostics=diagnostics, **about).check())
        assert fingerprint(recipe) not in seen, f"{run.name} is made as another run"
        seen.add(fingerprint(recipe))
    assert {run.name for run in plan.runs} == verified.keys()
    export(runs, out)
    print(f"{len(runs)} runs written to {out}")


if __name__ == "__main__":
    main()
