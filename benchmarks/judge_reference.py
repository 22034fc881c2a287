"""Judge the runs kept under results/reference anew, by the rules as they stand: verdicts, claims and ranks.

    python benchmarks/judge_reference.py

writes comparison.csv of every folder from its runs.csv, and claims.csv and ranks.csv of those whose histories
finished.parquet has. Nothing is trained. A change of a rule, or of the words of a claim, needs this and nothing else
for the numbers of the documents to be those of the rule; tests/evaluate/test_reference.py says which are not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from mdpu.evaluate.claims import check_claims
from mdpu.evaluate.collect import summarize
from mdpu.evaluate.comparison import NOT_RUN, compare
from mdpu.evaluate.evidence import our_evidence, paper_evidence
from mdpu.evaluate.ranks import rank_table, rankings
from mdpu.files import REPOSITORY, read_csv, read_table, write_csv
from mdpu.study.config import check_config, load_config
from mdpu.study.grid import AXES
from mdpu.study.plan import Plan

REFERENCE = REPOSITORY / "results" / "reference"
TABLES = ["table2", "table3", "table4", "table5"]
# What each folder with histories selects from config.yaml, as the commands in results/reference/README.md do.
SELECTED: dict[str, dict[str, Any]] = {
    "tables": {"datasets": ["mnist", "fashion-mnist", "emnist-letters-a-i"], "experiments": TABLES},
    "tables-mnist": {"datasets": ["mnist"]},
    "letters": {"overlay": "config/letters.yaml"},
    "sensitivity": {"overlay": "config/sensitivity.yaml"},
    "sides": {"datasets": ["emnist-letters", "emnist-letters-a-i"], "experiments": ["sensitivity-sides"]},
}
# The kept runs were drawn before their trials were keyed by the cell: one seed drew those of all cells and datasets.
CLUSTERS = ("seed",)
CLAIM_COLUMNS = ["claim", "said_by", "statement", "ours", "in_single_trials", "paper"]


def plan_of(selected: dict[str, Any]) -> Plan:
    """Return the plan of config.yaml with one folder's selection."""
    overlay = [REPOSITORY / name for name in [selected.get("overlay")] if name]
    config = load_config([REPOSITORY / "config.yaml", *overlay])
    config |= {key: value for key, value in selected.items() if key != "overlay"}
    check_config(config)
    return Plan(config)


def judged_claims(folder: str, runs: pd.DataFrame, finished: pd.DataFrame) -> pd.DataFrame:
    """Return the claims of a folder that its runs speak to."""
    keys = list(AXES)
    metrics = runs[keys].merge(finished, on=keys, how="left", validate="one_to_many")
    metrics = metrics.sort_values([*keys, "epoch"], ignore_index=True)
    plan = plan_of(SELECTED[folder])
    evidence = replace(our_evidence(plan, summarize(runs), metrics), clusters=CLUSTERS)
    checked, _ = check_claims(evidence, paper_evidence(plan.config["comparison"]))
    return checked.loc[checked["ours_cases"] > 0, CLAIM_COLUMNS]


def main() -> None:
    """Judge and write every folder."""
    plan = plan_of({})
    finished = read_table(REFERENCE / "finished.parquet")
    for path in sorted(REFERENCE.glob("*/runs.csv")):
        folder, runs = path.parent, read_csv(path)
        found = compare(summarize(runs), plan.published_names, plan.config["comparison"])
        write_csv(found[found["verdict"] != NOT_RUN], folder / "comparison.csv")
        if folder.name in SELECTED:
            write_csv(judged_claims(folder.name, runs, finished), folder / "claims.csv")
        if (folder / "ranks.csv").exists():
            rows = plan_of(SELECTED[folder.name]).table_rows
            ranks = rankings(summarize(runs), rows, 1 - plan.config["comparison"]["level"])
            write_csv(rank_table(ranks), folder / "ranks.csv")
        print(folder.name, found["verdict"].value_counts().drop(NOT_RUN).to_dict())


if __name__ == "__main__":
    main()
