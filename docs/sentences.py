"""Numbers that stand within sentences of the documents, from the files of results/reference."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

import numpy as np
import pandas as pd
import performance_tables
from rows import (
    IN_WORDS,
    JUDGED,
    REFERENCE,
    ROOT,
    between,
    claims,
    comparison,
    in_sentence,
    of_protocol,
    read,
    shipped,
)

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.comparison import Trials, welch_interval
from mdpu.pipeline.evaluate.evidence import step_up
from mdpu.pipeline.evaluate.published import (
    BASELINES,
    CORRECTED,
    PROPOSED,
    in_one_reading,
    published_cells,
)
from mdpu.pipeline.plan import CELL, LOGISTIC
from mdpu.pipeline.store import read_runs

EPOCHS = 100  # of the protocol
LEVEL = 0.95
ROW = ["dataset", "tuple_size", "n", "prior"]  # of a table
LETTERS = "emnist-letters-a-i"
OF_OTHERS = ("llp", "nnpu", "bag-em", *BASELINES)
# Methods that learn from bags, and those that see labels or test images.
BAGS = ("bag-relu", "bag-free", "bag-em")
BY_LABELS = ("supervised", "chance", "untrained", "kmeans")


# -- rows ------------------------------------------------------------------------------------------


def judged() -> pd.DataFrame:
    """Return the numbers of the proposed methods that were run, in one reading of the letters."""
    rows = in_one_reading(comparison())
    return rows[rows["method"].isin(PROPOSED)]


@cache
def table_runs() -> pd.DataFrame:
    """Return the runs of Tables II to V.

    Their rows are those of published numbers; the letters count in both readings.
    """
    rows = comparison()[ROW].drop_duplicates()
    return of_protocol(shipped("paper-reference")).merge(rows, on=ROW)


@cache
def table_cells() -> pd.DataFrame:
    """Return the cells of Tables II to V that were run: keys, mean, std and trials."""
    cells = table_runs().groupby(list(CELL), as_index=False)["accuracy"]
    return cells.agg(["mean", "std", "count"]).rename(columns={"count": "trials"})


def mean_of(cells: pd.DataFrame, method: str) -> pd.Series:
    """Return a method's mean by row."""
    return cells[cells["method"] == method].set_index(ROW)["mean"]


def highest_published() -> pd.Series:
    """Return the paper's highest number of any method, by row of a table that was run."""
    return in_one_reading(comparison()).groupby(ROW)["published_mean"].max()


def of(part: int, whole: int) -> str:
    """Return a count among others as a part of a sentence."""
    return f"{part} of {whole}"


def share(holds: Iterable[bool]) -> str:
    """Return in how many of some cases something holds."""
    cases = list(holds)
    return of(sum(cases), len(cases))


# -- verdicts --------------------------------------------------------------------------------------


def reading_counts() -> pd.DataFrame:
    """Return the verdict counts of the readings by name, and ``trials``, which all readings of a
    number share.
    """
    rows = pd.DataFrame(json.loads((REFERENCE / "verdicts.json").read_text())["numbers"])
    counts = rows.groupby(["reading", "verdict"]).size().unstack(fill_value=0)
    counts["trials"] = rows.groupby("reading")["trials"].min()
    assert rows["trials"].nunique() == 1, "readings beside one another have different trials"
    return counts.reindex(columns=[*JUDGED, "trials"], fill_value=0)


def verdict_numbers() -> dict[str, str]:
    """Return the counts of verdicts, of all numbers and by method."""
    rows = judged()
    least = rows["trials"].min()
    most = rows["trials"].max()
    assert least == most, "numbers of the headline have different trials"

    counts = rows.groupby(["method", "verdict"]).size().unstack(fill_value=0)
    counts = counts.reindex(columns=JUDGED, fill_value=0)
    made = {
        "counts": in_sentence(counts.sum()),
        "trials": f"{IN_WORDS[int(least)]} trials",
        "inconclusive": str(counts["inconclusive"].sum()),
        "differing": str(counts["differs"].sum()),
        "ure-reproduced": of(counts.loc["ure", "reproduced"], int(counts.loc["ure"].sum())),
        "ure-close": str(counts.loc["ure", "close"]),
    }
    for method in CORRECTED:
        made[f"differing-{method}"] = str(counts.loc[method, "differs"])
    return made


