"""The paper's claims: one function each, which returns the cases that evidence has for it and
whether each holds.

The docstring is the claim: the statement that the report shows, its left side first, then the quote
and its place. Evidence is either our runs or the paper's own 504 numbers, which have neither
histories nor other losses: a claim that evidence cannot speak to has no cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.choices import PROTOCOL, Readings
from mdpu.pipeline.evaluate.comparison import share_interval, student_quantile
from mdpu.pipeline.evaluate.evidence import (
    MEASURES,
    RIGHT,
    Evidence,
    best_in_row,
    falls,
    other_keys,
    our_evidence,
    pair_interval,
    pairs_of,
    paper_evidence,
    slopes,
    step_up,
    training_metrics,
)
from mdpu.pipeline.evaluate.published import BASELINES, CORRECTED, PROPOSED
from mdpu.pipeline.files import read_table, write_csv, write_json
from mdpu.pipeline.plan import AXES, CELL, Plan

CASE = (*AXES, "left", "right", "holds")
Frame = pd.DataFrame
ABOVE = np.greater
BELOW = np.less
AT_LEAST = np.greater_equal
AT_MOST = np.less_equal
# How often noise alone passes, for cells whose methods, sizes and priors make no difference: one of
# two is the larger, one of four the largest, and an interval lies above zero.
CHANCE: dict[str, Callable[[Mapping[str, float]], float]] = {
    "even": lambda rule: 1 / 2,
    "first of four": lambda rule: 1 / 4,
    "one-sided": lambda rule: (1 - rule["level"]) / 2,
}
# How a claim fares on our runs.
HOLDS = "holds"
PARTLY = "partly"
FAILS = "fails"
INCONCLUSIVE = "inconclusive"
NOT_RUN = "not run"
# Texts in place of counts where there are none, beside `NOT_RUN` for our runs.
NO_NUMBERS = "not in its numbers"  # of the paper
NOT_TESTED = "counted, not tested"  # in single trials
MOST_CASES = 0.9  # the share of the cases from which on a claim holds
FEW_CASES = 0.1  # the share up to which it fails

Check = Callable[[Evidence], Frame]


class Claim(NamedTuple):
    """A claim, where the paper makes it, and its check.

    `chance` is a key of `CHANCE`, None if it is unknown; `unit` is that of both sides, empty if
    they are mere numbers.
    """

    name: str
    statement: str
    quote: str
    place: str
    chance: str | None
    unit: str
    check: Check


CLAIMS: dict[str, Claim] = {}


def claim(chance: str | None = None, unit: str = "points") -> Callable[[Check], Check]:
    """Add the decorated function to `CLAIMS`."""

    def add(check: Check) -> Check:
        words = " ".join(str(check.__doc__).split())
        parts = re.fullmatch(r'(.*) "(.*)" \((.*)\)', words)
        assert parts is not None, f"{check.__name__}: no quote with its place"
        statement, quote, place = parts.groups()
        name = check.__name__.replace("_", "-")
        CLAIMS[name] = Claim(name, statement, quote, place, chance, unit, check)
        return check

    return add


def cases(rows: Frame, left: Any, compare: Callable[[Any, Any], Any], right: Any) -> Frame:
    """Return rows as cases: whether `left` compares with `right`; one with a missing side does not
    hold.
    """
    sided = rows.assign(left=left, right=right)
    with np.errstate(invalid="ignore"):
        holds = compare(sided["left"].astype(float), sided["right"].astype(float))
    return sided.assign(holds=holds.astype(bool)).reindex(columns=list(CASE))


def means(pairs: Frame, compare: Callable[[Any, Any], Any] = ABOVE) -> Frame:
    """Compare the means of pairs."""
    return cases(pairs, pairs["mean"], compare, pairs["mean_right"])


def proposed(cells: Frame) -> Frame:
    """Return the cells of URE, ReLU and ABS."""
    return cells[cells["method"].isin(PROPOSED)]


def with_printed_ramp(evidence: Evidence) -> Frame:
    """Return the cells of URE, ReLU and ABS with each loss of Table I as printed, by equal
    trials.
    """
    cells = proposed(evidence.every_loss)
    return evidence.with_equal_trials(cells[cells["loss"] != "usual-ramp"], "loss")


def with_usual_ramp(evidence: Evidence) -> Frame:
    """Return the cells of URE, ReLU and ABS with each loss of Table I, the usual ramp loss in place
    of the printed one, where it was run, by equal trials.
    """
    cells = proposed(evidence.every_loss)
    losses = cells.groupby(other_keys("loss"))["loss"]
    has_usual = losses.transform(lambda names: (names == "usual-ramp").any()).astype(bool)
    return evidence.with_equal_trials(cells[has_usual & (cells["loss"] != "ramp")], "loss")


def beside_base(evidence: Evidence, variants: Collection[str]) -> Frame:
    """Return the cells of URE, ReLU and ABS under some variants beside the protocol's, by equal
    trials.
    """
    cells = proposed(evidence.cells)
    compared = cells[cells["variant"].isin([*variants, BASE])]
    return pairs_of(evidence.with_equal_trials(compared, "variant"), "variant", variants, BASE)


def corrected(evidence: Evidence) -> Frame:
    """Pair the table's cells of ReLU and ABS with those of the URE."""
    return pairs_of(evidence.table, "method", CORRECTED, "ure")


