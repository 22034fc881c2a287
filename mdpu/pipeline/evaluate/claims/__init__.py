"""Claims, each a statement that a program checks case by case, in a file by who makes them: ``paper`` and ``bags``.

A claim is an entry of a table: its check, most often one of the comparisons of ``claim``, turns evidence into cases.
Evidence is either our runs or the paper's own 504 numbers, which have neither histories nor other losses: a claim that
evidence cannot speak to has no cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import yaml

from mdpu.pipeline.evaluate.claims import bags, paper
from mdpu.pipeline.evaluate.claims.claim import CASE, Claim
from mdpu.pipeline.evaluate.evidence import MEASURES, WINDOW, Evidence, our_evidence, paper_evidence
from mdpu.pipeline.evaluate.shares import share_interval
from mdpu.pipeline.files import read_csv, read_table, resource, write_csv, write_json
from mdpu.pipeline.plan import AXES, Plan


def _claims() -> dict[str, Claim]:
    """Return the claims by name, each with its check."""
    checks = {**bags.CHECKS, **paper.CHECKS}
    numbers = {"window": WINDOW, **bags.NUMBERS}
    texts = yaml.safe_load(resource("mdpu/pipeline/evaluate/claims/claims.yaml").read_text(encoding="utf-8"))
    claims = {}
    for text in texts:
        statement = text.pop("statement").format(**numbers)
        claims[text["name"]] = Claim(statement=statement, check=checks[text["name"]], **text)
    return claims


CLAIMS = _claims()

SAID = ("said_by", "place", "quote", "statement", "sides")  # of a claim
# What stands instead of counts: of our runs, of the paper's numbers, and of single trials.
NO_RUNS, NO_NUMBERS, NOT_TESTED = "not run", "not in its numbers", "counted, not tested"
# How a claim fares on our runs.
STATUSES = ("holds", "partly", "fails", "inconclusive", "not run")
HOLDS, PARTLY, FAILS, INCONCLUSIVE, NOT_RUN = STATUSES
MOST, FEW = 0.9, 0.1  # shares of the cases from which, and up to which, a claim holds and fails


def check_claims(ours: Evidence, paper: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Check every claim on our runs and on the paper's numbers; return a row per claim, and one per case.

    Of a claim, ``ours`` and ``paper`` are the pass rates in words (``5 of 6``, ``not run``), beside the numbers that
    they are made of; ``by_chance`` is the pass rate that noise alone would give, where that can be told; then comes
    what `_in_single_trials` returns, of ours; ``effect``, the median of left minus right over our cases; and the
    ``status`` on our runs. A case has the key columns that apply, ``left``, ``right``, and whether the statement
    ``holds``.
    """
    rows, all_cases = [], []
    for item in CLAIMS.values():
        row: dict[str, Any] = {"claim": item.name, **{key: getattr(item, key) for key in SAID}}
        row["by_chance"] = item.by_chance(ours.rule)
        for source, evidence, nothing in (("ours", ours, NO_RUNS), ("paper", paper, NO_NUMBERS)):
            cases = item.check(evidence)
            count, hold = len(cases), int(cases["holds"].sum())
            row |= {
                f"{source}_cases": count,
                f"{source}_hold": hold,
                f"{source}_rate": hold / count if count else None,
                source: f"{hold} of {count}" if count else nothing,
            }
            if count:
                all_cases.append(cases.assign(claim=item.name, evidence=source))
            if source == "ours":
                gap = (cases["left"].astype(float) - cases["right"].astype(float)).median()
                row["effect"] = None if pd.isna(gap) else float(gap)
        row |= _in_single_trials(item, ours)
        rows.append(row | {"status": status(row)})
    columns = ["claim", "evidence", *CASE]
    cases = pd.concat(all_cases, ignore_index=True) if all_cases else pd.DataFrame(columns=columns)
    integers = dict.fromkeys(("tuple_size", "n", "seed"), "Int64")
    return pd.DataFrame(rows), cases[columns].astype(integers)


def status(row: Mapping[str, Any]) -> str:
    """Return in a word how a claim fares on our runs.

    *not run* without a case. *inconclusive*: the interval of the share in single trials holds the rate that noise alone
    would give. *fails*: the claim holds in at most `FEW` of the cases, or that interval lies below the rate of noise.
    *holds*: in at least `MOST` of the cases. *partly*: the rest.
    """
    rate, chance, low, high = (row[key] for key in ("ours_rate", "by_chance", "trial_low", "trial_high"))
    if rate is None:
        return NOT_RUN
    tested = chance is not None and low is not None
    if tested and low <= chance <= high:
        return INCONCLUSIVE
    if rate <= FEW or (tested and high < chance):
        return FAILS
    return HOLDS if rate >= MOST else PARTLY


def _in_single_trials(item: Claim, evidence: Evidence) -> dict[str, Any]:
    """Return how often a claim holds in one trial, with an interval that respects what the trials share.

    Cells share images and, where one is in several cases, trials. So the claim is checked on each seed alone, and the
    interval is by clusters of cases: splits, weights and order are seeded by the cell and the seed, so trials of two
    datasets or of two seeds are independent. Numbers are missing where fewer than two seeds have cases.
    """
    checked = [item.check(trial).assign(seed=seed) for seed, trial in evidence.single_trials.items()]
    cases_by_seed = [cases for cases in checked if len(cases)]
    row: dict[str, Any] = dict.fromkeys(("trial_rate", "trial_low", "trial_high")) | {"trials": len(cases_by_seed)}
    if len(cases_by_seed) < 2:
        return row | {"in_single_trials": NOT_TESTED}
    cases = pd.concat(cases_by_seed)
    clusters = cases.groupby(["dataset", "seed"], dropna=False)["holds"].agg(["sum", "size"])
    rate = cases["holds"].mean()
    low, high = share_interval(clusters["sum"], clusters["size"], evidence.rule["level"])
    words = f"{100 * rate:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    return row | {"trial_rate": rate, "trial_low": low, "trial_high": high, "in_single_trials": words}


def write_claims(plan: Plan) -> None:
    """Check the claims on a plan's runs and on the paper's numbers; write them (CSV, JSON) and every case (CSV)."""
    layout = plan.layout
    ours = our_evidence(plan, read_csv(layout.summary), read_table(layout.metrics, [*AXES, *MEASURES]))
    checked, cases = check_claims(ours, paper_evidence(plan.config["comparison"]))
    write_csv(checked, layout.results / "claims.csv")
    write_csv(cases, layout.results / "claims_cases.csv")
    rows = checked.astype(object).where(checked.notna(), None).to_dict("records")
    write_json(layout.results / "claims.json", {"claims": rows})