def reading_numbers() -> dict[str, str]:
    """Return the counts of verdicts under the readings that sentences name."""
    counts = reading_counts()
    made = {"equal-trials": f"{IN_WORDS[int(counts['trials'].iloc[0])]} trials"}
    readings = {
        "probable": "epochs all, loss hinge",
        "protocol": "protocol",
        "all": "epochs all",
        "literal": "epochs all, letters all-26",
    }
    for name, reading in readings.items():
        verdicts = list(counts.loc[reading, JUDGED])
        made[f"reading-{name}"] = in_sentence(verdicts)
        made[f"list-{name}"] = "{}, {}, {} and {}".format(*verdicts)
    return made


def letter_numbers() -> dict[str, str]:
    """Return how far all 26 letters are from the paper, and the number that stands in two rows."""
    rows = comparison()
    rows = rows[rows["method"].isin(PROPOSED)]
    below = -rows.loc[rows["dataset"] == "emnist-letters", "difference"]
    twice = rows[(rows["tuple_size"] == 3) & (rows["n"] == 12_000) & (rows["prior"] == "0.4")]
    twice = twice[twice["method"] == "abs"].set_index("dataset")
    by_dataset = twice["mean"]
    published = twice.loc["mnist", ["published_mean", "published_std"]]
    cells = table_cells().query("prior == '0.5' and method in @PROPOSED")
    means = cells.set_index(["dataset", "tuple_size", "n", "method"])["mean"]
    return {
        "letters-raise": between(means.loc[LETTERS] - means.loc["emnist-letters"]),
        "letters-below": between(below, digits=0),
        "letters-cells": share(below > 0),
        "twice-published": "{} ± {}".format(*published),
        "twice-mnist": f"{by_dataset['mnist']:.1f}",
        "twice-fashion": f"{by_dataset['fashion-mnist']:.1f}",
    }


# -- claims ----------------------------------------------------------------------------------------

# Names of claims in sentences.
CLAIMS = {
    "above": "corrected-beats-ure",
    "above-significantly": "corrected-beats-ure-significantly",
    "negative": "ure-risk-goes-negative",
    "falls": "ure-accuracy-falls-with-its-risk",
    "hold": "corrected-accuracy-holds",
    "unlabeled-help": "more-unlabeled-images-help",
    "decay": "weight-decay-does-not-help",
    "optimizer": "optimizer-hardly-matters",
    "parametric": "error-falls-at-the-parametric-rate",
}


def claim_numbers() -> dict[str, str]:
    """Return in how many cases claims hold."""
    rows = claims()
    made = {name: rows.loc[claim, "ours"] for name, claim in CLAIMS.items()}
    for name in ("above", "hold"):
        made[f"{name}-single"] = rows.loc[CLAIMS[name], "in_single_trials"]
    made["above-probable"] = rows.loc["corrected-beats-ure", "probable"]
    made["steeper-paper"] = rows.loc["corrected-grows-more-steeply", "paper"]
    made["steeper-paper-significantly"] = rows.loc[
        "corrected-grows-significantly-more-steeply", "paper"
    ]
    return made


# A statement of the article, the claims that it stands on, and what `step_up` adds by axis.
ARTICLE = {
    "1. URE's risk falls below zero, and its accuracy with it": [
        "ure-risk-goes-negative",
        "ure-accuracy-falls-with-its-risk",
    ],
    "2. The corrections hold the accuracy, within a point of its best": [
        "corrected-accuracy-holds"
    ],
    "3. They are more accurate than URE": ["corrected-beats-ure"],
    "3. They are so significantly": ["corrected-beats-ure-significantly"],
    "3. The proposed methods beat the baselines": ["proposed-beat-baselines"],
    "4. They grow more steeply with n": ["corrected-grows-more-steeply"],
    "4. They do so significantly": ["corrected-grows-significantly-more-steeply"],
    "4. They are steadier over n": ["corrected-is-steadier-over-n"],
    "5. More tuples help": ["accuracy-grows-with-n"],
    "6. The loss hardly matters": ["loss-hardly-matters"],
}
STATUS = {"holds": "yes", "partly": "partly", "inconclusive": "open", "fails": "no"}


