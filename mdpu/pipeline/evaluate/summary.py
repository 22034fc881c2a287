"""The first screen of the report: one headline, the verdicts by method, and at most five lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from mdpu.methods import load_method
from mdpu.pipeline.evaluate.claims import FAILS, HOLDS, INCONCLUSIVE, PARTLY
from mdpu.pipeline.evaluate.collect import number_of_trials
from mdpu.pipeline.evaluate.comparison import (
    CLOSE,
    DIFFERS,
    JUDGED,
    NOT_RUN,
    REPRODUCED,
    count_verdicts,
)
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
    """Return the comparisons of cells that were run
    (`mdpu.pipeline.evaluate.comparison.compare`).
    """
    return comparison[comparison["verdict"] != NOT_RUN]


def in_points(difference: float, digits: int = 1) -> str:
    """Return a difference with its sign; the minus is as wide as the plus."""
    return f"{difference:+.{digits}f}".replace("-", "−")


def titles(methods: Iterable[str]) -> str:
    """Return the titles of some methods, as a list in words."""
    return in_words([load_method(method).title for method in methods])


def in_words(names: Sequence[str]) -> str:
    """Return names as a list in words."""
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def headline(
    comparison: pd.DataFrame, summary: pd.DataFrame, verification: Mapping[str, Any] | None = None
) -> str:
    """Return the result of the comparison with the paper, or, without one, the methods that were
    run.

    `verification` is what `mdpu.pipeline.evaluate.verify.verify` returns, if numbers are expected.
    """
    run = counted(comparison).query("method in @PROPOSED")
    if len(run):
        numbers = f"the {len(run)} numbers of the paper that were run"
        if run["reading"].str.startswith(OWN_SPLIT).all():
            numbers += " in a split of our own"
        return f"Of {numbers}, {_in_verdicts(run)}."
    what = titles(dict.fromkeys(summary["method"]))
    if verification and verification["cells"]:
        within = f"{verification['within']} of {verification['cells']} expected numbers confirmed"
        return f"{within}, for {what}. None of them is in the paper."
    return f"{what}, {len(summary)} cells; none of them is in the paper."


def scope(comparison: pd.DataFrame, titles_by_name: Mapping[str, str]) -> str:
    """Return which numbers of the paper the headline counts; nothing if none was run."""
    run = counted(comparison).query("method in @PROPOSED")
    if run.empty:
        return ""

    published = published_cells().query("method in @PROPOSED")
    datasets = f"{run['published_dataset'].nunique()} of {published['dataset'].nunique()}"
    of_paper = f"The paper has {len(published)} numbers of {titles(PROPOSED)}"
    of_ours = f"These, in {number_of_trials(run['trials'])} each, are on {datasets} datasets"
    return f"{of_paper}. {of_ours}: {_read_as(run, titles_by_name)}."


def scope_apart(comparison: pd.DataFrame, titles_by_name: Mapping[str, str]) -> str:
    """Return how the numbers came out that were run in a split of our own; nothing if the headline
    counts them.
    """
    official, apart = _by_split(comparison)
    apart = apart.query("method in @PROPOSED")
    if apart.empty or official.empty:
        return ""
    datasets = _read_as(apart, titles_by_name)
    split = "in our own split into training and test images, and counted apart"
    return f"Of {datasets}, {len(apart)} numbers were run {split}: {_in_verdicts(apart)}."


def counted(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons that were run and count: of images in the paper's split, each number
    in one reading; those in a split of our own if there are no others.
    """
    official, apart = _by_split(comparison)
    return official if len(official) else apart