def averaged(pairs: Frame, axis: str) -> Frame:
    """Return the averages over the pairs of each value of `axis`; one with a cell that diverged is
    missing.
    """
    sides = pairs.groupby([axis, "method"], as_index=False)[["mean", "mean_right"]]
    return sides.mean(skipna=False)


def beside_baselines(cells: Frame, evidence: Evidence) -> Frame:
    """Return cells beside the best of Siamese, Contrastive and K-Means in their row, where all
    three were run.
    """
    return best_in_row(cells, evidence.table, BASELINES)


def loss_from_best(runs: Frame) -> pd.Series:
    """Return each run's best accuracy minus its reported one."""
    return runs["best"] - runs["accuracy"]


@claim("even")
def corrected_beats_ure(evidence: Evidence) -> Frame:
    """In a cell, the mean accuracy of ReLU or ABS is higher than the URE's.

    "risk-corrected methods maintain superior classification performance across diverse datasets and
    class prior configurations" (Section V-D)
    """
    return means(corrected(evidence))


@claim("one-sided")
def corrected_beats_ure_significantly(evidence: Evidence) -> Frame:
    """In a cell, the lower end of Welch's interval for ReLU or ABS minus URE lies above zero.

    "mitigate overfitting risks inherent in the unbiased risk estimator, thereby significantly
    improving classifier performance" (Section I, third contribution)
    """
    pairs = corrected(evidence).query("trials > 1 and trials_right > 1")
    low, _ = pair_interval(pairs, evidence.rule)
    return cases(pairs, low, ABOVE, 0.0)


@claim("even")
def corrected_beats_ure_on_datasets(evidence: Evidence) -> Frame:
    """Averaged over the cells of a dataset, ReLU and ABS are more accurate than URE.

    "superior classification performance across diverse datasets and class prior configurations"
    (Section V-D)
    """
    return means(averaged(corrected(evidence), "dataset"))


@claim("even")
def corrected_beats_ure_at_priors(evidence: Evidence) -> Frame:
    """Averaged over the cells of a prior, ReLU and ABS are more accurate than URE.

    "superior classification performance across diverse datasets and class prior configurations"
    (Section V-D)
    """
    return means(averaged(corrected(evidence), "prior"))


@claim("even")
def corrected_beats_ure_on_triple_emnist_digits(evidence: Evidence) -> Frame:
    """On triples of EMNIST-Digits at prior 0.5, ReLU and ABS are more accurate than URE.

    "on triple EMNIST-Digits, risk-corrected methods (ReLU and ABS) achieve superior classification
    accuracy compared to URE" (Section V-D)
    """
    triples = "dataset == 'emnist-digits' and tuple_size == 3 and prior == '0.5'"
    return means(corrected(evidence).query(triples))


@claim("first of four")
def proposed_beat_baselines(evidence: Evidence) -> Frame:
    """In a row, URE, ReLU and ABS are each more accurate than the best of Siamese, Contrastive and
    K-Means.

    "MDPU achieves superior classification performance compared to existing methods" (Section VI,
    Conclusion)
    """
    return means(beside_baselines(proposed(evidence.table), evidence))


