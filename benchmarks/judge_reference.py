"""Judge the runs kept under results/reference anew, by the rules as they stand: verdicts, claims and ranks.

    python benchmarks/judge_reference.py

writes comparison.csv, claims.csv and, of the second edition, ranks.csv, from runs.csv and finished.parquet.
Nothing is trained. A change of a rule, or of the words of a claim, needs this and nothing else for the numbers of the
documents to be those of the rule; tests/pipeline/evaluate/test_reference.py says which are not.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.pipeline.config import check_config, load_config
from mdpu.pipeline.evaluate.claims import check_claims
from mdpu.pipeline.evaluate.collect import summarize
from mdpu.pipeline.evaluate.comparison import NOT_RUN, compare
from mdpu.pipeline.evaluate.evidence import our_evidence, paper_evidence
from mdpu.pipeline.evaluate.ranks import rank_table, rankings
from mdpu.pipeline.files import REPOSITORY, read_csv, read_table, write_csv
from mdpu.pipeline.plan import AXES, Plan

REFERENCE = REPOSITORY / "results" / "reference"
FIRST = REFERENCE / "first"
TABLES = ["table2", "table3", "table4", "table5"]
# What each folder selects from config.yaml, as the commands in results/reference/README.md do.
SELECTED: dict[Path, dict[str, Any]] = {
    REFERENCE: {"overlay": "config/reference.yaml"},
    FIRST: {"datasets": ["mnist", "fashion-mnist", "emnist-letters-a-i"], "experiments": TABLES},
}
# The runs of the first edition were drawn before trials were keyed by the cell: one seed drew those of all cells and
# datasets.
CLUSTERS_OF_FIRST = ("seed",)
CLAIM_COLUMNS = ["claim", "said_by", "statement", "ours", "in_single_trials", "status", "paper"]


def plan_of(selected: dict[str, Any]) -> Plan:
    """Return the plan of config.yaml with one folder's selection."""
    overlay = [REPOSITORY / name for name in [selected.get("overlay")] if name]
    config = load_config([REPOSITORY / "config.yaml", *overlay])
    config |= {key: value for key, value in selected.items() if key != "overlay"}
    check_config(config)
    return Plan(config)


def judged_claims(folder: Path) -> pd.DataFrame:
    """Return the claims of a folder that its runs speak to."""
    keys, runs = list(AXES), read_csv(folder / "runs.csv")
    metrics = runs[keys].merge(read_table(folder / "finished.parquet"), on=keys, how="left", validate="one_to_many")
    metrics = metrics.sort_values([*keys, "epoch"], ignore_index=True)
    plan = plan_of(SELECTED[folder])
    evidence = our_evidence(plan, summarize(runs), metrics)
    if folder == FIRST:
        evidence = replace(evidence, clusters=CLUSTERS_OF_FIRST)
    checked, _ = check_claims(evidence, paper_evidence(plan.config["comparison"]))
    return checked.loc[checked["ours_cases"] > 0, CLAIM_COLUMNS]


def main() -> None:
    """Judge and write both folders."""
    for folder, selected in SELECTED.items():
        plan, summary = plan_of(selected), summarize(read_csv(folder / "runs.csv"))
        rule = plan.config["comparison"]
        found = compare(summary, plan.published_names, rule)
        write_csv(found[found["verdict"] != NOT_RUN], folder / "comparison.csv")
        write_csv(judged_claims(folder), folder / "claims.csv")
        if folder == REFERENCE:
            write_csv(rank_table(rankings(summary, plan.table_rows, 1 - rule["level"])), folder / "ranks.csv")
        print(folder.relative_to(REPOSITORY), found["verdict"].value_counts().drop(NOT_RUN).to_dict())


if __name__ == "__main__":
    main()