def article_claims() -> list[list[str]]:
    """Return a line for each statement of the paper: ours, and the paper's own numbers."""
    rows = claims()
    lines = []
    for statement, names in ARTICLE.items():
        ours = [f"{STATUS[rows.loc[name, 'status']]}: {rows.loc[name, 'ours']}" for name in names]
        paper = [rows.loc[name, "paper"] for name in names]
        shown = [text if text[0].isdigit() else "–" for text in paper]
        lines.append([statement, ", ".join(ours), ", ".join(dict.fromkeys(shown))])

    ours = table_cells()
    ours = ours[ours["method"].isin(PROPOSED)]
    published = published_cells().rename(columns={"published_mean": "mean"})
    published = published[published["method"].isin(PROPOSED)]
    for axis, statement in {
        "tuple_size": "5. Triples help",
        "prior": "5. A lower prior helps",
    }.items():
        counts = [easier(cells, axis) for cells in (ours, published)]
        lines.insert(-1, [statement, *counts])
    return lines


def easier(cells: pd.DataFrame, axis: str) -> str:
    """Return in how many steps along an axis the accuracy changes as the paper says: it grows with
    the tuple size and falls with the prior.
    """
    steps = step_up(cells, axis)
    if axis == "prior":
        return share(steps["mean"] < steps["mean_right"])
    return share(steps["mean"] > steps["mean_right"])


# -- tuples as bags --------------------------------------------------------------------------------


def bag_numbers() -> dict[str, str]:
    """Return how the methods on bags stand beside the others."""
    cells = table_cells()
    bag_relu = mean_of(cells, "bag-relu")
    over_paper = (bag_relu - highest_published()).dropna()

    rivals = beside_bags()
    over_rivals = rivals["mean_bags"] - rivals["mean"]
    best_rival = rivals.loc[rivals.groupby(ROW)["mean"].idxmax()]
    low, _ = welch_interval(
        Trials(best_rival["mean_bags"], best_rival["std_bags"], best_rival["trials"]),
        Trials(best_rival["mean"], best_rival["std"], best_rival["trials"]),
        LEVEL,
    )
    of_rivals = over_rivals.groupby([rivals[axis] for axis in ROW]).min()
    proposed = cells[cells["method"].isin(PROPOSED)].groupby(ROW)["mean"].max()
    without_prior = bag_relu - mean_of(cells, "bag-free")
    place = ("mnist", 2, 10_000, "0.5")
    supervised = (mean_of(cells, "supervised") - bag_relu).loc["mnist", :, 10_000]
    return {
        "pairs-paper": f"{highest_published()[place]:.1f}",
        "pairs-bags": f"{bag_relu[place]:.1f}",
        "pairs-supervised": f"{mean_of(cells, 'supervised')[place]:.1f}",
        "bags-paper": share(over_paper > 0),
        "bags-paper-least": f"{over_paper.min():.1f}",
        "bags-paper-median": f"{over_paper.median():.1f}",
        "bags-paper-most": f"{over_paper.max():.1f}",
        "bags-rivals": share(of_rivals > 0),
        "bags-rivals-significantly": str(int((low > 0).sum())),
        "bags-least": f"{of_rivals.loc[over_paper.index].clip(upper=over_paper).min():.2f}",
        "bags-proposed": share(bag_relu > proposed),
        "bags-free-most": f"{without_prior.max():.2f}",
        "bags-free-near": share(without_prior < 1.5),
        "bags-gap-pairs": in_a_row(supervised.loc[2]),
        "bags-gap-triples": in_a_row(supervised.loc[3]),
        **bag_run_numbers(),
    }