@claim(unit="")
def ure_risk_goes_negative(evidence: Evidence) -> Frame:
    """The lowest training risk of a URE run over its epochs is negative.

    "the Unbiased Risk Estimator (URE) suffers from training instability due to unbounded negative
    terms, leading to negative empirical risk and overfitting" (Section V-D)
    """
    runs = evidence.runs_of(["ure"])
    return cases(runs, runs["lowest_risk"], BELOW, 0.0)


@claim("even", unit="")
def ure_accuracy_falls_with_its_risk(evidence: Evidence) -> Frame:
    """From the first epoch with a negative training risk on, the rank correlation of a URE run's
    risk and accuracy is positive: they fall together.

    "when the training loss becomes negative, the test accuracy decreases to varying degrees"
    (Section IV)
    """
    runs = evidence.runs_of(["ure"]).dropna(subset="risk_and_accuracy")
    return cases(runs, runs["risk_and_accuracy"], ABOVE, 0.0)


@claim()
def ure_overfits(evidence: Evidence) -> Frame:
    """The reported accuracy of a URE run whose risk goes negative lies more than the margin below
    the best that five epochs in a row had.

    "indicating a clear overfitting phenomenon" (Section IV)
    """
    runs = evidence.runs_of(["ure"]).query("lowest_risk < 0")
    return cases(runs, loss_from_best(runs), ABOVE, evidence.rule["margin"])


@claim(unit="")
def corrected_objective_stays_non_negative(evidence: Evidence) -> Frame:
    """The lowest objective of a ReLU or ABS run is not negative. (By construction: max(0, R) and
    |R| cannot be.)

    "ReLU and ABS risk estimators effectively stabilize training by enforcing non-negative loss
    surfaces" (Section V-D)
    """
    runs = evidence.runs_of(CORRECTED)
    return cases(runs, runs["lowest_objective"], AT_LEAST, 0.0)


@claim()
def corrected_accuracy_holds(evidence: Evidence) -> Frame:
    """The reported accuracy of a ReLU or ABS run lies at most the margin below the best that five
    epochs in a row had.

    "maintaining consistent test accuracy across all datasets" (Section V-D)
    """
    runs = evidence.runs_of(CORRECTED)
    return cases(runs, loss_from_best(runs), AT_MOST, evidence.rule["margin"])


@claim()
def weight_decay_does_not_help(evidence: Evidence) -> Frame:
    """A URE run with a larger weight decay overfits all the same: its reported accuracy lies more
    than the margin below its best.

    "increasing weight decay or employing other methods to mitigate overfitting does not effectively
    address the issue" (Section IV)
    """
    runs = evidence.runs_of(["ure"], ("decay 6e-4", "decay 7e-4", "decay 2e-3"))
    return cases(runs, loss_from_best(runs), ABOVE, evidence.rule["margin"])


@claim("even")
def accuracy_grows_with_n(evidence: Evidence) -> Frame:
    """The mean accuracy of URE, ReLU or ABS is higher than at the next smaller number of tuples.

    "increasing training samples enhances classification performance for both URE, ReLU/ABS methods"
    (Section V-D)
    """
    return means(step_up(proposed(evidence.base_cells), "n"))


@claim()
def corrected_is_steadier_over_n(evidence: Evidence) -> Frame:
    """While the number of tuples grows, the largest fall of the mean accuracy of ReLU or ABS, from
    one number to the next, is no larger than the URE's.

    "the ReLU and ABS methods exhibit stronger stability during sample expansion" (Section V-D)
    """
    largest = falls(proposed(evidence.base_cells))
    shared = [key for key in CELL if key not in ("n", "method")]
    of_ure = largest["method"] == "ure"
    of_corrected = largest["method"].isin(CORRECTED)
    ure = largest.loc[of_ure, [*shared, "fall"]]
    pairs = largest[of_corrected].merge(ure, on=shared, suffixes=("", RIGHT))
    return cases(pairs, pairs["fall"], AT_MOST, pairs["fall_right"])


