"""Does an installation reproduce the numbers shipped with the repository?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import CELL


def verify(summary: pd.DataFrame, path: Path) -> dict[str, Any]:
    """Compare cell means with expected ones, as far as the cells were run: a selection holds only
    some of them.

    `path` is a CSV file with the cell's key columns, ``mean`` and ``tolerance``, both in percent.
    Numbers are ``confirmed`` if some cells were run and all of these lie within their tolerance.
    Raises `UserError` if the file has no rows, or lacks a column.
    """
    expected = read_csv(path)
    lacking = [name for name in (*CELL, "mean", "tolerance") if name not in expected]
    if lacking or expected.empty:
        raise UserError(f"config key expected: {path} has no {', '.join(lacking) or 'rows'}")

    keys = list(CELL)
    both = expected.merge(summary[[*keys, "mean"]], on=keys, suffixes=("_expected", ""))
    within = (both["mean"] - both["mean_expected"]).abs() <= both["tolerance"]
    outside = both.loc[~within, [*keys, "mean_expected", "mean", "tolerance"]]
    return {
        "expected": str(path),
        "confirmed": bool(len(both) and within.all()),
        "cells": len(both),
        "not_run": len(expected) - len(both),
        "within": int(within.sum()),
        "outside": outside.astype(object).where(outside.notna(), None).to_dict("records"),
    }
