"""Keep what `./run reference` gave as the shipped numbers, and write anew what follows from them.

    ./run reference && python benchmarks/keep_reference.py

writes results/reference: every run's accuracy and last risk, the runs themselves, the tables, the figures and the page.
Then benchmarks/judge_reference.py gives verdicts and claims, and docs/tables.py the tables of the documents.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import judge_reference

from mdpu.pipeline.cache import RunStore
from mdpu.pipeline.files import REPOSITORY, read_csv, write_csv
from mdpu.pipeline.plan import AXES

REFERENCE = REPOSITORY / "results" / "reference"
# Folders of the results, and the files of each that are kept.
KEPT = {"tables": "*.csv", "sensitivity": "*.csv", "figures": "*.svg"}


def main() -> None:
    """Read a folder of results, and write what is kept of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=REPOSITORY / "results" / "paper-reference")
    results = parser.parse_args().results
    runs = read_csv(results / "runs.csv")[[*AXES, "accuracy", "first_epoch", "last_epoch", "risk"]]
    write_csv(runs.round({"accuracy": 4, "risk": 6}), REFERENCE / "runs.csv")
    for name in ("report.html", "ranks.csv"):
        shutil.copy(results / name, REFERENCE)
    for folder, pattern in KEPT.items():
        shutil.rmtree(REFERENCE / folder, ignore_errors=True)
        (REFERENCE / folder).mkdir()
        for path in sorted((results / folder).glob(pattern)):
            shutil.copy(path, REFERENCE / folder)
    packed = RunStore(results / "runs").pack(REFERENCE / "finished.parquet")
    print(f"{len(runs)} runs kept, {packed} packed")
    judge_reference.main()
    for seal in REFERENCE.rglob(".*.seal"):  # these files are checked by git
        seal.unlink()


if __name__ == "__main__":
    main()
