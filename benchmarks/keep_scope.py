"""Keep what the study of the correction's scope on digits gave as the shipped rows.

    ./run paper --configfile config/quick.yaml config/scope.yaml && python benchmarks/keep_scope.py

writes results/reference/scope.csv: of each run, the means over its last ten epochs of accuracy, of the rates of both
classes, and of the tuple part of the risk.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mdpu.pipeline.files import REPOSITORY, read_table, write_csv
from mdpu.pipeline.plan import AXES

REFERENCE, LAST_EPOCHS = REPOSITORY / "results" / "reference", 10


def main() -> None:
    """Read a folder of results, and write what is kept of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=REPOSITORY / "results" / "scope")
    metrics = read_table(parser.parse_args().results / "metrics.parquet")
    last = metrics[metrics["epoch"] > metrics["epoch"].max() - LAST_EPOCHS]
    runs = last.groupby(list(AXES), sort=False).mean(numeric_only=True).reset_index()
    runs["tuple_part"] = runs["risk_tuple_positive"] + runs["risk_tuple_negative"]
    out = REFERENCE / "scope.csv"
    kept = runs[[*AXES, "accuracy", "true_positive_rate", "true_negative_rate", "tuple_part"]]
    write_csv(kept.round(dict.fromkeys(kept.columns[len(AXES) :], 6)), out)
    out.with_name(f".{out.name}.seal").unlink(missing_ok=True)  # these files are checked by git
    print(f"{len(kept)} runs kept")


if __name__ == "__main__":
    main()
