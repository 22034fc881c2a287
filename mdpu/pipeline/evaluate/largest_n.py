"""The largest n that sampling without replacement allows, beside the n that is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from mdpu.pipeline.data.pools import DEMANDS, expected_largest_n, probability_of_fit
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import read_json
from mdpu.pipeline.plan import Plan


def training_counts(plan: Plan, labels: Path) -> dict[str, dict[str, int]]:
    """Return the numbers of positive and negative training images of the plan's datasets.

    They are those of the configuration, where it has both, else those of the labels.

    Parameters
    ----------
    plan : Plan
    labels : Path
        Folder of labels; only read for datasets without counts in the configuration.

    Raises
    ------
    UserError
        If the description of a dataset's labels is needed and missing.
    """
    counts = {}
    for dataset in plan.datasets:
        source = read_json(labels / f"{dataset}.json") if dataset in plan.uncounted else plan.dataset(dataset)
        known = source["counts"]["train"]
        counts[dataset] = {side: int(known[side]) for side in ("positive", "negative")}
    return counts


def largest_n_table(plan: Plan, counts: Mapping[str, Mapping[str, int]]) -> pd.DataFrame:
    """Return, per dataset, tuple size and prior of the plan, the largest n without replacement.

    Parameters
    ----------
    plan : Plan
    counts : mapping
        As `training_counts` returns it.

    Returns
    -------
    DataFrame
        dataset, tuple_size, prior, n (each that the paper's tables use there, else each of the plan's
        runs) and published (whether it is the paper's). For each demand of `mdpu.pipeline.data.pools.DEMANDS`,
        with as many unlabeled images as tuples: ``largest_<demand>``, the largest n by expected numbers,
        and ``fit_<demand>``, the probability that one draw at n fits.
    """
    published = published_cells()
    rows = []
    order = {name: position for position, name in enumerate(plan.config["definitions"]["datasets"])}
    used: dict[tuple[int, str, int, float, str], set[int]] = defaultdict(set)
    for run in plan.runs:
        used[order[run.dataset], run.dataset, run.tuple_size, float(run.prior), run.prior].add(run.n)
    for point in sorted(used):
        _, dataset, size, number, prior = point
        published_here = published[
            (published["dataset"] == plan.published_names[dataset])
            & (published["tuple_size"] == size)
            & (published["prior"] == prior)
        ]
        pools = counts[dataset]["positive"], counts[dataset]["negative"], size, number
        largest = {f"largest_{demand}": expected_largest_n(*pools, demand) for demand in DEMANDS}
        for n in sorted(set(published_here["n"]) or used[point]):
            fit = {f"fit_{demand}": probability_of_fit(*pools, int(n), demand) for demand in DEMANDS}
            rows.append(
                {
                    "dataset": dataset,
                    "tuple_size": size,
                    "prior": prior,
                    "n": int(n),
                    "published": bool(len(published_here)),
                    **largest,
                    **fit,
                }
            )
    return pd.DataFrame(rows)
