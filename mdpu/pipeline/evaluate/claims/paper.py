"""The claims of the paper's prose, and what reviewers ask about the paper's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from mdpu.pipeline.evaluate.claims.claim import (
    beside,
    claim,
    even,
    first_of_four,
    interval_of_difference,
    make_cases,
    one_sided,
    proposed,
    step_up,
)
from mdpu.pipeline.evaluate.evidence import WINDOW, Evidence
from mdpu.pipeline.evaluate.published import BASELINES, CORRECTED
from mdpu.pipeline.plan import CELL, ROW

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
    pairs = beside(evidence.table, "method", CORRECTED, "ure")
    return make_cases(pairs, pairs["mean"], pairs["mean_right"])


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
    pairs = beside(evidence.table, "method", CORRECTED, "ure")
    pairs = pairs[(pairs["trials"] > 1) & (pairs["trials_right"] > 1)]
    low, _ = interval_of_difference(pairs, evidence.rule["level"])
    return make_cases(pairs, low, 0.0)


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
    pairs = beside(evidence.table, "method", CORRECTED, "ure")
    means = pairs.groupby([axis, "method"], as_index=False)[["mean", "mean_right"]].mean(skipna=False)
    return make_cases(means, means["mean"], means["mean_right"])


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
    return make_cases(both, both["mean"], both["max"])


def _beside_baselines(cells: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Return the proposed methods' cells, with ``max``, the best baseline's mean in their row, where all three are."""
    compared = baselines[baselines["method"].isin(BASELINES)]
    rows = compared.groupby(list(ROW))["mean"].agg(["max", "size"])
    complete = rows[rows["size"] == len(BASELINES)].reset_index()
    return proposed(cells).merge(complete, on=list(ROW))


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
    return None if runs is None else make_cases(runs, runs["lowest_risk"], 0.0, np.less)


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
    return make_cases(runs, runs["risk_and_accuracy"], 0.0, compare)


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
    return make_cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"])


