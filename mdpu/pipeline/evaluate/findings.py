"""What came out, in a few generated sentences: the first screen of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.claims import FAILS, HOLDS, INCONCLUSIVE, PARTLY, STATUSES
from mdpu.pipeline.evaluate.claims import NOT_RUN as NOT_CHECKED
from mdpu.pipeline.evaluate.comparison import DIFFERS, NOT_RUN, REPRODUCED, VERDICTS
from mdpu.pipeline.evaluate.published import BASELINES, PROPOSED, family, in_one_reading, published_summary
from mdpu.pipeline.grid import CELL, ROW

MOST_FINDINGS = 5
_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Finding:
    """A sentence, and where its evidence is.

    Attributes
    ----------
    text : str
    section : str
        Section of the report with the evidence.
    filters : mapping
        What to choose among the comparisons, by column, if that is the section.
    """

    text: str
    section: str
    filters: Mapping[str, str] = field(default_factory=dict)


def were_run(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return the comparisons of cells that were run (`mdpu.pipeline.evaluate.comparison.compare`)."""
    return comparison[comparison["verdict"] != NOT_RUN]


def in_words(count: int) -> str:
    """Return a number as a word up to ten, and in digits beyond."""
    return _WORDS[count] if count < len(_WORDS) else str(count)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def in_points(difference: float, digits: int = 1) -> str:
    """Return a difference with its sign; the minus is as wide as the plus."""
    return f"{difference:+.{digits}f}".replace("-", "−")


def _titles(methods: Iterable[str]) -> str:
    return _listed([load_method(method).title for method in methods])


def _there(methods: Sequence[str], rows: pd.DataFrame) -> list[str]:
    """Return those of `methods` that have rows."""
    return [method for method in methods if method in set(rows["method"])]


