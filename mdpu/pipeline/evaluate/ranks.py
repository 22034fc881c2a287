"""Average ranks of the methods, Friedman's test, and Nemenyi's post-hoc test (Demsar, 2006)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from mdpu.pipeline.evaluate.evidence import table_cells
from mdpu.pipeline.evaluate.published import METHODS, published_summary
from mdpu.pipeline.files import read_csv, write_csv, write_json
from mdpu.pipeline.plan import ROW, Plan

UNITS = ("row", "dataset")


@dataclass(frozen=True)
class Ranking:
    """Ranks of methods over complete blocks: averages, best first, Friedman's test, and Nemenyi's p-value of each pair.

    `critical_difference` is the smallest of two averages that Nemenyi's test finds significant at `alpha`.
    """

    blocks: int
    average_ranks: pd.Series
    friedman_statistic: float
    friedman_p_value: float
    critical_difference: float
    alpha: float
    nemenyi_p_values: pd.DataFrame

    def groups(self) -> list[list[str]]:
        """Return the largest groups of methods that Nemenyi's test does not tell apart, in the order of their ranks."""
        names, values = list(self.average_ranks.index), self.average_ranks.to_numpy()
        groups, reached = [], 0
        for start, end in enumerate(np.searchsorted(values, values + self.critical_difference, side="right")):
            if end > max(reached, start + 1):
                groups.append(names[start:end])
            reached = max(reached, end)
        return groups

    def facts(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        ranks, p_values = self.average_ranks.to_dict(), self.nemenyi_p_values.to_dict()
        return vars(self) | {"average_ranks": ranks, "nemenyi_p_values": p_values}


Rankings = Mapping[tuple[str, str], Ranking | None]  # by source and unit


def rank(accuracies: pd.DataFrame, alpha: float) -> Ranking | None:
    """Rank methods (columns) within complete blocks (rows); None where fewer than three or two are left."""
    complete = accuracies.dropna()
    blocks, methods = complete.shape
    if methods < 3 or blocks < 2:
        return None
    average = complete.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    friedman = stats.friedmanchisquare(*(complete[method] for method in complete))
    error = rank_error(methods, blocks)
    apart = np.abs(np.subtract.outer(average.to_numpy(), average.to_numpy())) / error
    p_values = stats.studentized_range.sf(apart * math.sqrt(2), methods, np.inf)
    return Ranking(
        blocks,
        average,
        float(friedman.statistic),
        float(friedman.pvalue),
        nemenyi_quantile(alpha, methods) * error,
        alpha,
        pd.DataFrame(p_values, index=average.index, columns=average.index),
    )


def nemenyi_quantile(alpha: float, methods: int) -> float:
    """Return q_alpha of Nemenyi's test (Demsar, Table 5a): a quantile of the studentized range, by the root of 2."""
    return float(stats.studentized_range.ppf(1 - alpha, methods, np.inf)) / math.sqrt(2)


def rank_error(methods: int, blocks: int) -> float:
    """Return the standard error of the difference of two average ranks where all methods are alike."""
    return math.sqrt(methods * (methods + 1) / (6 * blocks))


def accuracy_blocks(cells: pd.DataFrame, unit: str) -> pd.DataFrame:
    """Return one row per block and one column per method of the paper's, missing where it was not run or diverged.

    A block is a row of the paper's tables (dataset, tuple size, n and prior), or a dataset, over whose rows the
    methods' means are then averaged. Rows that some method lacks do not enter a dataset's average.
    """
    wide = cells[cells["method"].isin(METHODS)].pivot(index=list(ROW), columns="method", values="mean")
    wide = wide[[method for method in METHODS if method in wide.columns]]
    return wide if unit == "row" else wide.dropna().groupby("dataset").mean()


def rankings(summary: pd.DataFrame, rows: Collection[tuple[str, int, int, str]], alpha: float) -> Rankings:
    """Return the ranking of each source (``ours``, ``paper``) and unit (``row``, ``dataset``), None if not run."""
    return {
        (source, unit): rank(accuracy_blocks(cells, unit), alpha)
        for source, cells in (("ours", table_cells(summary, rows)), ("paper", published_summary()))
        for unit in UNITS
    }


def rank_table(ranked: Rankings) -> pd.DataFrame:
    """Return one row per source, unit and method: source, unit, blocks, method, average_rank."""
    rows = [
        (*key, ranking.blocks, method, average)
        for key, ranking in ranked.items()
        if ranking is not None
        for method, average in ranking.average_ranks.items()
    ]
    return pd.DataFrame(rows, columns=["source", "unit", "blocks", "method", "average_rank"])


def write_ranks(plan: Plan) -> Rankings:
    """Rank the methods of a plan and of the paper, write ranks (CSV) and tests (.json), and return them."""
    ranked = rankings(read_csv(plan.layout.summary), plan.table_rows, 1 - plan.config["comparison"]["level"])
    write_csv(rank_table(ranked), plan.layout.results / "ranks.csv")
    facts = {f"{source}, by {unit}": ranking and ranking.facts() for (source, unit), ranking in ranked.items()}
    write_json(plan.layout.results / "ranks.json", {"rankings": facts})
    return ranked
