"""The first screen of the report: one headline, the verdicts by method, and at most five lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.claims import FAILS, HOLDS, INCONCLUSIVE, PARTLY
from mdpu.pipeline.evaluate.comparison import CLOSE, DIFFERS, NOT_RUN, REPRODUCED, VERDICTS
from mdpu.pipeline.evaluate.published import (
    BASELINES,
    IMPLIED,
    OWN_SPLIT,
    PROPOSED,
    family,
    in_one_reading,
    published_cells,
)
from mdpu.pipeline.plan import ROW


class Line(NamedTuple):
    """A sentence, the section of the page that shows it, and what to choose there, by column."""

    text: str
    section: str
    filters: Mapping[str, str] = {}


def were_run(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons of cells that were run (`mdpu.pipeline.evaluate.comparison.compare`)."""
    return comparison[comparison["verdict"] != NOT_RUN]


def in_points(difference: float, digits: int = 1) -> str:
    """Return a difference with its sign; the minus is as wide as the plus."""
    return f"{difference:+.{digits}f}".replace("-", "−")


def titles(methods: Iterable[str]) -> str:
    """Return the titles of some methods, as a list in words."""
    *others, last = [load_method(method).title for method in methods]
    return f"{', '.join(others)} and {last}" if others else last


def headline(
    comparison: pd.DataFrame,
    summary: pd.DataFrame,
    verification: Mapping[str, Any] | None = None,
    titles_by_name: Mapping[str, str] | None = None,
) -> str:
    """Return the result of the comparison with the paper, or, without one, the methods that were run.

    `verification` is what `mdpu.pipeline.evaluate.verify.verify` returns, if numbers are expected; titles are those of
    datasets.
    """
    published = published_cells().query("method in @PROPOSED")
    run = in_one_reading(were_run(comparison)).query("method in @PROPOSED")
    own = run["reading"].str.startswith(OWN_SPLIT)
    if len(run):
        official = _counted(run[~own], published)
        if own.all():
            official = f"{_counted(run, published)}, with our own split into training and test images"
        elif own.any():
            official += f". With our own split into training and test images, {_counted(run[own], published)}"
        implied = run[run["reading"].str.endswith(IMPLIED)]
        named = implied[["published_dataset", "dataset"]].drop_duplicates("published_dataset")
        named = named.replace(titles_by_name or {})
        others = "".join(f" {paper} is read as {ours}." for paper, ours in named.itertuples(index=False))
        return f"Of the paper’s {len(published)} numbers of {titles(PROPOSED)}, {official}.{others}"
    what = titles(dict.fromkeys(summary["method"]))
    if verification and verification["cells"]:
        within = f"{verification['within']} of {verification['cells']} expected numbers confirmed"
        return f"{within}, for {what}. None of them is in the paper."
    return f"{what}, {len(summary)} cells; none of them is in the paper."


def _counted(run: pd.DataFrame, published: pd.DataFrame) -> str:
    """Return how many published numbers were run, on how many datasets, with their verdicts."""
    verdicts = {verdict: (run["verdict"] == verdict).sum() for verdict in VERDICTS}
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in (REPRODUCED, CLOSE, INCONCLUSIVE))
    datasets = f"{run['published_dataset'].nunique()} of {published['dataset'].nunique()} datasets"
    return f"{len(run)} were run, on {datasets}: {counts} and {verdicts[DIFFERS]} that differ"


def verdict_counts(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each method that was run its title, family, number of comparisons, and counts by verdict."""
    run = in_one_reading(were_run(comparison))
    return [
        {
            "method": method,
            "title": load_method(method).title,
            "family": family(method),
            "compared": len(rows),
            "counts": {verdict: int((rows["verdict"] == verdict).sum()) for verdict in VERDICTS if verdict != NOT_RUN},
        }
        for method in (*PROPOSED, *BASELINES)
        if len(rows := run[run["method"] == method])
    ]


def lines(
    comparison: pd.DataFrame, claims: Sequence[Mapping[str, Any]], cells: pd.DataFrame, beyond: str | None = None
) -> list[Line]:
    """Return the main findings, which stand below the headline.

    `cells` are those of the tables; `beyond` is the section of the methods beyond the paper.
    """
    run = in_one_reading(were_run(comparison))
    said = []
    for group, methods in (("paper", PROPOSED), ("baseline", BASELINES)):
        rows = run[run["method"].isin(methods)]
        if len(rows):
            means = rows.groupby("method", sort=False)["difference"].mean().dropna()
            each = ", ".join(f"{load_method(str(name)).title} {in_points(mean)}" for name, mean in means.items())
            text = f"Ours minus the paper’s, in points on average: {each}; {(rows['verdict'] == DIFFERS).sum()} differ."
            said.append(Line(text, "comparisons", {"family": group}))
    statuses = [row["status"] for row in claims]
    hold, partly, fail, open_ = (statuses.count(status) for status in (HOLDS, PARTLY, FAILS, INCONCLUSIVE))
    if hold or partly or fail or open_:
        counts = f"Hold: {hold}; hold partly: {partly}; fail: {fail}; inconclusive: {open_}"
        said.append(Line(f"The paper’s claims that these runs can check. {counts}.", "claims"))
    if beyond and (gain := _best_beyond(cells)):
        said.append(Line(gain, beyond))
    if beyond and run.empty:
        means = cells.groupby("method")["mean"].mean().sort_values(ascending=False)
        each = ", ".join(f"{load_method(str(name)).title} {mean:.1f} %" for name, mean in means.items())
        said.append(Line(f"Mean accuracy over the tables: {each}.", beyond))
    return said


def _best_beyond(cells: pd.DataFrame) -> str:
    """Return in how many rows the best method beyond the paper is above all of the paper's, and by how much.

    Only methods that were run in the most rows compete.
    """
    means = cells.pivot_table(index=list(ROW), columns="method", values="mean", aggfunc="first")
    best = means[[method for method in PROPOSED if method in means]].max(axis=1)
    gains = {method: (means[method] - best).dropna() for method in means if family(str(method)) == "beyond"}
    most = max(map(len, gains.values()), default=0)
    if not most:
        return ""
    method, gain = max(((m, g) for m, g in gains.items() if len(g) == most), key=lambda pair: pair[1].mean())
    return (
        f"{load_method(str(method)).title} is above the best of {titles(PROPOSED)}, as trained here, in "
        f"{(gain > 0).sum()} of {most} rows, {in_points(gain.mean())} points on average."
    )