@claim("even", "points per 1,000 tuples")
def corrected_grows_more_steeply(evidence: Evidence) -> Frame:
    """The slope of the mean accuracy against n, fitted by least squares, is steeper for ReLU or ABS
    than for URE, in points per 1,000 tuples.

    "their accuracy growth slopes significantly surpass those of URE" (Section V-D)
    """
    pairs = slopes(evidence.base_cells, CORRECTED, "ure")
    return cases(pairs, pairs["slope"], ABOVE, pairs["slope_right"])


@claim("one-sided", "points per 1,000 tuples")
def corrected_grows_significantly_more_steeply(evidence: Evidence) -> Frame:
    """The lower end of the interval for the slope of the mean accuracy against n of ReLU or ABS
    minus that of URE, by the deviations over trials, lies above zero.

    "their accuracy growth slopes significantly surpass those of URE" (Section V-D)
    """
    pairs = slopes(evidence.base_cells, CORRECTED, "ure")
    pairs = pairs.dropna(subset=["variance", "variance_right"])
    variance = pairs["variance"] + pairs["variance_right"]
    quartic = pairs["quartic"] + pairs["quartic_right"]
    freedom = variance**2 / quartic  # Welch and Satterthwaite's
    reach = student_quantile(freedom, evidence.rule["level"]) * np.sqrt(variance)
    difference = pairs["slope"] - pairs["slope_right"]
    return cases(pairs, difference - reach, ABOVE, 0.0)


@claim("even")
def no_saturation_on_hard_data(evidence: Evidence) -> Frame:
    """On CIFAR-10 and SVHN, the mean accuracy of ReLU or ABS at the largest n is higher than at the
    one before.

    "no performance saturation observed in high-noise scenarios (e.g., CIFAR-10 and SVHN)" (Section
    V-D)
    """
    cells = evidence.base_cells
    hard = cells["dataset"].isin(["cifar-10", "svhn"])
    steps = step_up(cells[hard & cells["method"].isin(CORRECTED)], "n")
    return means(steps.drop_duplicates(other_keys("n"), keep="last"))


def spans(evidence: Evidence, losses: Frame) -> Frame:
    """Compare the span of a cell's means over the losses with the wider margin."""
    means_of_cell = losses.groupby(other_keys("loss"))["mean"]
    cells = means_of_cell.agg(["max", "min", "count", "size"]).reset_index()
    cells = cells.query("size > 1")
    finished = cells["count"] == cells["size"]  # a diverged loss matters
    span = (cells["max"] - cells["min"]).where(finished)
    return cases(cells, span, AT_MOST, evidence.rule["wider_margin"])


@claim()
def loss_hardly_matters(evidence: Evidence) -> Frame:
    """Over the losses of Table I that were run, the means of URE, ReLU or ABS in a cell span no
    more than the wider margin.

    "the MDPU algorithm shows minimal sensitivity to loss function selection" (Section V-D)
    """
    return spans(evidence, with_printed_ramp(evidence))


@claim()
def loss_hardly_matters_with_the_usual_ramp(evidence: Evidence) -> Frame:
    """Over the losses of Table I, with the usual ramp in place of the printed one, the means of
    URE, ReLU or ABS in a cell span no more than the wider margin.

    "the MDPU algorithm shows minimal sensitivity to loss function selection" (Section V-D)
    """
    return spans(evidence, with_usual_ramp(evidence))


@claim("first of four")
def every_loss_beats_the_baselines(evidence: Evidence) -> Frame:
    """With each loss of Table I that was run, URE, ReLU or ABS is more accurate than the best of
    Siamese, Contrastive and K-Means in the same row.

    "regardless of the loss function employed, the algorithm maintains consistently high
    classification performance" (Section V-D)
    """
    return means(beside_baselines(with_printed_ramp(evidence), evidence))


@claim("first of four")
def every_loss_beats_the_baselines_with_the_usual_ramp(evidence: Evidence) -> Frame:
    """With each loss of Table I, and the usual ramp in place of the printed one, URE, ReLU or ABS
    is more accurate than the best of Siamese, Contrastive and K-Means in the same row.

    "regardless of the loss function employed, the algorithm maintains consistently high
    classification performance" (Section V-D)
    """
    return means(beside_baselines(with_usual_ramp(evidence), evidence))