def beside_bags() -> pd.DataFrame:
    """Return the cells of methods that neither learn from bags nor see labels, beside `bag-relu`
    (``mean_bags``, ``std_bags``) by the trials that both have.
    """
    runs = table_runs()
    of_bags = runs.loc[runs["method"] == "bag-relu", [*ROW, "seed", "accuracy"]]
    rivals = runs[~runs["method"].isin([*BAGS, *BY_LABELS])]
    both = rivals.merge(of_bags, on=[*ROW, "seed"], suffixes=("", "_bags"))
    cells = both.groupby([*ROW, "method"], as_index=False)
    return cells.agg(
        mean=("accuracy", "mean"),
        std=("accuracy", "std"),
        mean_bags=("accuracy_bags", "mean"),
        std_bags=("accuracy_bags", "std"),
        trials=("seed", "count"),
    )


def rival_numbers() -> dict[str, str]:
    """Return how the part-wise correction and expectation maximisation stand beside others, by
    equal trials.
    """
    cells = table_cells()
    part = mean_of(cells, "relu-part")
    above = [part > mean_of(cells, method).loc[part.index] for method in CORRECTED]

    runs = table_runs()
    runs = runs[runs["n"] == runs.groupby("dataset")["n"].transform("min")]
    wide = runs.pivot(index=[*ROW, "seed"], columns="method", values="accuracy")
    of_common_seeds = wide[[*OF_OTHERS, *PROPOSED]].dropna()
    nearest = of_common_seeds.groupby(ROW).mean().idxmax(axis=1)
    return {
        "part-above": share(pd.concat(above)),
        "em-nearest": share(nearest == "bag-em"),
    }


def in_a_row(values: pd.Series) -> str:
    """Return three numbers as a part of a sentence."""
    return "{:.1f}, {:.1f} and {:.1f}".format(*values)


def bag_run_numbers() -> dict[str, str]:
    """Return what single runs of the methods on bags say of their end and of the prior."""
    runs = of_protocol(read("bags.csv"))
    bag_relu = runs[runs["method"] == "bag-relu"]
    free = runs[runs["method"] == "bag-free"]
    prior = free["prior"].astype(float)
    error = (free["estimated_prior"] - prior).abs().round(4)
    covered = prior.between(free["estimated_prior_low"], free["estimated_prior_high"])
    return {
        "bags-end": share(bag_relu["best"] - bag_relu["accuracy"] <= 1),
        "prior-near": share(error <= 0.03),
        "prior-largest": f"{error.max():.2f}",
        "prior-covered": share(covered),
    }


# -- losses, baselines, other datasets -------------------------------------------------------------


def usual_ramp_numbers() -> dict[str, str]:
    """Return what the proposed methods reach with the ramp loss as it is usually written, in the
    order URE, ReLU, ABS.
    """
    runs = read("runs.csv")
    runs = runs[(runs["loss"] == "usual-ramp") & (runs["prior"] == "0.5")]
    means = runs.groupby(["dataset", "tuple_size", "method"])["accuracy"].mean()
    made = {"ramp-runs": str(len(runs))}
    for dataset in ("mnist", "fashion-mnist", LETTERS):
        pairs = means[dataset, 2].loc[list(PROPOSED)]
        triples = means[dataset, 3]
        made[f"ramp-{dataset}-pairs"] = in_a_row(pairs)
        made[f"ramp-{dataset}-triples"] = between(triples)
    return made


def squared_loss_numbers() -> dict[str, str]:
    """Return what the squared loss costs URE on MNIST at prior 0.5, by the trials that it has."""
    runs = shipped("paper-reference").query(
        "variant == 'base' and method == 'ure' and dataset == 'mnist' and prior == '0.5' "
        "and n == 10_000"
    )
    seeds = runs.loc[runs["loss"] == "squared", "seed"]
    means = runs[runs["seed"].isin(seeds)].groupby(["loss", "tuple_size"])["accuracy"].mean()
    cost = means["logistic"] - means["squared"]
    return {"squared-cost": between(cost, digits=0)}


def tuple_part_numbers() -> dict[str, str]:
    """Return where URE's tuple part of the risk ends on MNIST pairs at prior 0.5, on average."""
    runs = table_runs().query(
        "dataset == 'mnist' and tuple_size == 2 and n == 10_000 and prior == '0.5' "
        "and method == 'ure'"
    )
    parts = ["risk_tuple_positive", "risk_tuple_negative"]
    ends = []
    for run in runs.itertuples():
        history = read_runs(ROOT / run.file, [run.key])[run.key].history
        ends.append(history[parts].iloc[-1].sum())
    return {"tuple-part": f"{round(np.mean(ends), -3):,.0f}"}