def _unlike(run: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return the methods more than half of whose numbers differ."""
    differs = (run["verdict"] == DIFFERS).groupby(run["method"]).mean()
    return [method for method in _there(methods, run) if differs[method] > 1 / 2]


def headline(comparison: pd.DataFrame, titles: Mapping[str, str]) -> str:
    """Return the answer in one sentence, or nothing if no published number was run.

    Parameters
    ----------
    comparison : DataFrame
        As `mdpu.pipeline.evaluate.comparison.compare` returns it.
    titles : mapping
        Of our datasets to what readers call them.

    Returns
    -------
    str
        How many numbers of the proposed methods agree or cannot be told apart, and how many baselines do: those of
        which at most half of the numbers differ. Each published number counts once, as `in_one_reading` says.
        Another sentence tells of the reading that does not count, if a dataset was run in two.
    """
    run = in_one_reading(were_run(comparison))
    if run.empty:
        return ""
    proposed = run[run["method"].isin(PROPOSED)]
    baselines = _there(BASELINES, run)
    unlike = _unlike(run, baselines)
    parts = []
    if len(proposed):
        parts.append(
            f"{_alike(proposed)} of the {len(proposed)} numbers of the proposed methods agree with the paper or cannot "
            "be told apart from it"
        )
    if baselines:
        parts.append(_baselines_do(unlike, baselines))
    sentence = "; ".join(parts) + "."
    others = were_run(comparison).drop(run.index)
    others = others[others["method"].isin(PROPOSED)]
    readings = [
        f" {titles[str(dataset)]} is read here as its numbers imply; read as the paper states it, {_alike(rows)} of "
        f"{len(rows)} do."
        for dataset, rows in others.groupby("dataset", sort=False)
    ]
    return sentence[0].upper() + sentence[1:] + "".join(readings)


def _alike(run: pd.DataFrame) -> int:
    """Return how many of some comparisons do not differ."""
    return int((run["verdict"] != DIFFERS).sum())


def opening(
    comparison: pd.DataFrame,
    summary: pd.DataFrame,
    titles: Mapping[str, str],
    published_names: Mapping[str, str],
    verification: Mapping[str, Any] | None = None,
) -> str:
    """Return the first sentence of the report: what the runs show of the paper, or else what they show by themselves.

    Parameters
    ----------
    comparison, summary : DataFrame
        As `mdpu.pipeline.evaluate.comparison.compare` and `mdpu.pipeline.evaluate.collect.summarize` return them.
    titles, published_names : mapping
        Of our datasets to what readers call them, and to the published row that each is compared with.
    verification : mapping, optional
        As `mdpu.pipeline.evaluate.verify.verify` returns it, if numbers are expected.

    Returns
    -------
    str
        `headline`, if published numbers were run. Otherwise how many expected numbers are confirmed, if any was run; or
        how far the best method beyond the paper is above the best published number of each row; or at least what was
        run.
    """
    if said := headline(comparison, titles):
        return said
    datasets = _listed([titles[name] for name in dict.fromkeys(summary["dataset"])])
    what = f"{_titles(_in_order(summary))} on {datasets}, {_trials(summary)} each"
    if verification is not None and verification["cells"]:
        largest = verification["largest_difference"]
        differ = "" if largest is None else f", differ from them by at most {largest:.2f} points"
        cells = f"{verification['within']} of {verification['cells']} cells"
        return f"The expected numbers are confirmed in {cells}: {what}{differ}."
    if gains := _gains_on_published(summary, published_names):
        return _gain_sentence(gains, "the best of the paper’s numbers", "it")
    return f"{what}: {len(summary)} cell{'' if len(summary) == 1 else 's'} without a number in the paper."


def _in_order(cells: pd.DataFrame) -> list[str]:
    """Return the methods of cells: those of the paper in its order, then the others in theirs."""
    return list(dict.fromkeys([*_there((*PROPOSED, *BASELINES), cells), *cells["method"]]))


def _trials(cells: pd.DataFrame) -> str:
    fewest, most = int(cells["trials"].min()), int(cells["trials"].max())
    number = in_words(most) if fewest == most else f"{in_words(fewest)} to {in_words(most)}"
    return f"{number} trial{'' if most == 1 else 's'}"


def _gains_on_published(cells: pd.DataFrame, published_names: Mapping[str, str]) -> dict[str, pd.Series]:
    """Return, by method beyond the paper, its means minus the highest published one of the same row."""
    row = [axis for axis in CELL if axis != "method"]
    best = published_summary().groupby(row)["mean"].max().rename("best")
    beyond = cells[cells["method"].map(family) == "beyond"]
    both = beyond.assign(dataset=beyond["dataset"].map(published_names)).join(best, on=row)
    both = both.dropna(subset=["mean", "best"])
    return {str(method): rows["mean"] - rows["best"] for method, rows in both.groupby("method")}


def _baselines_do(unlike: Sequence[str], baselines: Sequence[str]) -> str:
    """Return whether the baselines agree too, as the end of a sentence."""
    if not unlike:
        return f"so do most numbers of {_titles(baselines)}"
    if len(unlike) == len(baselines):
        return f"{_titles(baselines)} {'does' if len(baselines) == 1 else 'do'} not"
    return f"{in_words(len(unlike))} of {in_words(len(baselines))} baselines {'does' if len(unlike) == 1 else 'do'} not"


def bars(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the verdicts of each method that was run: its title, family, number of comparisons, and counts."""
    run = in_one_reading(were_run(comparison))
    return [
        {
            "method": method,
            "title": load_method(method).title,
            "family": family(method),
            "compared": len(rows),
            "counts": {verdict: int((rows["verdict"] == verdict).sum()) for verdict in VERDICTS if verdict != NOT_RUN},
        }
        for method in _there((*PROPOSED, *BASELINES), run)
        for rows in [run[run["method"] == method]]
    ]


def findings(
    comparison: pd.DataFrame,
    claims: Sequence[Mapping[str, Any]],
    cells: pd.DataFrame,
    choices: Sequence[Mapping[str, Any]],
    audited: int,
    beyond: str | None = None,
) -> list[Finding]:
    """Return the findings that a reader should know first, at most `MOST_FINDINGS`.

    Parameters
    ----------
    comparison : DataFrame
        As `mdpu.pipeline.evaluate.comparison.compare` returns it.
    claims : sequence of mapping
        As `mdpu.pipeline.evaluate.claims.check_claims` returns them.
    cells : DataFrame
        The cells of the tables, as `mdpu.pipeline.evaluate.collect.summarize` returns them: one variant and one loss.
    choices : sequence of mapping
        Of open choices: ``title``, ``lowest`` and ``highest`` effect in points, and the ``section`` of their study.
    audited : int
        Number of contradictions and gaps that the audit found in the paper.
    beyond : str, optional
        Section that shows methods beyond the paper; without one there is no finding about them.
    """
    run = in_one_reading(were_run(comparison))
    found = [
        _proposed_finding(run),
        _baseline_finding(run),
        _claims_finding(claims),
        _beyond_finding(cells, beyond) if beyond else _best_finding(cells) if run.empty else None,
        _choices_finding(choices),
        Finding(f"The audit lists {audited} contradictions and gaps of the paper itself.", "audit"),
    ]
    return [finding for finding in found if finding is not None][:MOST_FINDINGS]


def _proposed_finding(run: pd.DataFrame) -> Finding | None:
    proposed = run[run["method"].isin(PROPOSED)].dropna(subset="difference")
    if proposed.empty:
        return None
    means = proposed.groupby("method")["difference"].mean()
    each = _listed([f"{load_method(m).title} {in_points(means[m], 2)}" for m in _there(PROPOSED, proposed)])
    equal = int((proposed["verdict"] == REPRODUCED).sum())
    mean = in_points(proposed["difference"].mean(), 2)
    return Finding(
        f"Ours minus the paper's is {mean} points on average ({each}); {equal} of {len(proposed)} numbers are "
        "reproduced within the margin.",
        "comparisons",
        {"family": "paper"},
    )


def _baseline_finding(run: pd.DataFrame) -> Finding | None:
    unlike = _unlike(run, BASELINES)
    if not unlike:
        return None
    parts = []
    for method in unlike:
        rows = run[run["method"] == method]
        differs = int((rows["verdict"] == DIFFERS).sum())
        median = in_points(rows["difference"].median())
        parts.append(f"{load_method(method).title} differs in {differs} of {len(rows)} (median {median} points)")
    filters = {"family": "baseline"} if len(unlike) > 1 else {"method": unlike[0]}
    return Finding(f"{_listed(parts)}.", "comparisons", {**filters, "verdict": DIFFERS})


def _claims_finding(claims: Sequence[Mapping[str, Any]]) -> Finding | None:
    checked = [row for row in claims if row["quote"] and row["status"] != NOT_CHECKED]
    if not checked:
        return None
    counts = {status: sum(row["status"] == status for row in checked) for status in STATUSES}
    one = {HOLDS: "holds", PARTLY: "holds in part", FAILS: "fails", INCONCLUSIVE: "is inconclusive"}
    several = {HOLDS: "hold", PARTLY: "hold in part", FAILS: "fail", INCONCLUSIVE: "are inconclusive"}
    parts = [f"{counts[name]} {(one if counts[name] == 1 else several)[name]}" for name in one if counts[name]]
    return Finding(
        f"Of {len(checked)} claims of the paper's prose that these runs can check, {_listed(parts)}.", "claims"
    )


def rows_by_method(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the mean accuracies of cells, a line per row of the tables and a column per method."""
    return cells.pivot_table(index=list(ROW), columns="method", values="mean", aggfunc="first")


def _best_finding(cells: pd.DataFrame) -> Finding | None:
    """Return which method is the best in most rows, where there is nothing to compare with.

    Methods that are equal to the two printed decimals share a row, and those that lead in equally many share the
    finding.
    """
    means = rows_by_method(cells)
    methods = [method for method in _in_order(cells) if method in means and family(method) != "control"]
    competing = means[methods].dropna().round(2)
    if competing.shape[1] < 2 or competing.empty:
        return None
    wins = competing.eq(competing.max(axis=1), axis=0).sum()
    first = [method for method in methods if wins[method] == wins.max()]
    lead = f"{_titles(first)} {'is' if len(first) == 1 else 'are each'}"
    among = f"of {_titles(methods)} " if len(first) < len(methods) else ""
    return Finding(
        f"{lead} the most accurate {among}in {wins.max()} of {len(competing)} rows of the tables.",
        "runs",
    )


def _beyond_finding(cells: pd.DataFrame, section: str) -> Finding | None:
    """Return how far the best method beyond the paper is above the best of the paper's, row by row."""
    means = rows_by_method(cells)
    proposed = _there(PROPOSED, cells)
    gains = {}
    for method in (str(method) for method in means):
        both = means[[*proposed, method]].dropna() if proposed and family(method) == "beyond" else means.iloc[:0]
        if len(both):
            gains[method] = both[method] - both[proposed].max(axis=1)
    if not gains:
        return None
    return Finding(_gain_sentence(gains, f"all of {_titles(proposed)}", "the best of them"), section)


def _gain_sentence(gains: Mapping[str, pd.Series], whom: str, which: str) -> str:
    """Return in how many rows the best of some methods beyond the paper is above `whom`, and how far from `which`.

    Methods that were run in fewer rows than others do not compete: their rows may be the ones where most is to be
    gained.
    """
    most = max(map(len, gains.values()))
    rivals = {method: gain for method, gain in gains.items() if len(gain) == most}
    best = max(rivals, key=lambda method: rivals[method].mean())
    gain = rivals[best]
    of = f", the best of {len(rivals)} methods beyond the paper," if len(rivals) > 1 else ""
    return (
        f"{load_method(best).title}{of} is above {whom} in {int((gain > 0).sum())} of {len(gain)} rows, "
        f"and {in_points(gain.mean())} points from {which} on average."
    )


def _choices_finding(choices: Sequence[Mapping[str, Any]]) -> Finding | None:
    if not choices:
        return None
    widest = max(choices, key=lambda row: max(abs(row["lowest"]), abs(row["highest"])))
    same = [row for row in choices if row["title"] == widest["title"]]  # a choice has a row in each study of it
    lowest, highest = min(row["lowest"] for row in same), max(row["highest"] for row in same)
    number = len({row["title"] for row in choices})
    return Finding(
        f"Of {number} choices that the paper leaves open, “{widest['title'].lower()}” moves the numbers most: "
        f"by {' to '.join(dict.fromkeys(map(in_points, (lowest, highest))))} points.",
        str(widest["section"]),
    )
