"""The claims of the paper's prose, each as a statement that a program checks case by case.

A claim is one function from evidence to cases. Evidence is either our runs or the paper's own 504 numbers,
which have neither histories nor other losses; a claim that evidence cannot speak to returns None.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from scipy import stats

from mdpu.evaluate.comparison import welch_interval
from mdpu.evaluate.evidence import WINDOW, Evidence, our_evidence, paper_evidence
from mdpu.evaluate.published import BASELINES, CORRECTED, PROPOSED
from mdpu.evaluate.shares import share_interval
from mdpu.files import provenance, read_csv, read_table, write_csv, write_json
from mdpu.study.grid import AXES, CELL, ROW
from mdpu.study.plan import Plan

CASE = (*AXES, "left", "right", "holds")
# What stands instead of counts: of our runs, of the paper's numbers, and of single trials.
NO_RUNS, NO_NUMBERS, NOT_TESTED = "not run", "not in its numbers", "counted, not tested"


Check = Callable[[Evidence], pd.DataFrame | None]
Checking = TypeVar("Checking", bound=Check)


@dataclass(frozen=True)
class Claim:
    """One claim: who makes it and where, and how it is checked.

    ``by_chance`` gives the pass rate of noise alone, from the configuration's ``comparison``: the rate for cells whose
    methods, sizes and priors make no difference. It is None if this rate is unknown.
    """

    name: str
    statement: str
    check: Check
    by_chance: Callable[[Mapping[str, float]], float] | None
    place: str
    quote: str

    @property
    def said_by(self) -> str:
        """``paper``, or ``reviewers`` for claims that the paper does not make but reviewers ask about."""
        return "paper" if self.quote else "reviewers"

    @property
    def sides(self) -> str:
        """What stands on the left and on the right of a case: the first line of the check's docstring."""
        return (inspect.getdoc(self.check) or "").partition("\n")[0]


CLAIMS: dict[str, Claim] = {}


def even(rule: Mapping[str, float]) -> float:
    """Return how often one of two is the larger by chance."""
    return 1 / 2


def first_of_four(rule: Mapping[str, float]) -> float:
    """Return how often one of four is the largest by chance."""
    return 1 / 4


def one_sided(rule: Mapping[str, float]) -> float:
    """Return how often an interval lies above zero by chance."""
    return (1 - rule["level"]) / 2


def claim(
    name: str,
    statement: str,
    place: str = "",
    quote: str = "",
    by_chance: Callable[[Mapping[str, float]], float] | None = None,
) -> Callable[[Checking], Checking]:
    """Register a check under `name`; without a quote the claim is one that reviewers ask for."""

    def register(check: Checking) -> Checking:
        CLAIMS[name] = Claim(name, statement, check, by_chance, place, quote)
        return check

    return register


# -- cases ----------------------------------------------------------------------------------------


def _cases(frame: pd.DataFrame, left: Any, right: Any, compare: Callable[[Any, Any], Any] = np.greater) -> pd.DataFrame:
    """Return `frame` as cases; one with a missing side does not hold."""
    filled = frame.assign(left=left, right=right)
    with np.errstate(invalid="ignore"):
        holds = compare(filled["left"].astype(float), filled["right"].astype(float))
    return filled.assign(holds=holds.astype(bool)).reindex(columns=list(CASE))


def _beside(cells: pd.DataFrame, axis: str, left: tuple[Any, ...], right: Any) -> pd.DataFrame:
    """Return cells whose `axis` is in `left`, with those where it is `right` in columns that end in ``_right``."""
    keys = [key for key in CELL if key != axis]
    return cells[cells[axis].isin(left)].merge(
        cells.loc[cells[axis] == right, [*keys, "mean", "std", "trials"]], on=keys, suffixes=("", "_right")
    )