def slope_numbers() -> dict[str, str]:
    """Return the slopes of the error over n on MNIST at prior 0.5, in logarithms, as the claim of
    the parametric rate fits them.
    """
    runs = of_protocol(shipped("paper-reference"))
    runs = runs.query("dataset == 'mnist' and prior == '0.5' and law == 'dominant'")
    runs = runs[runs["method"].isin(PROPOSED)]
    means = runs.groupby(["method", "tuple_size", "n"])["accuracy"].mean()
    slopes = []
    for _, by_n in means.groupby(["method", "tuple_size"]):
        n = by_n.index.get_level_values("n").to_numpy(float)
        if len(n) > 2:
            slopes.append(np.polyfit(np.log(n), np.log(100 - by_n.to_numpy()), 1)[0])
    return {"slopes": f"{max(slopes):.2f} to {min(slopes):.2f}"}


# The rates that were tried, and the readings of their runs.
RATES = {"1e-3": "protocol", "2e-3": "rate 2e-3", "4e-5": "rate 4e-5", "2e-5": "rate 2e-5"}


def rate_numbers() -> dict[str, str]:
    """Return the mean accuracy of the proposed methods by dataset and rate, at prior 0.5 and
    n = 10,000, and what URE lacks at prior 0.6.
    """
    runs = of_base_or_rates(read("runs.csv"))
    means = runs.groupby(["dataset", "reading"])["accuracy"].mean()
    made = {}
    for dataset in ("mnist", "fashion-mnist"):
        for rate, reading in RATES.items():
            made[f"rate-{dataset}-{rate}"] = f"{means[dataset, reading]:.1f}"

    pairs = comparison().query("method == 'ure' and tuple_size == 2")
    pairs = in_one_reading(pairs)
    below = {prior: rows["difference"] for prior, rows in pairs.groupby("prior")}  # ours less paper
    mnist = pairs.query("dataset == 'mnist' and n == 10_000").set_index("prior")["difference"]
    slow = read("readings/compared.csv").query(
        "choices == 'rate' and rate == '4e-5' and epochs == 'last-ten'"
    )
    return made | {
        "ure-pairs-level": between(below["0.4"]),
        "ure-pairs-below": between(below["0.6"]),
        "ure-gap-lower": f"{-mnist['0.4']:+.1f}",
        "ure-gap-higher": f"{-mnist['0.6']:+.1f}",
        "slow-ure": between(slow["gap_ure"]),
    }


def of_base_or_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the first three trials of the proposed methods on pairs and triples, at prior 0.5 and
    n = 10,000, with the rates that were tried.
    """
    base = (runs["variant"] == BASE) | (runs["reading"] != "protocol")
    tried = runs["reading"].isin(RATES.values()) & base
    proposed = runs["method"].isin(PROPOSED) & (runs["loss"] == LOGISTIC)
    place = (runs["prior"] == "0.5") & (runs["n"] == 10_000) & runs["tuple_size"].isin([2, 3])
    return runs[tried & proposed & place & (runs["seed"] <= 3)]


def siamese_rows() -> pd.DataFrame:
    """Return `untrained`, the paper's Siamese and ours (``mean``) by row, in percent."""
    published = in_one_reading(comparison())
    published = published[published["method"] == "siamese"].set_index(ROW).sort_index()
    runs = of_protocol(read("runs.csv"))
    controls = runs[runs["method"] == "untrained"]
    untrained = controls.groupby(ROW)["accuracy"].mean()
    return published[["published_mean", "mean"]].assign(untrained=untrained)


def siamese_lines(titles: dict[str, str]) -> list[list[str]]:
    """Return the ranges of Siamese and of a control that learns nothing, by dataset and size."""
    rows = siamese_rows()
    lines = []
    for dataset, title in titles.items():
        for size, name in ((2, "pairs"), (3, "triples")):
            some = rows.loc[dataset, size]
            columns = [some[column] for column in ("untrained", "published_mean", "mean")]
            lines.append([f"{title}, {name}", *(between(column) for column in columns)])
    return lines


