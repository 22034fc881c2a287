"""Does an installation reproduce the numbers shipped with the repository?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.files import read_csv, write_json
from mdpu.pipeline.plan import CELL, Plan


def verify(summary: pd.DataFrame, expected_path: Path) -> dict[str, Any]:
    """Compare cell means with expected ones, as far as the cells were run: a selection holds only some of them.

    `expected_path` is a CSV file with the cell's key columns, ``mean`` and ``tolerance``, both in percent. Numbers are
    ``confirmed`` if some cells were run and all of these lie within their tolerance.
    """
    expected = read_expected(expected_path)
    both = expected.merge(summary[[*CELL, "mean"]], on=list(CELL), suffixes=("_expected", ""))
    difference = (both["mean"] - both["mean_expected"]).abs()
    within = difference <= both["tolerance"]
    outside = both.loc[~within, [*CELL, "mean_expected", "mean", "tolerance"]]
    return {
        "expected": str(expected_path),
        "confirmed": bool(len(both) and within.all()),
        "cells": len(both),
        "not_run": len(expected) - len(both),
        "within": int(within.sum()),
        "largest_difference": None if difference.isna().all() else round(float(difference.max()), 3),
        # JSON has no word for a missing mean but null.
        "outside": outside.astype(object).where(outside.notna(), None).to_dict("records"),
    }


def read_expected(path: Path) -> pd.DataFrame:
    """Return the table of expected numbers; raise `UserError` if it is missing, empty or of another shape."""
    expected = read_csv(path)
    if missing := [column for column in (*CELL, "mean", "tolerance") if column not in expected]:
        raise UserError(f"config key expected: {path} has no column {', '.join(missing)}")
    if expected.empty:
        raise UserError(f"config key expected: {path} holds no cells to compare with")
    return expected


def write_verification(plan: Plan, summary: Path, json: Path) -> None:
    """Compare a plan's summary with the expected numbers of its configuration; write what `verify` returns as JSON."""
    write_json(json, verify(read_csv(summary), Path(plan.config["expected"])))