@claim("even")
def more_unlabeled_images_help(evidence: Evidence) -> Frame:
    """With several times as many unlabeled images and the same tuples, the mean accuracy of URE,
    ReLU or ABS is higher.

    "Leveraging pointwise unlabeled data to participate in the training of weakly supervised
    learning models can enhance the generalization ability of classifiers" (Section I)
    """
    return means(beside_base(evidence, ["unlabeled 2n", "unlabeled 3n"]))


@claim()
def optimizer_hardly_matters(evidence: Evidence) -> Frame:
    """With AdamW in place of Adam, the mean of URE, ReLU or ABS in a cell moves by no more than the
    wider margin.

    "an unbiased risk estimator that is independent of specific loss functions and optimizers"
    (Section I, second contribution)
    """
    pairs = beside_base(evidence, ["optimizer adamw"])
    change = (pairs["mean"] - pairs["mean_right"]).abs()
    return cases(pairs, change, AT_MOST, evidence.rule["wider_margin"])


@claim(unit="")
def error_falls_at_the_parametric_rate(evidence: Evidence) -> Frame:
    """The slope of the logarithm of the error, 100 minus the mean accuracy of URE, ReLU or ABS,
    against the logarithm of n, fitted by least squares over three numbers of tuples or more, is
    -1/2 or steeper.

    "achieving the optimal parametric rate for empirical risk minimization" (Section III-C, after
    Theorem 2)
    """
    cells = proposed(evidence.base_cells)
    error = 100 - cells["mean"].astype(float)
    logs = cells.assign(n=np.log(cells["n"].astype(float)), error=np.log(error))
    keys = other_keys("n")
    rows = []
    exponents = []
    for key, points in logs.groupby(keys):
        if len(points) > 2:
            rows.append(key)
            exponents.append(np.polyfit(points["n"], points["error"], 1)[0])
    return cases(pd.DataFrame(rows, columns=keys), exponents, AT_MOST, -0.5)


def check_claims(
    ours: Evidence, paper: Evidence, readings: Mapping[str, Evidence] | None = None
) -> tuple[Frame, Frame]:
    """Check every claim on our runs and on the paper's numbers; return a row per claim, and one per
    case.

    A claim's ``ours`` and ``paper`` are the pass rates in words (``5 of 6``, ``not run``), beside
    the numbers that they are made of; ``by_chance`` is the pass rate that noise alone would give,
    where that can be told; then comes what `_in_single_trials` returns, of ours; ``effect``, the
    median of left minus right over our cases, in ``unit``; and the ``status`` on our runs. For each
    of the `readings`, our runs as another reading has them, it has the pass rate under its name,
    and ``<name>_status``. A case has the key columns that apply, ``left``, ``right``, and whether
    the statement ``holds``.
    """
    rows = []
    tables = []
    for claim in CLAIMS.values():
        our_cases = claim.check(ours)
        paper_cases = claim.check(paper)
        rows.append(_claim_row(claim, our_cases, paper_cases, ours, readings or {}))
        tables.append(our_cases.assign(claim=claim.name, evidence="ours"))
        tables.append(paper_cases.assign(claim=claim.name, evidence="paper"))

    columns = ["claim", "evidence", *CASE]
    every_case = pd.DataFrame(columns=columns)
    with_cases = [table for table in tables if len(table)]
    if with_cases:
        every_case = pd.concat(with_cases, ignore_index=True)
    integers = dict.fromkeys(("tuple_size", "n", "seed"), "Int64")
    return pd.DataFrame(rows), every_case[columns].astype(integers)


def _claim_row(
    claim: Claim,
    our_cases: Frame,
    paper_cases: Frame,
    ours: Evidence,
    readings: Mapping[str, Evidence],
) -> dict[str, Any]:
    """Return what `check_claims` says of a claim, by its cases and by our runs in other
    readings.
    """
    row = {
        "claim": claim.name,
        "place": claim.place,
        "quote": claim.quote,
        "statement": claim.statement,
        "by_chance": CHANCE[claim.chance](ours.rule) if claim.chance else None,
        **_rate("ours", our_cases, NOT_RUN),
        "effect": _effect(our_cases),
        "unit": claim.unit,
        **_rate("paper", paper_cases, NO_NUMBERS),
        **_in_single_trials(claim, ours),
    }
    row["status"] = status(row)
    for name, evidence in readings.items():
        rate = _rate("ours", claim.check(evidence), NOT_RUN)
        row[name] = rate["ours"]
        row[f"{name}_status"] = status({**row, **rate, **_in_single_trials(claim, evidence)})
    return row


