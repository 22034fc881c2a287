"""Other papers' numbers beside ours, with a verdict by a rule that is older than the runs.

``docs/explanation/neighbours.md`` has the rule. What others published is in ``mdpu/pipeline/evaluate/neighbours.csv``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.collect import run_accuracies, summarize
from mdpu.pipeline.experiments import rows_kind
from mdpu.pipeline.files import resource
from mdpu.pipeline.plan import CELL, Experiment, Plan

FILE = resource("mdpu/pipeline/evaluate/neighbours.csv")
KEYS = ["dataset", "variant", "law", "method", "loss"]
SETTING = ["dataset", "variant", "tuple_size", "n", "prior", "law"]
POINTS, ERRORS = 3.0, 2.0  # of the rule: points, and standard errors of the difference
AGREES, OPEN = "agrees", "open"
OURS = "bag-relu"  # the best of this library for these laws
CAPTION = """\
Test error in percent, mean ± deviation over trials, of what others published and of the same method here. A number
agrees if they differ by at most three points, or by at most twice the standard error of the difference. Beside stand
bag-relu and training on true labels of the same images.
"""
HEADER = ["Published", "Setting", "Method", "Theirs", "Ours", "Difference", "Twice its error", "Verdict", "Bag ReLU"]
HEADER += ["Supervised"]


def compare(cells: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return a row per published number: ours, the difference, its ``tolerance`` and the verdict, errors in percent.

    `cells` is as `mdpu.pipeline.evaluate.collect.summarize` returns it. Beside ours stand the errors of `OURS` in the
    same cell, and of training on true labels with the same law.
    """
    ours = cells.assign(our_error=100 - cells["mean"], our_std=cells["std"], our_trials=cells["trials"])
    rows = published.merge(ours[[*CELL, "our_error", "our_std", "our_trials"]], on=KEYS, how="inner")
    theirs = np.square(rows["std"].fillna(0)) / rows["trials"]
    error = np.sqrt(theirs + np.square(rows["our_std"].fillna(0)) / rows["our_trials"])
    difference = rows["our_error"] - rows["error"]
    within = difference.abs() <= np.maximum(POINTS, ERRORS * error)
    rows = rows.assign(difference=difference, twice=ERRORS * error, verdict=np.where(within, AGREES, OPEN))
    for method, keys in ((OURS, SETTING), ("supervised", [key for key in SETTING if key != "variant"])):
        beside = ours[ours["method"] == method].drop_duplicates(keys)[[*keys, "our_error", "our_std"]]
        rows = rows.merge(beside, on=keys, how="left", suffixes=("", f"_{method}"))
    return rows


def numbers(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison of an experiment's runs."""
    return compare(summarize(run_accuracies(metrics, plan.protocol.reporting())), pd.read_csv(FILE))


def table_rows(plan: Plan, _experiment: Experiment, rows: pd.DataFrame) -> list[list[str]]:
    """Return a row of strings per published number."""
    shown = []
    for row in rows.to_dict("records"):
        factor = plan.protocol.variant(row["variant"])["training"]["shares_factor"]
        told = "" if factor == 1 else f", shares told times {factor}"
        law = "positives" if row["law"] == "dominant" else str(row["law"]).replace("-", " ")
        shown.append(
            [
                row["paper"],
                f"{law}{told}",
                f"{load_method(row['method']).title}, {row['loss']}",
                _number(row["error"], row["std"]),
                _number(row["our_error"], row["our_std"]),
                f"{row['difference']:+.2f}",
                f"{row['twice']:.2f}",
                row["verdict"],
                *(_number(row[f"our_error_{one}"], row[f"our_std_{one}"]) for one in (OURS, "supervised")),
            ]
        )
    return shown


def _number(mean: float, std: float) -> str:
    """Return a mean with its deviation, or nothing."""
    return "" if np.isnan(mean) else f"{mean:.2f}" + ("" if np.isnan(std) else f" ± {std:.2f}")


KIND = rows_kind(numbers, table_rows, lambda _: CAPTION, lambda _: HEADER, laws=True)
