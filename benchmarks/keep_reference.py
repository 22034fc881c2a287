r"""Keep what a workflow gave under results/reference: its rows, verdicts and claims, without what was not run.

    python benchmarks/keep_reference.py results/paper results/reference \
        figures/figure4.svg sensitivity/sensitivity.csv

writes runs.csv (accuracy and last risk of every run), comparison.csv and claims.csv, and copies the other files named.
`python -m mdpu pack` keeps the runs themselves.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from mdpu.files import read_csv, write_csv
from mdpu.study.grid import AXES

CLAIM_COLUMNS = ["claim", "said_by", "statement", "ours", "in_single_trials", "paper"]


def main() -> None:
    """Read a folder of results, trim and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="results/<name>, finished")
    parser.add_argument("reference", type=Path, help="folder to write to")
    parser.add_argument("files", nargs="*", help="other files of the results to copy")
    arguments = parser.parse_args()

    runs = read_csv(arguments.results / "runs.csv")[[*AXES, "accuracy", "first_epoch", "last_epoch", "risk"]]
    comparison = read_csv(arguments.results / "comparison.csv")
    claims = read_csv(arguments.results / "claims.csv")
    kept = {
        "runs": runs.round({"accuracy": 4, "risk": 6}),
        "comparison": comparison[comparison["verdict"] != "not run"],
        "claims": claims.loc[claims["ours_cases"] > 0, CLAIM_COLUMNS],
    }
    for name, table in kept.items():
        write_csv(table, arguments.reference / f"{name}.csv")
        print(f"{arguments.reference / name}.csv: {len(table)} rows")
    for name in arguments.files:
        shutil.copy(arguments.results / name, arguments.reference)


if __name__ == "__main__":
    main()
