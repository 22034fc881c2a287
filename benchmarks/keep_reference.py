"""Keep what `./run reference` gave as the shipped numbers.

    ./run reference && python benchmarks/keep_reference.py

writes results/reference: every run's accuracy and last risk, the runs themselves, verdicts, claims, ranks, tables,
figures and the page. Then `python docs/tables.py` makes the tables of the documents anew.

    ./run laws && python benchmarks/keep_reference.py --overlay laws

writes results/reference/laws: accuracies, runs, cells and the figure. In the same way `--overlay own-split` and
`--overlay neighbours` keep what `./run paper --configfile config/own-split.yaml` and `config/neighbours.yaml` gave.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from mdpu.pipeline.cache import export
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import finished_runs
from mdpu.pipeline.evaluate.comparison import NOT_RUN
from mdpu.pipeline.files import REPOSITORY, read_csv, write_csv
from mdpu.pipeline.plan import AXES, Plan

REFERENCE = REPOSITORY / "results" / "reference"
# Folders of the results, and the files of each that are kept.
KEPT = {"tables": "*.csv", "sensitivity": "*.csv", "figures": "*.svg"}
# The same of overlays, with the names under which they are kept.
OVERLAYS = {
    "laws": {"tables/laws.csv": "cells.csv", "figures/laws.svg": "laws.svg"},
    "own-split": {
        "comparison.csv": "comparison.csv",
        **{f"figures/figure{number}.svg": f"figure{number}.svg" for number in (3, 4)},
    },
    "neighbours": {f"tables/{name}.csv": f"{name}.csv" for name in ("neighbours-uu", "neighbours-pu")},
}
CLAIMS = ["claim", "said_by", "statement", "ours", "in_single_trials", "status", "paper"]


def main() -> None:
    """Read a folder of results, and write what is kept of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=REPOSITORY / "results" / "paper-reference")
    parser.add_argument("--overlay", choices=list(OVERLAYS))
    asked = parser.parse_args()
    if asked.overlay:
        return keep_overlay(asked.overlay)
    results = asked.results
    runs = read_csv(results / "runs.csv")[[*AXES, "accuracy", "first_epoch", "last_epoch", "risk"]]
    comparison, claims = read_csv(results / "comparison.csv"), read_csv(results / "claims.csv")
    write_csv(runs.round({"accuracy": 4, "risk": 6}), REFERENCE / "runs.csv")
    write_csv(comparison[comparison["verdict"] != NOT_RUN], REFERENCE / "comparison.csv")
    write_csv(claims.loc[claims["ours_cases"] > 0, CLAIMS], REFERENCE / "claims.csv")
    for name in ("report.html", "ranks.csv"):
        shutil.copy(results / name, REFERENCE)
    for folder, pattern in KEPT.items():
        shutil.rmtree(REFERENCE / folder, ignore_errors=True)
        (REFERENCE / folder).mkdir()
        for path in sorted((results / folder).glob(pattern)):
            shutil.copy(path, REFERENCE / folder)
    plan = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "reference.yaml"]))
    export(list(finished_runs(plan).values()), REFERENCE / "finished.parquet")
    print(f"{len(runs)} runs kept")
    for seal in REFERENCE.rglob(".*.seal"):  # these files are checked by git
        seal.unlink()


def keep_overlay(name: str) -> None:
    """Write what is kept of an overlay's results, of the runs that their newest configuration selects."""
    results, kept = REPOSITORY / "results" / name, REFERENCE / name
    runs = read_csv(results / "runs.csv")[[*AXES, "accuracy", "first_epoch", "last_epoch", "risk"]]
    write_csv(runs.round({"accuracy": 4, "risk": 6}), kept / "runs.csv")
    for file, named in OVERLAYS[name].items():
        shutil.copy(results / file, kept / named)
    if (kept / "comparison.csv").exists():
        comparison = read_csv(results / "comparison.csv")
        write_csv(comparison[comparison["verdict"] != NOT_RUN], kept / "comparison.csv")
    newest = max((results / "config").glob("[!.]*.yaml"), key=lambda file: file.stat().st_mtime)
    export(list(finished_runs(Plan(load_config([newest]))).values()), kept / "finished.parquet")
    print(f"{len(runs)} runs kept")
    for seal in kept.rglob(".*.seal"):
        seal.unlink()


if __name__ == "__main__":
    main()