def _rate(source: str, cases: Frame, no_cases: str) -> dict[str, Any]:
    """Return the pass rate of cases in words, and the numbers that it is made of, under names with
    their source.
    """
    count = len(cases)
    hold = int(cases["holds"].sum())
    return {
        source: f"{hold} of {count}" if count else no_cases,
        f"{source}_cases": count,
        f"{source}_hold": hold,
        f"{source}_rate": hold / count if count else None,
    }


def _effect(cases: Frame) -> float | None:
    """Return the median of left minus right over cases, None if there is none."""
    gaps = cases["left"].astype(float) - cases["right"].astype(float)
    median = gaps.median()
    return None if pd.isna(median) else float(median)


def status(row: Mapping[str, Any]) -> str:
    """Return in a word how a claim fares on our runs.

    *not run* without a case. *inconclusive*: the interval of the share in single trials holds the
    rate that noise alone would give. *fails*: the claim holds in a share of at most `FEW_CASES`, or
    that interval lies below the rate of noise. *holds*: in a share of `MOST_CASES` or more.
    *partly*: the rest.
    """
    rate = row["ours_rate"]
    chance = row["by_chance"]
    low = row["trial_low"]
    high = row["trial_high"]
    if rate is None:
        return NOT_RUN
    tested = chance is not None and low is not None
    if tested and low <= chance <= high:
        return INCONCLUSIVE
    if rate <= FEW_CASES or (tested and high < chance):
        return FAILS
    if rate >= MOST_CASES:
        return HOLDS
    return PARTLY


def _in_single_trials(claim: Claim, evidence: Evidence) -> dict[str, Any]:
    """Return how often a claim holds in one trial, with an interval that respects what the trials
    share.

    Cells share images and, where one is in several cases, trials. So the claim is checked on each
    seed alone, and the interval is by clusters of cases: splits, weights and order are seeded by
    the cell and the seed, so trials of two datasets or of two seeds are independent. Numbers are
    missing where fewer than two seeds have cases.
    """
    cases_of_seeds = []
    for seed, of_seed in evidence.single_trials.items():
        cases = claim.check(of_seed)
        if len(cases):
            cases_of_seeds.append(cases.assign(seed=seed))

    trials = len(cases_of_seeds)
    rate = low = high = None
    words = NOT_TESTED
    if trials > 1:
        every_case = pd.concat(cases_of_seeds)
        clusters = every_case.groupby(["dataset", "seed"], dropna=False)["holds"]
        rate = every_case["holds"].mean()
        low, high = share_interval(clusters.sum(), clusters.size(), evidence.rule["level"])
        words = f"{100 * rate:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    return {
        "trial_rate": rate,
        "trial_low": low,
        "trial_high": high,
        "trials": trials,
        "in_single_trials": words,
    }


def write_claims(plan: Plan, metrics: Path, csv: Path, json: Path, cases: Path) -> None:
    """Check the claims on a plan's runs and on the paper's numbers; write them (CSV, JSON) and
    every case (CSV).
    """
    of_plan = read_table(metrics, [*AXES, *MEASURES])
    every_run = pd.concat([of_plan, training_metrics(plan)], ignore_index=True)
    ours = our_evidence(plan, every_run)
    paper = paper_evidence(plan.config["comparison"])
    readings = {}
    for name, reading in Readings(plan.config).named.items():
        if name != PROTOCOL:
            readings[name] = our_evidence(plan, every_run, reading)

    claims, every_case = check_claims(ours, paper, readings)
    write_csv(claims, csv)
    write_csv(every_case, cases)
    records = claims.astype(object).where(claims.notna(), None).to_dict("records")
    write_json(json, {"claims": records})