def siamese_numbers() -> dict[str, str]:
    """Return in how many rows the paper's Siamese is no better than no learning."""
    rows = siamese_rows()
    below = rows["published_mean"] < rows["untrained"]
    return {
        "siamese-no-better": share(below),
        "siamese-fashion": share(below.loc["fashion-mnist"]),
        "siamese-triples": share(~below.loc["mnist", 3]),
    }


def own_split_numbers() -> dict[str, str]:
    """Return what sentences say of other draws of EMNIST and SVHN."""
    rows = comparison("own-split")
    met = rows["verdict"].isin(["reproduced", "close"])
    digits = rows["dataset"] == "own-digits"
    of_ten = rows["dataset"] == "own-balanced-digits"
    lower = rows[of_ten & (rows["method"] == "relu") & (rows["verdict"] == "differs")]
    runs = of_protocol(shipped("own-split"))
    means = runs.groupby([*ROW, "method"])["accuracy"].mean().unstack("method")
    published = published_cells().groupby(ROW)["published_mean"].max()
    bests = {"own-digits": "emnist-digits", "own-balanced-digits": "emnist-balanced"}
    gains = []
    for dataset, name in bests.items():
        for method in ("bag-relu", "bag-free"):
            gain = means.loc[dataset, method].dropna() - published.loc[name]
            gains += gain.dropna().tolist()
    every = means.xs(4_000, level="n").loc["own-balanced", "supervised"].dropna()
    proposed = means.xs("0.5", level="prior")[list(PROPOSED)]
    raised = proposed.loc["own-balanced-digits"] - proposed.loc["own-balanced"]
    every_best = published.xs(4_000, level="n").loc["emnist-balanced"]
    (svhn,) = means.loc["own-svhn"].to_dict("records")
    return {
        "digits-met": str(int((met & digits).sum())),
        "digits-differ": str(int((digits & (rows["verdict"] == "differs")).sum())),
        "balanced-ure": share(met[of_ten & (rows["method"] == "ure")]),
        "balanced-relu": between(-lower["difference"]),
        "own-bags": share(gain > 0 for gain in gains),
        "own-bags-least": f"{min(gains):.1f}",
        "balanced-raised": between(raised.stack()),
        "balanced-supervised": between(every, digits=0),
        "balanced-less": share(every < every_best.loc[every.index]),
        "svhn-bags": f"{svhn['bag-relu']:.1f}",
        "svhn-abs": f"{svhn['abs']:.1f}",
        "svhn-supervised": f"{svhn['supervised']:.1f}",
        "svhn-constant": f"{svhn['chance']:.1f}",
    }


# -- precision, seconds ----------------------------------------------------------------------------


def run_numbers() -> dict[str, str]:
    """Return the precision and the devices of the headline's runs, and what a run takes."""
    keys = [*ROW, "method"]
    runs = of_protocol(shipped("paper-reference")).merge(judged()[keys], on=keys)
    epoch = performance_tables.processor_seconds().loc["plain", "relu"]
    on_gpu = runs["device"].str.startswith("NVIDIA")
    return {
        "float32-runs": f"{(runs['precision'] == 'float32').sum()} of the {len(runs)} runs",
        "gpu-runs": str(on_gpu.sum()),
        "relu-epoch": f"{epoch:.2f}",
        "relu-run": f"{EPOCHS * epoch:.0f}",
    }


def numbers() -> dict[str, str]:
    """Return the numbers within sentences, by their names."""
    made: dict[str, str] = {}
    for group in (
        verdict_numbers,
        reading_numbers,
        letter_numbers,
        claim_numbers,
        bag_numbers,
        rival_numbers,
        squared_loss_numbers,
        tuple_part_numbers,
        slope_numbers,
        rate_numbers,
        usual_ramp_numbers,
        siamese_numbers,
        own_split_numbers,
        run_numbers,
    ):
        more = group()
        assert not made.keys() & more.keys(), "two numbers have one name"
        made |= more
    return made