def _steps(cells: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return cells beside the one with the next smaller value of `axis`, its mean as ``previous``."""
    keys = [key for key in CELL if key != axis]
    ordered = cells.assign(position=cells[axis].astype(float)).sort_values([*keys, "position"])
    ordered["previous"] = ordered.groupby(keys)["mean"].shift()
    first = ~ordered.duplicated(keys)
    return ordered[~first]


def _proposed(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[cells["method"].isin(PROPOSED)]


RESULTS = "Section V-D, Experimental Results"


@claim(
    "corrected-beats-ure",
    "In a cell, the mean accuracy of ReLU or ABS is higher than the URE's.",
    RESULTS,
    "risk-corrected methods maintain superior classification performance across diverse datasets and class prior "
    "configurations",
    by_chance=even,
)
def corrected_beats_ure(evidence: Evidence) -> pd.DataFrame:
    """Left: the corrected method's mean; right: the URE's."""
    pairs = _beside(evidence.table, "method", CORRECTED, "ure")
    return _cases(pairs, pairs["mean"], pairs["mean_right"])


@claim(
    "corrected-beats-ure-significantly",
    "In a cell, Welch's interval for ReLU or ABS minus URE lies above zero.",
    "Section I, third contribution",
    "mitigate overfitting risks inherent in the unbiased risk estimator, thereby significantly improving classifier "
    "performance",
    by_chance=one_sided,
)
def corrected_beats_ure_significantly(evidence: Evidence) -> pd.DataFrame:
    """Left: the interval's lower end; right: zero."""
    pairs = _beside(evidence.table, "method", CORRECTED, "ure")
    pairs = pairs[(pairs["trials"] > 1) & (pairs["trials_right"] > 1)]
    left, right = ([pairs[f"{column}{side}"] for column in ("mean", "std", "trials")] for side in ("", "_right"))
    low, _ = welch_interval(left[0], left[1], left[2], right[0], right[1], right[2], evidence.rule["level"])
    return _cases(pairs, low, 0.0)


@claim(
    "corrected-beats-ure-on-datasets",
    "Averaged over the cells of a dataset, ReLU and ABS are more accurate than URE.",
    RESULTS,
    "superior classification performance across diverse datasets and class prior configurations",
    by_chance=even,
)
def corrected_beats_ure_on_datasets(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of the corrected method's cells; right: that of the URE's in the same cells."""
    return _corrected_beats_ure_by("dataset", evidence)


@claim(
    "corrected-beats-ure-at-priors",
    "Averaged over the cells of a prior, ReLU and ABS are more accurate than URE.",
    RESULTS,
    "superior classification performance across diverse datasets and class prior configurations",
    by_chance=even,
)
def corrected_beats_ure_at_priors(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of the corrected method's cells; right: that of the URE's in the same cells."""
    return _corrected_beats_ure_by("prior", evidence)


def _corrected_beats_ure_by(axis: str, evidence: Evidence) -> pd.DataFrame:
    """Return a case per value of `axis` and corrected method; one with a cell that diverged has no mean."""
    pairs = _beside(evidence.table, "method", CORRECTED, "ure")
    means = pairs.groupby([axis, "method"], as_index=False)[["mean", "mean_right"]].mean(skipna=False)
    return _cases(means, means["mean"], means["mean_right"])


@claim(
    "corrected-beats-ure-on-triple-emnist-digits",
    "On triples of EMNIST-Digits at prior 0.5, ReLU and ABS are more accurate than URE.",
    RESULTS,
    "on triple EMNIST-Digits, risk-corrected methods (ReLU and ABS) achieve superior classification accuracy compared "
    "to URE",
    by_chance=even,
)
def corrected_beats_ure_on_triple_emnist_digits(evidence: Evidence) -> pd.DataFrame:
    """Left: the corrected method's mean; right: the URE's."""
    cases = corrected_beats_ure(evidence)
    named = (cases["dataset"] == "emnist-digits") & (cases["tuple_size"] == 3) & (cases["prior"] == "0.5")
    return cases[named]


@claim(
    "proposed-beat-baselines",
    "In a row, URE, ReLU and ABS are each more accurate than the best of Siamese, Contrastive and K-Means.",
    "Section VI, Conclusion",
    "MDPU achieves superior classification performance compared to existing methods",
    by_chance=first_of_four,
)
def proposed_beat_baselines(evidence: Evidence) -> pd.DataFrame:
    """Left: the proposed method's mean; right: the best baseline's, where all three were run."""
    both = _beside_baselines(evidence.table, evidence.table)
    return _cases(both, both["mean"], both["max"])


def _beside_baselines(cells: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Return the proposed methods' cells, with ``max``, the best baseline's mean in their row, where all three are."""
    compared = baselines[baselines["method"].isin(BASELINES)]
    rows = compared.groupby(list(ROW))["mean"].agg(["max", "size"])
    complete = rows[rows["size"] == len(BASELINES)].reset_index()
    return _proposed(cells).merge(complete, on=list(ROW))


@claim(
    "ure-risk-goes-negative",
    "The training risk of a URE run is negative at some epoch.",
    RESULTS,
    "the Unbiased Risk Estimator (URE) suffers from training instability due to unbounded negative terms, leading to "
    "negative empirical risk and overfitting",
)
def ure_risk_goes_negative(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's lowest risk; right: zero."""
    runs = evidence.base_runs("ure")
    return None if runs is None else _cases(runs, runs["lowest_risk"], 0.0, np.less)


@claim(
    "ure-accuracy-falls-with-its-risk",
    "From the first epoch with a negative training risk on, the accuracy of a URE run falls as the risk does: their "
    "rank correlation is positive.",
    "Section IV",
    "when the training loss becomes negative, the test accuracy decreases to varying degrees",
    by_chance=even,
)
def ure_accuracy_falls_with_its_risk(evidence: Evidence) -> pd.DataFrame | None:
    """Left: Spearman's correlation of risk and accuracy; right: zero."""
    return _falls_with_risk(evidence.base_runs("ure"), np.greater)


def _falls_with_risk(runs: pd.DataFrame | None, compare: Callable[[Any, Any], Any]) -> pd.DataFrame | None:
    if runs is None:
        return None
    runs = runs[runs["risk_and_accuracy"].notna()]
    return _cases(runs, runs["risk_and_accuracy"], 0.0, compare)


@claim(
    "ure-overfits",
    f"The reported accuracy of a URE run whose risk goes negative lies more than the margin below the best that "
    f"{WINDOW} epochs in a row had.",
    "Section IV",
    "indicating a clear overfitting phenomenon",
)
def ure_overfits(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's best accuracy minus its reported one; right: the margin."""
    runs = evidence.base_runs("ure")
    if runs is None:
        return None
    runs = runs[runs["lowest_risk"] < 0]
    return _cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"])


@claim(
    "corrected-objective-stays-non-negative",
    "The objective of a ReLU or ABS run is negative at no epoch. (By construction: max(0, R) and |R| cannot be.)",
    RESULTS,
    "ReLU and ABS risk estimators effectively stabilize training by enforcing non-negative loss surfaces",
)
def corrected_objective_stays_non_negative(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's lowest objective; right: zero."""
    runs = evidence.base_runs(*CORRECTED)
    return None if runs is None else _cases(runs, runs["lowest_objective"], 0.0, np.greater_equal)


@claim(
    "corrected-risk-stays-non-negative",
    "The training risk of a ReLU or ABS run, before its correction, is negative at no epoch.",
)
def corrected_risk_stays_non_negative(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's lowest risk; right: zero."""
    runs = evidence.base_runs(*CORRECTED)
    return None if runs is None else _cases(runs, runs["lowest_risk"], 0.0, np.greater_equal)


@claim(
    "corrected-accuracy-does-not-fall-with-its-risk",
    "From the first epoch with a negative training risk on, the accuracy of a ReLU or ABS run does not fall as the "
    "risk does: their rank correlation is not positive.",
    by_chance=even,
)
def corrected_accuracy_does_not_fall_with_its_risk(evidence: Evidence) -> pd.DataFrame | None:
    """Left: Spearman's correlation of risk and accuracy; right: zero."""
    return _falls_with_risk(evidence.base_runs(*CORRECTED), np.less_equal)


@claim(
    "corrected-accuracy-holds",
    f"The reported accuracy of a ReLU or ABS run lies at most the margin below the best that {WINDOW} epochs in a row "
    f"had.",
    RESULTS,
    "maintaining consistent test accuracy across all datasets",
)
def corrected_accuracy_holds(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's best accuracy minus its reported one; right: the margin."""
    runs = evidence.base_runs(*CORRECTED)
    if runs is None:
        return None
    return _cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"], np.less_equal)


@claim(
    "corrected-varies-less",
    "In a cell, the deviation over trials of ReLU or ABS is lower than the URE's.",
    by_chance=even,
)
def corrected_varies_less(evidence: Evidence) -> pd.DataFrame:
    """Left: the corrected method's deviation; right: the URE's."""
    pairs = _beside(evidence.table, "method", CORRECTED, "ure")
    pairs = pairs[pairs["std"].notna() & pairs["std_right"].notna()]
    return _cases(pairs, pairs["std"], pairs["std_right"], np.less)


@claim(
    "weight-decay-does-not-help",
    "A URE run with a larger weight decay overfits all the same: its reported accuracy lies more than the margin below "
    "its best.",
    "Section IV",
    "increasing weight decay or employing other methods to mitigate overfitting does not effectively address the issue",
)
def weight_decay_does_not_help(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's best accuracy minus its reported one; right: the margin."""
    if evidence.runs is None:
        return None
    runs = evidence.of_variants(evidence.runs, evidence.larger_decay)
    runs = runs[runs["method"] == "ure"]
    return _cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"])


@claim(
    "accuracy-grows-with-n",
    "From one number of tuples to the next larger one, the mean accuracy of URE, ReLU or ABS rises.",
    RESULTS,
    "increasing training samples enhances classification performance for both URE, ReLU/ABS methods",
    by_chance=even,
)
def accuracy_grows_with_n(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean at n; right: the mean at the next smaller n."""
    steps = _steps(_proposed(evidence.base_cells), "n")
    return _cases(steps, steps["mean"], steps["previous"])


@claim(
    "corrected-is-steadier-over-n",
    "While the number of tuples grows, the mean accuracy of ReLU or ABS never falls further than the URE's, from one "
    "number to the next.",
    RESULTS,
    "the ReLU and ABS methods exhibit stronger stability during sample expansion",
)
def corrected_is_steadier_over_n(evidence: Evidence) -> pd.DataFrame:
    """Left: the largest fall of the corrected method's mean from one n to the next, zero if none; right: the URE's."""
    steps = _steps(_proposed(evidence.base_cells), "n")
    keys = [key for key in CELL if key != "n"]
    fall = steps[keys].assign(fall=(steps["previous"] - steps["mean"]).clip(lower=0))
    falls = fall.groupby(keys, as_index=False)["fall"].agg(lambda values: values.max(skipna=False))
    shared = [key for key in keys if key != "method"]
    ure = falls.loc[falls["method"] == "ure", [*shared, "fall"]]
    pairs = falls[falls["method"].isin(CORRECTED)].merge(ure, on=shared, suffixes=("", "_right"))
    return _cases(pairs, pairs["fall"], pairs["fall_right"], np.less_equal)


@claim(
    "corrected-grows-more-steeply",
    "The slope of the mean accuracy against n, fitted by least squares, is steeper for ReLU or ABS than for URE.",
    RESULTS,
    "their accuracy growth slopes significantly surpass those of URE",
    by_chance=even,
)
def corrected_grows_more_steeply(evidence: Evidence) -> pd.DataFrame:
    """Left: the corrected method's slope in points per 1,000 tuples; right: the URE's over the same n."""
    slopes = _slopes(evidence)
    return _cases(slopes, slopes["slope"], slopes["slope_right"])


@claim(
    "corrected-grows-significantly-more-steeply",
    "The slope of the mean accuracy against n is steeper for ReLU or ABS than for URE, and the interval of their "
    "difference, by the deviations over trials, lies above zero.",
    RESULTS,
    "their accuracy growth slopes significantly surpass those of URE",
    by_chance=one_sided,
)
def corrected_grows_significantly_more_steeply(evidence: Evidence) -> pd.DataFrame:
    """Left: the lower end of the interval of the slopes' difference, in points per 1,000 tuples; right: zero."""
    slopes = _slopes(evidence)
    slopes = slopes[slopes["variance"].notna() & slopes["variance_right"].notna()]
    variance = slopes["variance"] + slopes["variance_right"]
    freedom = variance**2 / (slopes["quartic"] + slopes["quartic_right"])  # Welch and Satterthwaite's
    reach = stats.t.ppf((1 + evidence.rule["level"]) / 2, freedom) * np.sqrt(variance)
    return _cases(slopes, slopes["slope"] - slopes["slope_right"] - reach, 0.0)


def _slopes(evidence: Evidence) -> pd.DataFrame:
    """Return least-squares slopes of the mean against n, in points per 1,000 tuples, over the n that both methods have.

    Returns
    -------
    DataFrame
        A row per corrected method and what else a cell has but n: ``slope``, its ``variance`` by the deviations over
        trials and ``quartic``, the sum of the squared parts of the variance, each by its degrees of freedom; the same
        of the URE with the suffix ``_right``. The last two are missing where a cell has one trial.
    """
    pairs = _beside(evidence.base_cells, "method", CORRECTED, "ure").dropna(subset=["mean", "mean_right"])
    keys = [key for key in CELL if key != "n"]
    centred = pairs["n"] - pairs.groupby(keys)["n"].transform("mean")
    square = (centred**2).groupby([pairs[key] for key in keys]).transform("sum")
    weight = 1000 * centred / square.where(square > 0)
    terms = pairs[keys].copy()
    for side in ("", "_right"):
        trials = pairs[f"trials{side}"]
        part = weight**2 * pairs[f"std{side}"] ** 2 / trials
        terms[f"slope{side}"] = weight * pairs[f"mean{side}"]
        terms[f"variance{side}"] = part
        terms[f"quartic{side}"] = part**2 / (trials - 1).where(trials > 1)
    sums = terms.groupby(keys, as_index=False).sum(skipna=False)
    return sums[sums["slope"].notna()]


@claim(
    "no-saturation-on-hard-data",
    "On CIFAR-10 and SVHN, the mean accuracy of ReLU or ABS still rises from the second largest n to the largest.",
    RESULTS,
    "no performance saturation observed in high-noise scenarios (e.g., CIFAR-10 and SVHN)",
    by_chance=even,
)
def no_saturation_on_hard_data(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean at the largest n; right: the mean at the one before."""
    cells = evidence.base_cells
    named = cells["dataset"].isin(["cifar-10", "svhn"]) & cells["method"].isin(CORRECTED)
    steps = _steps(cells[named], "n")
    last = steps[~steps.duplicated([key for key in CELL if key != "n"], keep="last")]
    return _cases(last, last["mean"], last["previous"])


@claim(
    "loss-hardly-matters",
    "Over the losses that were run, the means of URE, ReLU or ABS in a cell span no more than the wider margin.",
    RESULTS,
    "the MDPU algorithm shows minimal sensitivity to loss function selection",
)
def loss_hardly_matters(evidence: Evidence) -> pd.DataFrame | None:
    """Left: highest minus lowest mean; right: the wider margin."""
    if evidence.runs is None:
        return None
    cells = _proposed(evidence.cells[evidence.cells["variant"] == "base"])
    keys = [key for key in CELL if key != "loss"]
    spans = cells.groupby(keys)["mean"].agg(["max", "min", "count", "size"]).reset_index()
    spans = spans[spans["size"] > 1]
    span = (spans["max"] - spans["min"]).where(spans["count"] == spans["size"])  # a diverged loss matters
    return _cases(spans, span, evidence.rule["wider_margin"], np.less_equal)


@claim(
    "every-loss-beats-the-baselines",
    "With each loss that was run, URE, ReLU or ABS is more accurate than the best of Siamese, Contrastive and K-Means "
    "in the same row.",
    RESULTS,
    "regardless of the loss function employed, the algorithm maintains consistently high classification performance",
    by_chance=first_of_four,
)
def every_loss_beats_the_baselines(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the proposed method's mean; right: the best baseline's, which knows no loss, where all three were run."""
    if evidence.runs is None:
        return None
    both = _beside_baselines(evidence.cells[evidence.cells["variant"] == "base"], evidence.table)
    return _cases(both, both["mean"], both["max"])


@claim(
    "more-unlabeled-images-help",
    "With several times as many unlabeled images and the same tuples, the mean accuracy of URE, ReLU or ABS is higher.",
    "Section I",
    "Leveraging pointwise unlabeled data to participate in the training of weakly supervised learning models can "
    "enhance the generalization ability of classifiers",
    by_chance=even,
)
def more_unlabeled_images_help(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the mean with more unlabeled images; right: the mean of the protocol as it stands."""
    if evidence.runs is None:
        return None
    more = _proposed(evidence.of_variants(evidence.cells, evidence.more_unlabeled))
    keys = [key for key in CELL if key != "variant"]
    base = evidence.cells.loc[evidence.cells["variant"] == "base", [*keys, "mean"]]
    both = more.merge(base, on=keys, suffixes=("", "_right"))
    return _cases(both, both["mean"], both["mean_right"])


@claim(
    "triples-beat-pairs",
    "In a cell, the mean accuracy of URE, ReLU or ABS on triples is higher than on the same number of pairs.",
    by_chance=even,
)
def triples_beat_pairs(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean on triples; right: the mean on pairs."""
    both = _beside(_proposed(evidence.table), "tuple_size", (3,), 2)
    return _cases(both, both["mean"], both["mean_right"])


@claim(
    "lower-prior-is-easier",
    "From one prior to the next larger one, the mean accuracy of URE, ReLU or ABS falls.",
    by_chance=even,
)
def lower_prior_is_easier(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean at the larger prior; right: the mean at the next smaller one."""
    steps = _steps(_proposed(evidence.table), "prior")
    return _cases(steps, steps["mean"], steps["previous"], np.less)


@claim(
    "supervision-is-the-ceiling",
    "In a cell, the same network trained with true labels is more accurate than a method without them.",
    by_chance=even,
)
def supervision_is_the_ceiling(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean with true labels; right: the method's."""
    pairs = _beside(evidence.table, "method", _weak(evidence), "supervised")
    return _cases(pairs, pairs["mean_right"], pairs["mean"])


@claim(
    "no-method-is-below-chance",
    "In a cell, a method is at least as accurate as the majority class is frequent, or Welch's interval for their "
    "difference reaches above zero.",
)
def no_method_is_below_chance(evidence: Evidence) -> pd.DataFrame:
    """Left: the difference of the means or, if it is higher, the interval's upper end; right: zero."""
    pairs = _beside(evidence.table, "method", _weak(evidence), "chance")
    ours, chance = ([pairs[f"{column}{side}"] for column in ("mean", "std", "trials")] for side in ("", "_right"))
    _, high = welch_interval(ours[0], ours[1], ours[2], chance[0], chance[1], chance[2], evidence.rule["level"])
    return _cases(pairs, np.fmax(pairs["mean"] - pairs["mean_right"], high), 0.0, np.greater_equal)


def _weak(evidence: Evidence) -> tuple[str, ...]:
    """Return the methods that learn without true labels."""
    return tuple(set(evidence.cells["method"]) - {"supervised", "chance"})


@claim(
    "relu-part-beats-the-published-corrections",
    "In a cell, whatever the loss, ReLU on the tuple part and the unlabeled part of the risk, each by itself, is more "
    "accurate than ReLU or ABS on the whole.",
    by_chance=even,
)
def relu_part_beats_the_published_corrections(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean of relu-part; right: the published correction's."""
    pairs = _beside(evidence.cells[evidence.cells["variant"] == "base"], "method", CORRECTED, "relu-part")
    return _cases(pairs, pairs["mean_right"], pairs["mean"])


# -- all of them ----------------------------------------------------------------------------------


def check_claims(ours: Evidence, paper: Evidence) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Check every claim on our runs and on the paper's numbers.

    Returns
    -------
    claims : DataFrame
        One row per claim: claim, said_by, place, quote, statement, ``sides`` (what is compared in a case),
        ``by_chance`` (the pass rate that noise alone would give, where that can be told), and for ``ours`` and
        ``paper`` the numbers of cases (``_cases``) and of those that hold (``_hold``), the pass rate (``_rate``),
        and both in words (``ours``, ``paper``: ``5 of 6``, ``not run``, ``not in its numbers``). Then what
        `_in_single_trials` returns, of ours.
    cases : DataFrame
        One row per claim, evidence (``ours`` or ``paper``) and case: the key columns that apply, ``left``,
        ``right``, and whether the statement ``holds``.
    """
    rows, all_cases = [], []
    for item in CLAIMS.values():
        row: dict[str, Any] = {
            "claim": item.name,
            "said_by": item.said_by,
            "place": item.place,
            "quote": item.quote,
            "statement": item.statement,
            "sides": item.sides,
            "by_chance": item.by_chance(ours.rule) if item.by_chance else None,
        }
        for source, evidence in (("ours", ours), ("paper", paper)):
            cases = item.check(evidence)
            count = 0 if cases is None else len(cases)
            hold = 0 if cases is None else int(cases["holds"].sum())
            nothing = NO_NUMBERS if source == "paper" else NO_RUNS
            row |= {
                f"{source}_cases": count,
                f"{source}_hold": hold,
                f"{source}_rate": hold / count if count else None,
                source: f"{hold} of {count}" if count else nothing,
            }
            if cases is not None and count:
                all_cases.append(cases.assign(claim=item.name, evidence=source))
        rows.append(row | _in_single_trials(item, ours))
    columns = ["claim", "evidence", *CASE]
    cases = pd.concat(all_cases, ignore_index=True) if all_cases else pd.DataFrame(columns=columns)
    integers = dict.fromkeys(("tuple_size", "n", "seed"), "Int64")
    return pd.DataFrame(rows), cases[columns].astype(integers)


def _in_single_trials(item: Claim, evidence: Evidence) -> dict[str, Any]:
    """Return how often a claim holds in one trial, with an interval that respects what the trials share.

    Cells share images and, where one is in several cases, trials. So the claim is checked on each seed alone, and the
    interval is by clusters of cases, those of one seed and dataset (`Evidence.clusters`).

    Returns
    -------
    dict
        ``trial_rate``, the share of cases that hold, over all seeds; its interval ``trial_low``, ``trial_high`` at
        ``comparison.level``; ``trials``, the seeds that have cases; ``in_single_trials``, rate and interval in
        words. Missing, and ``counted, not tested``, where fewer than two seeds have cases.
    """
    checked = [(seed, item.check(trial)) for seed, trial in evidence.single_trials()]
    cases_by_seed = [cases.assign(seed=seed) for seed, cases in checked if cases is not None and len(cases)]
    row: dict[str, Any] = dict.fromkeys(("trial_rate", "trial_low", "trial_high")) | {"trials": len(cases_by_seed)}
    if len(cases_by_seed) < 2:
        return row | {"in_single_trials": NOT_TESTED}
    cases = pd.concat(cases_by_seed)
    clusters = cases.groupby(list(evidence.clusters), dropna=False)["holds"].agg(["sum", "size"])
    rate = cases["holds"].mean()
    low, high = share_interval(clusters["sum"], clusters["size"], evidence.rule["level"])
    words = f"{100 * rate:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    return row | {"trial_rate": rate, "trial_low": low, "trial_high": high, "in_single_trials": words}


def write_claims(plan: Plan, summary: Path, metrics: Path, out: Path, cases: Path) -> None:
    """Check the claims on a plan's runs and on the paper's numbers; write them as CSV and JSON, and every case as CSV.

    Raises
    ------
    UserError
        If the summary or the metrics, as `mdpu.evaluate.collect.write_collection` writes them, are missing or broken.
    """
    started = time.perf_counter()
    rule, reporting = plan.config["comparison"], plan.protocol.reporting()
    ours = our_evidence(plan, read_csv(summary), read_table(metrics))
    checked, all_cases = check_claims(ours, paper_evidence(rule))
    write_csv(checked, out)
    write_csv(all_cases, cases)
    facts = provenance(started, [summary, metrics], rule=rule, reporting=reporting)
    rows = checked.astype(object).where(checked.notna(), None).to_dict("records")
    write_json(out.with_suffix(".json"), {"claims": rows, **facts})