def _by_split(comparison: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the comparisons that were run, each number in one reading: of images in the paper's
    split, and in our own.
    """
    run = in_one_reading(were_run(comparison))
    is_apart = run["reading"].str.startswith(OWN_SPLIT)
    return run[~is_apart], run[is_apart]


def _in_verdicts(run: pd.DataFrame) -> str:
    """Return how many numbers have each verdict, as a part of a sentence."""
    counts = count_verdicts(run["verdict"], JUDGED)
    unsure = f"{counts[CLOSE]} close, {counts[INCONCLUSIVE]} inconclusive"
    return f"{counts[REPRODUCED]} are reproduced, {unsure}, and {counts[DIFFERS]} differ"


def _read_as(run: pd.DataFrame, titles_by_name: Mapping[str, str]) -> str:
    """Return the paper's datasets as a list in words, each with ours if its numbers imply
    another.
    """
    words = []
    for paper, rows in run.groupby("published_dataset", sort=False):
        title = titles_by_name.get(str(paper), str(paper))
        implied = rows.loc[rows["reading"].str.endswith(IMPLIED), "dataset"]
        if len(implied):
            title += f" (read as {titles_by_name.get(implied.iloc[0], implied.iloc[0])})"
        words.append(title)
    return in_words(words)


def verdict_counts(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each method that was run its title, family, number of comparisons, and counts by
    verdict.
    """
    run = counted(comparison)
    rows = []
    for method in (*PROPOSED, *BASELINES):
        of_method = run[run["method"] == method]
        if of_method.empty:
            continue
        rows.append(
            {
                "method": method,
                "title": load_method(method).title,
                "family": family(method),
                "compared": len(of_method),
                "counts": count_verdicts(of_method["verdict"], JUDGED),
            }
        )
    return rows


def lines(
    comparison: pd.DataFrame,
    claims: Sequence[Mapping[str, Any]],
    cells: pd.DataFrame,
    beyond: str | None = None,
) -> list[Line]:
    """Return the main findings, which stand below the headline.

    `cells` are those of the tables; `beyond` is the section of the methods beyond the paper.
    """
    run = counted(comparison)
    sentences = [
        Line(_differences(run, PROPOSED), "comparisons", {"family": "paper"}),
        Line(_differences(run, BASELINES), "comparisons", {"family": "baseline"}),
        Line(_statuses(claims), "claims"),
    ]
    if beyond:
        sentences.append(Line(_best_beyond(cells), beyond))
    if beyond and run.empty:
        sentences.append(Line(_mean_accuracies(cells), beyond))
    return [line for line in sentences if line.text]


def _differences(run: pd.DataFrame, methods: Collection[str]) -> str:
    """Return how far some methods are from the paper on average; nothing if they were not run."""
    rows = run[run["method"].isin(methods)]
    if rows.empty:
        return ""
    means = rows.groupby("method", sort=False)["difference"].mean().dropna()
    each = [f"{load_method(str(name)).title} {in_points(mean)}" for name, mean in means.items()]
    differ = (rows["verdict"] == DIFFERS).sum()
    return f"Ours minus the paper’s, in points on average: {', '.join(each)}; {differ} differ."


def _statuses(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return how many claims have each status; nothing if these runs can check none."""
    statuses = [row["status"] for row in claims]
    hold, partly, fail, open_ = map(statuses.count, (HOLDS, PARTLY, FAILS, INCONCLUSIVE))
    if not (hold or partly or fail or open_):
        return ""
    counts = f"Hold: {hold}; hold partly: {partly}; fail: {fail}; inconclusive: {open_}"
    return f"The paper’s claims that these runs can check. {counts}."


def _mean_accuracies(cells: pd.DataFrame) -> str:
    """Return the mean accuracy of each method over the tables."""
    means = cells.groupby("method")["mean"].mean().sort_values(ascending=False)
    each = [f"{load_method(str(name)).title} {mean:.1f} %" for name, mean in means.items()]
    return f"Mean accuracy over the tables: {', '.join(each)}."


def _best_beyond(cells: pd.DataFrame) -> str:
    """Return in how many rows the best method beyond the paper is above all of the paper's, and by
    how much.

    Only methods that were run in the most rows compete.
    """
    means = cells.pivot_table(index=list(ROW), columns="method", values="mean", aggfunc="first")
    best = means[[method for method in PROPOSED if method in means]].max(axis=1)
    gains = {}
    for method in means:
        if family(str(method)) == "beyond":
            gains[method] = (means[method] - best).dropna()
    most = max(map(len, gains.values()), default=0)
    if not most:
        return ""

    average = {method: gain.mean() for method, gain in gains.items() if len(gain) == most}
    method = max(average, key=lambda method: average[method])
    above = (gains[method] > 0).sum()
    return (
        f"{load_method(str(method)).title} is above the best of {titles(PROPOSED)}, as trained "
        f"here, in {above} of {most} rows, {in_points(average[method])} points on average."
    )