@claim(
    "corrected-objective-stays-non-negative",
    "The objective of a ReLU or ABS run is negative at no epoch. (By construction: max(0, R) and |R| cannot be.)",
    RESULTS,
    "ReLU and ABS risk estimators effectively stabilize training by enforcing non-negative loss surfaces",
)
def corrected_objective_stays_non_negative(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's lowest objective; right: zero."""
    runs = evidence.base_runs(*CORRECTED)
    return None if runs is None else make_cases(runs, runs["lowest_objective"], 0.0, np.greater_equal)


@claim(
    "corrected-risk-stays-non-negative",
    "The training risk of a ReLU or ABS run, before its correction, is negative at no epoch.",
)
def corrected_risk_stays_non_negative(evidence: Evidence) -> pd.DataFrame | None:
    """Left: the run's lowest risk; right: zero."""
    runs = evidence.base_runs(*CORRECTED)
    return None if runs is None else make_cases(runs, runs["lowest_risk"], 0.0, np.greater_equal)


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
    return make_cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"], np.less_equal)


@claim(
    "corrected-varies-less",
    "In a cell, the deviation over trials of ReLU or ABS is lower than the URE's.",
    by_chance=even,
)
def corrected_varies_less(evidence: Evidence) -> pd.DataFrame:
    """Left: the corrected method's deviation; right: the URE's."""
    pairs = beside(evidence.table, "method", CORRECTED, "ure")
    pairs = pairs[pairs["std"].notna() & pairs["std_right"].notna()]
    return make_cases(pairs, pairs["std"], pairs["std_right"], np.less)


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
    runs = evidence.variant_rows(evidence.runs, evidence.larger_decay)
    runs = runs[runs["method"] == "ure"]
    return make_cases(runs, runs["best"] - runs["accuracy"], evidence.rule["margin"])


@claim(
    "accuracy-grows-with-n",
    "From one number of tuples to the next larger one, the mean accuracy of URE, ReLU or ABS rises.",
    RESULTS,
    "increasing training samples enhances classification performance for both URE, ReLU/ABS methods",
    by_chance=even,
)
def accuracy_grows_with_n(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean at n; right: the mean at the next smaller n."""
    steps = step_up(proposed(evidence.base_cells), "n")
    return make_cases(steps, steps["mean"], steps["previous"])


@claim(
    "corrected-is-steadier-over-n",
    "While the number of tuples grows, the mean accuracy of ReLU or ABS never falls further than the URE's, from one "
    "number to the next.",
    RESULTS,
    "the ReLU and ABS methods exhibit stronger stability during sample expansion",
)
def corrected_is_steadier_over_n(evidence: Evidence) -> pd.DataFrame:
    """Left: the largest fall of the corrected method's mean from one n to the next, zero if none; right: the URE's."""
    steps = step_up(proposed(evidence.base_cells), "n")
    keys = [key for key in CELL if key != "n"]
    fall = steps[keys].assign(fall=(steps["previous"] - steps["mean"]).clip(lower=0))
    falls = fall.groupby(keys, as_index=False)["fall"].agg(lambda values: values.max(skipna=False))
    shared = [key for key in keys if key != "method"]
    ure = falls.loc[falls["method"] == "ure", [*shared, "fall"]]
    pairs = falls[falls["method"].isin(CORRECTED)].merge(ure, on=shared, suffixes=("", "_right"))
    return make_cases(pairs, pairs["fall"], pairs["fall_right"], np.less_equal)


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
    return make_cases(slopes, slopes["slope"], slopes["slope_right"])


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
    reach = special.stdtrit(freedom, (1 + evidence.rule["level"]) / 2) * np.sqrt(variance)
    return make_cases(slopes, slopes["slope"] - slopes["slope_right"] - reach, 0.0)


def _slopes(evidence: Evidence) -> pd.DataFrame:
    """Return least-squares slopes of the mean against n, in points per 1,000 tuples, over the n that both methods have.

    Returns
    -------
    DataFrame
        A row per corrected method and what else a cell has but n: ``slope``, its ``variance`` by the deviations over
        trials and ``quartic``, the sum of the squared parts of the variance, each by its degrees of freedom; the same
        of the URE with the suffix ``_right``. The last two are missing where a cell has one trial.
    """
    pairs = beside(evidence.base_cells, "method", CORRECTED, "ure").dropna(subset=["mean", "mean_right"])
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
    steps = step_up(cells[named], "n")
    last = steps[~steps.duplicated([key for key in CELL if key != "n"], keep="last")]
    return make_cases(last, last["mean"], last["previous"])


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
    cells = proposed(evidence.cells[evidence.cells["variant"] == "base"])
    keys = [key for key in CELL if key != "loss"]
    spans = cells.groupby(keys)["mean"].agg(["max", "min", "count", "size"]).reset_index()
    spans = spans[spans["size"] > 1]
    span = (spans["max"] - spans["min"]).where(spans["count"] == spans["size"])  # a diverged loss matters
    return make_cases(spans, span, evidence.rule["wider_margin"], np.less_equal)


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
    return make_cases(both, both["mean"], both["max"])


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
    more = proposed(evidence.variant_rows(evidence.cells, evidence.more_unlabeled))
    keys = [key for key in CELL if key != "variant"]
    base = evidence.cells.loc[evidence.cells["variant"] == "base", [*keys, "mean"]]
    both = more.merge(base, on=keys, suffixes=("", "_right"))
    return make_cases(both, both["mean"], both["mean_right"])


@claim(
    "triples-beat-pairs",
    "In a cell, the mean accuracy of URE, ReLU or ABS on triples is higher than on the same number of pairs.",
    by_chance=even,
)
def triples_beat_pairs(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean on triples; right: the mean on pairs."""
    both = beside(proposed(evidence.table), "tuple_size", (3,), 2)
    return make_cases(both, both["mean"], both["mean_right"])


@claim(
    "lower-prior-is-easier",
    "From one prior to the next larger one, the mean accuracy of URE, ReLU or ABS falls.",
    by_chance=even,
)
def lower_prior_is_easier(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean at the larger prior; right: the mean at the next smaller one."""
    steps = step_up(proposed(evidence.table), "prior")
    return make_cases(steps, steps["mean"], steps["previous"], np.less)


@claim(
    "supervision-is-the-ceiling",
    "In a cell, the same network trained with true labels is more accurate than a method without them.",
    by_chance=even,
)
def supervision_is_the_ceiling(evidence: Evidence) -> pd.DataFrame:
    """Left: the mean with true labels; right: the method's."""
    pairs = beside(evidence.table, "method", _weak(evidence), "supervised")
    return make_cases(pairs, pairs["mean_right"], pairs["mean"])


@claim(
    "no-method-is-below-chance",
    "In a cell, a method is at least as accurate as the majority class is frequent, or Welch's interval for their "
    "difference reaches above zero.",
)
def no_method_is_below_chance(evidence: Evidence) -> pd.DataFrame:
    """Left: the difference of the means or, if it is higher, the interval's upper end; right: zero."""
    pairs = beside(evidence.table, "method", _weak(evidence), "chance")
    _, high = interval_of_difference(pairs, evidence.rule["level"])
    return make_cases(pairs, np.fmax(pairs["mean"] - pairs["mean_right"], high), 0.0, np.greater_equal)


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
    pairs = beside(evidence.cells[evidence.cells["variant"] == "base"], "method", CORRECTED, "relu-part")
    return make_cases(pairs, pairs["mean_right"], pairs["mean"])
