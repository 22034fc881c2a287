"""What the documents count and measure, by name; `docs/_templates` puts it into sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from documents.rows import LAST_EPOCHS, LOSSES, PRIORS, SIZES, Reference, columns, counted, parts_of
from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.comparison import CLOSE, DIFFERS, REPRODUCED, spreads, welch_interval
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.evaluate.retrained import rounding_pairs, rounding_tolerances
from mdpu.pipeline.grid import ROW

GREY = ("mnist", "fashion-mnist", "emnist-letters-a-i")
DATASETS = ("mnist", "fashion-mnist", "emnist-letters", "emnist-letters-a-i")  # the letters in both readings
OF_SEVERAL_LOSSES = ("every-loss-beats-the-baselines",)  # the tables of the first edition have one
SIZE_NAMES = {size: name for name, size in SIZES.items()}


def differing(reference: Reference, cells: pd.DataFrame, with_dataset: bool = False) -> str:
    """Return in words which of some compared cells differ, and by how many points."""
    cells = cells[cells["verdict"] == DIFFERS]
    cells = cells.assign(title=[load_method(method).title for method in cells["method"]])
    groups = []
    for (dataset, title, size, n), group in cells.groupby(["dataset", "title", "tuple_size", "n"], sort=False):
        where = f"{reference.title(dataset)}, " if with_dataset else ""
        points = listed([f"{row.prior} ({row.difference:+.1f})" for row in group.itertuples()])
        groups.append(f"{where}{title} on {SIZE_NAMES[size]} with $n$ = {n:,} at {points}")
    return "; ".join(groups)


def verdicts_in_words(reference: Reference, cells: pd.DataFrame) -> str:
    """Return how many of some compared cells have each verdict, and which differ."""
    counts = counted(cells)
    are, differ = ("is" if counts["reproduced"] == 1 else "are"), ("differs" if counts["differs"] == 1 else "differ")
    which = f": {differing(reference, cells)}" if counts["differs"] else ""
    return (
        f"{counts['reproduced']} {are} reproduced, {counts['close']} close, {counts['inconclusive']} inconclusive and "
        f"{counts['differs']} {differ}{which}"
    )


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def numbers(values: Iterable[float], digits: int = 1) -> str:
    """Return numbers as a list in a sentence."""
    return listed([f"{value:.{digits}f}" for value in values])


def claim_facts(claims: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the claims by name: ``hold`` of ``cases``, ``fail``, the share in single trials, and the paper's."""
    facts = {}
    for row in claims.to_dict("records"):
        hold, cases = (int(part) for part in row["ours"].split(" of "))
        share, _, interval = str(row["in_single_trials"]).partition(" % (")
        low, _, high = interval.rstrip(")").partition(" to ")
        paper = dict(zip(("paper_hold", "paper_cases"), str(row["paper"]).split(" of "), strict=False))
        more = {"share": share, "low": low, "high": high} if interval else {}
        facts[row["claim"]] = {**row, "hold": hold, "cases": cases, "fail": cases - hold, **more, **paper}
    return facts


def baseline_facts(reference: Reference) -> dict[str, Any]:
    """Return how the baselines lie beside the paper's numbers and beside chance."""

    def differences(method: str, dataset: str, sizes: Sequence[str] = tuple(SIZES), larger: bool = False) -> pd.Series:
        rows = reference.compared(
            method=method,
            dataset=dataset,
            tuple_size=[SIZES[size] for size in sizes],
            n=reference.size(dataset, larger),
        )
        assert len(rows) == len(sizes) * len(PRIORS)
        return rows["difference"]

    far = pd.concat([differences(method, "mnist") for method in ("siamese", "kmeans")])
    mnist = [reference.mean(*where, "contrastive") for where in columns(["mnist"])]
    fashion = reference.compared(method="contrastive", dataset="fashion-mnist")
    facts: dict[str, Any] = {
        "contrastive_off": differences("contrastive", "mnist").abs().max(),
        "contrastive_chance": max(abs(mean - 50) for mean in mnist),
        "far": far.abs().min(),
        "kmeans_fashion": differences("kmeans", "fashion-mnist"),
        "fashion_contrastive": fashion["difference"].abs().max(),
        "fashion_contrastive_least": fashion["mean"].min(),
        "letters_kmeans": reference.compared(method="kmeans", dataset="emnist-letters-a-i")["difference"],
        "letters_siamese": reference.compared(method="siamese", dataset="emnist-letters-a-i")["difference"],
        "letters_contrastive": reference.compared(method="contrastive", dataset="emnist-letters-a-i")["mean"],
    }
    raw = [reference.last_epochs(*where, "kmeans")["raw_accuracy"] for where in columns(["mnist"])]
    facts["kmeans_raw"] = 100 * pd.concat(raw)
    for size in SIZES:
        own = [reference.last_epochs("mnist", size, prior, "siamese") for prior in PRIORS]
        facts[f"siamese_negatives_{size}"] = numbers(100 * rates["true_negative_rate"].mean() for rates in own)
        for method in ("siamese", "kmeans"):
            facts[f"{method}_{size}"] = differences(method, "mnist", [size])
            means = [reference.mean("mnist", size, prior, method, n=12_000) for prior in PRIORS]
            facts[f"{method}_{size}_12000"] = numbers(means)
    facts["siamese_turned"] = numbers(100 - reference.mean("mnist", "pairs", prior, "siamese") for prior in PRIORS)
    rates = reference.last_epochs("fashion-mnist", "pairs", "0.5", "siamese")
    facts["siamese_negatives_fashion"] = 100 * rates["true_negative_rate"].mean()
    facts["siamese_most"] = reference.cells.query("method == 'siamese'")["mean"].max()
    return facts


def part_facts(reference: Reference) -> dict[str, Any]:
    """Return what is said of the scope of the correction."""

    def gains(datasets: Sequence[str]) -> pd.Series:
        return pd.Series(
            reference.mean(*where, "relu-part") - reference.mean(*where, method)
            for where in columns(datasets)
            for method in ("relu", "abs")
        )

    drop: dict[str, list[float]] = {"relu": [], "relu-part": []}
    for method, drops in drop.items():
        for size in SIZES:
            accuracy = reference.history("mnist", size, "0.5", method).pivot(
                index="epoch", columns="seed", values="accuracy"
            )
            drops += (100 * (accuracy.max() - accuracy.tail(LAST_EPOCHS).mean())).tolist()
    return {
        "gain": gains(["mnist"]),
        "everywhere": gains(DATASETS),
        "urge": parts_of(reference.last_epochs("mnist", "pairs", "0.5", "ure").mean())[0],
        "runs": len(drop["relu"]),
        "drop": {method: pd.Series(drops) for method, drops in drop.items()},
    }


def figure4_facts(reference: Reference) -> dict[str, Any]:
    """Return at how many steps accuracy grows with n, and how many slopes are steeper than URE's."""
    rising, steeper = dict.fromkeys(PROPOSED, 0), 0
    sizes = range(2_000, 14_000, 2_000)
    for size in SIZES:
        slopes = {}
        for method in PROPOSED:
            means = [reference.mean("mnist", size, "0.5", method, n=n) for n in sizes]
            rising[method] += int(np.sum(np.diff(means) > 0))
            slopes[method] = np.polyfit(sizes, means, 1)[0]
        steeper += sum(slopes[method] > slopes["ure"] for method in PROPOSED[1:])
    return {"rising": rising, "steps": 2 * (len(sizes) - 1), "steeper": steeper}


def fashion_facts(reference: Reference) -> dict[str, Any]:
    """Return how far the proposed methods lie from the paper's numbers on Fashion-MNIST."""
    found = reference.compared(dataset="fashion-mnist").set_index("method")["difference"]
    published = reference.published["published_mean"].unstack("method")
    below = sum(int((published[method] < published["ure"]).sum()) for method in PROPOSED[1:])
    assert below == 1, "the paper has one number of a corrected method below URE's"
    return {
        "relu": found["relu"],
        "median": {method: found[method].abs().median() for method in PROPOSED},
    }


def letters_facts(reference: Reference) -> dict[str, Any]:
    """Return how far numbers lie below the published ones where the sides are read as the paper states them."""
    difference = reference.compared(dataset="emnist-letters")["difference"]
    return {
        "low": f"{-difference.max():.0f}",
        "high": f"{-difference.min():.0f}",
        "below": int((difference < 0).sum()),
        "cells": len(difference),
    }


def told_facts(reference: Reference) -> dict[str, Any]:
    """Return what a prior that is told wrong costs the published methods."""

    def mean(method: str, size: str, variant: str) -> float:
        return reference.mean("mnist", size, "0.5", method, variant=variant)

    def lost(methods: Sequence[str], sizes: Iterable[str], offset: str) -> list[float]:
        return [
            reference.lost("mnist", size, "0.5", method, variant=f"prior-{sign}-{offset}")
            for method in methods
            for size in sizes
            for sign in ("minus", "plus")
        ]

    above = [
        mean("relu-part", size, variant) > mean(method, size, variant)
        for method in PROPOSED
        for size in SIZES
        for variant in ("base", *(f"prior-{s}-{o}" for s in ("minus", "plus") for o in ("05", "10", "20")))
    ]
    assert all(above)
    return {
        "small": max(lost(PROPOSED, SIZES, "05")),
        **{size: lost(PROPOSED, [size], "10") for size in SIZES},
        **{
            f"part_{size}": max(lost(["relu-part"], [size], "05") + lost(["relu-part"], [size], "10")) for size in SIZES
        },
        "high": {method: mean(method, "pairs", "prior-plus-20") for method in (*PROPOSED, "relu-part")},
    }


def edition_facts(reference: Reference) -> dict[str, Any]:
    """Return what the second edition says otherwise than the first: verdicts, and claims that both speak to."""
    first = reference.first_comparison
    first, second = first[first["method"].isin(PROPOSED)], reference.compared()
    both = first.merge(second, on="cell", suffixes=("_first", ""))
    before, after = claim_facts(reference.first_claims), claim_facts(reference.read("claims"))
    definite = both[["verdict", "verdict_first"]].isin([REPRODUCED, CLOSE, DIFFERS]).all(axis=1)
    flipped = definite & ((both["verdict"] == DIFFERS) != (both["verdict_first"] == DIFFERS))
    differ = both[both[["verdict", "verdict_first"]].eq(DIFFERS).any(axis=1)]
    again = both[both[["verdict", "verdict_first"]].eq(DIFFERS).all(axis=1)]
    gone = both[(both["verdict_first"] == DIFFERS) & (both["verdict"] != DIFFERS)]
    claims = [
        (name, before[name], after[name])
        for name in after
        if name in before and after[name]["said_by"] != "project" and name not in OF_SEVERAL_LOSSES
    ]
    return {
        "cells": len(both),
        "same": int((both["verdict"] == both["verdict_first"]).sum()),
        "opposite": int(flipped.sum()),
        "first": counted(first[first["cell"].isin(both["cell"])]),
        "second": counted(second[second["cell"].isin(both["cell"])]),
        "correlation": f"{both['difference'].corr(both['difference_first']):.2f}",
        "differ": [{**row, "row": described(reference, row)} for row in differ.to_dict("records")],
        "again": differing(reference, again, with_dataset=True),
        "again_count": len(again),
        "gone": listed(
            [f"{load_method(r['method']).title} on {described(reference, r)}" for r in gone.to_dict("records")]
        ),
        "gone_count": len(gone),
        "ratio": {
            name: spreads(cells).set_index("method").loc["ure", "ratio"]
            for name, cells in (("first", first), ("second", second))
        },
        "claims": claims,
        "turned": [
            f"`{name}`: {was['status']} ({was['ours']}) in the first edition, {now['status']} ({now['ours']}) now"
            for name, was, now in claims
            if was["status"] != now["status"]
        ],
        "before": before,
    }


def described(reference: Reference, row: Mapping[str, Any]) -> str:
    """Return a cell of a table in words."""
    size = SIZE_NAMES[row["tuple_size"]]
    return f"{reference.title(row['dataset'])}, {size}, n = {row['n']:,}, prior {row['prior']}"


def rank_facts(reference: Reference) -> dict[str, Any]:
    """Return the average ranks of the proposed methods over our rows, and over the paper's."""
    ranks = reference.read("ranks")
    ranks = ranks[(ranks["unit"] == "row") & ranks["method"].isin(PROPOSED)].sort_values("average_rank")

    def said(source: str) -> str:
        own = ranks[ranks["source"] == source].to_dict("records")
        return ", ".join(f"{row['average_rank']:.2f} ({load_method(row['method']).title})" for row in own)

    sizes = ranks.groupby("source")["blocks"].first()
    ours, paper = "ours", next(source for source in sizes.index if source != "ours")
    order = ranks[ranks["source"] == ours].set_index("method")["average_rank"]
    return {
        "ours": said(ours),
        "paper": said(paper),
        "rows": int(sizes[ours]),
        "paper_rows": int(sizes[paper]),
        "abs_before_relu": order["abs"] < order["relu"],
    }


def spread_facts(reference: Reference) -> dict[str, Any]:
    """Return the deviations over trials beside the paper's."""
    found = spreads(reference.compared()).set_index("method").loc[list(PROPOSED)]
    (cells,) = set(found["cells"])
    return {
        "cells": cells,
        "ratios": numbers(found["ratio"]),
        "larger": listed(found["larger"].astype(str).tolist()),
        "runs": int(reference.compared()["trials"].sum()),
    }


def in_tables(reference: Reference, runs: pd.DataFrame) -> pd.Series:
    """Return whether runs belong to a row of the paper's Tables II to V."""
    stated = set(reference.published.reset_index()[list(ROW)].itertuples(index=False, name=None))
    names = {name: reference.stated(name) for name in runs["dataset"].unique()}
    rows = runs[list(ROW)].assign(dataset=runs["dataset"].map(names))
    return pd.Series([row in stated for row in rows.itertuples(index=False, name=None)], runs.index)


def trial_facts(reference: Reference) -> dict[str, Any]:
    """Return which methods have in every row of Tables II to V as many trials as the proposed ones."""
    runs = reference.runs.query("variant == 'base' and loss == 'logistic'")
    runs = runs[in_tables(reference, runs)]
    fewest = runs.groupby([*ROW, "method"]).size().groupby("method").min()
    others = fewest.index[fewest == reference.trials].difference(PROPOSED)
    return {"of": listed([f"`{method}`" for method in (*PROPOSED, *others)])}


def bag_facts(reference: Reference) -> dict[str, Any]:
    """Return what is counted of the methods on bags."""
    runs = reference.runs.query("variant == 'base'")
    runs = runs[in_tables(reference, runs)]
    rows = {
        method: set(group[list(ROW)].itertuples(index=False, name=None)) for method, group in runs.groupby("method")
    }
    assert all(rows[method] == rows["bag-relu"] for method in (*PROPOSED, "relu-part", "supervised", "bag-free"))
    facts: dict[str, Any] = dict.fromkeys(("paper", "paper_significant", "others", "others_significant", "free"), 0)
    gains, costs, above = [], [], []
    for dataset, size, n, prior in sorted(rows["bag-relu"]):
        row = (dataset, SIZE_NAMES[size], prior)
        relu, free = (reference.cell(*row, method, n=n) for method in ("bag-relu", "bag-free"))
        paper, others = reference.best_published(*row, n=n), reference.best_other(*row, n=n)
        rivals = [("others", others, int(others["count"]))]
        if dataset in GREY:  # each published number once
            rivals.append(("paper", paper, 3))
            gains.append(relu["mean"] - max(paper["mean"], others["mean"]))
            above.append(relu["mean"] - paper["mean"])
        for name, rival, trials in rivals:
            facts[name] += relu["mean"] > rival["mean"]
            low, _ = welch_interval(
                relu["mean"], relu["std"], int(relu["count"]), rival["mean"], rival["std"], trials, 0.95
            )
            facts[f"{name}_significant"] += low > 0
        costs.append(relu["mean"] - free["mean"])
    facts |= {"rows": len(costs), "paper_rows": len(above), "least_gain": min(gains), "free_cost": max(costs)}
    facts |= {"free": sum(cost <= 1.5 for cost in costs), "above": pd.Series(above)}
    facts["runs"] = int(runs["method"].isin(["bag-relu", "bag-free"]).sum())
    return facts


def estimate_facts(reference: Reference) -> dict[str, Any]:
    """Return how near the estimated priors of `bag-free` come to the true ones."""
    estimates = reference.read("tables/bags-priors")
    true = estimates["prior"].astype(float)
    error = (estimates["estimated_prior"] - true).abs()
    worst = estimates.loc[error.idxmax()]

    def inside(prior: pd.Series) -> pd.Series:
        return estimates["estimated_prior_low"].le(prior) & estimates["estimated_prior_high"].ge(prior)

    return {
        "near": int((error <= 0.03).sum()),
        "largest": error.max(),
        "worst": f"{SIZE_NAMES[worst['tuple_size']]} of {reference.title(worst['dataset'])} at {worst['prior']}",
        "held": int(inside(true).sum()),
        "runs": len(estimates),
        "told": 2 * len(estimates),
        "noticed": {
            offset: int(sum((~inside(true + side * offset)).sum() for side in (-1, 1))) for offset in (0.05, 0.1)
        },
    }


def choice_facts(reference: Reference) -> dict[str, Any]:
    """Return what epochs cost that are chosen without labels."""
    regrets = reference.read("tables/bags-choice")
    relu = regrets[regrets["method"] == "bag-relu"]
    others = pd.concat([reference.read(f"tables/bags-choice-{name}") for name in ("neighbours", "ablation")])
    ways = ("bags", "members", "protocol")
    return {
        "bag_relu": {way: np.average(relu[way], weights=relu["trials"]) for way in ways},
        "proposed": {way: numbers(regrets.groupby("method")[way].mean()[list(PROPOSED)]) for way in ways},
        "others": {way: others[way].max() for way in ways},
    }


def all_positive(reference: Reference, method: str) -> bool:
    """Return whether a method ends by calling every image positive, on pairs at prior 0.6 of every dataset."""
    ends = [reference.last_epochs(dataset, "pairs", "0.6", method) for dataset in DATASETS]
    return all(end["true_negative_rate"].max() == 0 for end in ends)


def llp_facts(reference: Reference) -> dict[str, Any]:
    """Return how learning from label proportions does at prior 0.4, and what it answers at the others on pairs."""
    rows = columns(DATASETS, ["0.4"])
    at_05 = reference.last_epochs("mnist", "pairs", "0.5", "llp")
    return {
        "best_at_04": all(reference.best_other(*row)["mean"] == reference.mean(*row, "llp") for row in rows),
        "all_positive_at_06": all_positive(reference, "llp"),
        "false_positives_at_05": 100 * (1 - at_05["true_negative_rate"].mean()),
    }


def digits_facts(reference: Reference) -> dict[str, Any]:
    """Return how the scopes of the correction do on digits: accuracies in percent, and rates of `relu-part`."""
    found = reference.scope
    wide = 100 * found["accuracy"].unstack("method")
    part, whole = (found.xs(method, level="method") for method in ("relu-part", "relu"))

    def matched(rates: pd.DataFrame, size: int, prior: str) -> float:
        row = rates.loc[(size, prior, "logistic")]
        return 100 * float(prior) * row["true_positive_rate"] + (100 - 100 * float(prior)) * row["true_negative_rate"]

    return {
        "accuracy": wide,
        "tpr": part["true_positive_rate"],
        "matched": {
            (size, prior): (matched(part, size, prior), matched(whole, size, prior))
            for size, prior in ((2, "0.7"), (3, "0.8"))
        },
        "class_leads": int((wide["relu-class"] > wide["relu-part"]).sum()),
    }


def scope_facts(reference: Reference) -> dict[str, Any]:
    """Return how part-wise correction does under four losses."""
    gains = {
        (size, loss): reference.mean("mnist", size, "0.5", "relu-part", loss=loss)
        - reference.mean("mnist", size, "0.5", "relu", loss=loss)
        for size in SIZES
        for loss in LOSSES
    }

    def rates(size: str, method: str) -> pd.DataFrame:
        return reference.last_epochs("mnist", size, "0.5", method, loss="ramp")

    return {
        "cells": len(gains),
        "lost": sum(gain < 0 for gain in gains.values()),
        "ramp": min(gains[size, "ramp"] for size in SIZES),
        "ramp_rates": {size: rates(size, "relu-part")["true_positive_rate"].mean() for size in SIZES},
    }


def figure5_facts(reference: Reference) -> dict[str, Any]:
    """Return how the paper's methods do with other losses, on every dataset: their answers, and points gained."""
    cells = [(*column, method) for column in columns(DATASETS, ["0.5"]) for method in PROPOSED]
    ramp = pd.concat([reference.last_epochs(*cell, loss="ramp") for cell in cells])
    gains = pd.Series([reference.mean(*cell, loss="squared") - reference.mean(*cell) for cell in cells])
    by_method = gains.groupby([method for *_, method in cells])
    return {
        "same_answer": (ramp["true_positive_rate"] + ramp["true_negative_rate"]).eq(1.0).all(),
        "squared": {str(method): gain for method, gain in by_method},
    }


def nnpu_facts(reference: Reference) -> dict[str, dict[str, Any]]:
    """Return the best epochs of nnPU on MNIST at prior 0.5, and where it ends."""
    found = {}
    for size in SIZES:
        history = reference.history("mnist", size, "0.5", "nnpu")
        best = history.loc[history.groupby("seed")["accuracy"].idxmax()]
        end = reference.mean("mnist", size, "0.5", "nnpu")
        found[size] = {"best": 100 * best["accuracy"], "epoch": best["epoch"], "end": end}
    return found


def tuning_facts(reference: Reference) -> dict[str, Any]:
    """Return the regrets of hyper-parameters that are chosen without labels, as columns."""
    return dict(reference.read("tables/bags-tuning")[["protocol", "bags", "members"]].items())


def gap_facts(reference: Reference) -> dict[tuple[str, str], str]:
    """Return how far `bag-relu` is below full supervision, by dataset and size, at the three priors."""
    return {
        (dataset, size): numbers(
            reference.mean(dataset, size, prior, "supervised") - reference.mean(dataset, size, prior, "bag-relu")
            for prior in PRIORS
        )
        for dataset in GREY
        for size in SIZES
    }


def loss_facts(reference: Reference) -> dict[str, Any]:
    """Return the points that methods lose on MNIST without a part, with a prior told wrong, and with broken tuples."""

    def mean(method: str, size: str = "pairs", prior: str = "0.5", variant: str = "base") -> float:
        return reference.mean("mnist", size, prior, method, variant=variant)

    def lost(method: str, size: str, variant: str) -> float:
        return reference.lost("mnist", size, "0.5", method, variant=variant)

    told = {"low": "prior-minus-10", "high": "prior-plus-10"}
    methods = ("relu-part", "bag-relu", "bag-abs", "bag-nce", "bag-likelihood", "bag-count", "bag-em", "bag-free")
    by_told = {
        (name, method, size): lost(method, size, variant)
        for name, variant in told.items()
        for method in methods
        for size in SIZES
    }
    assert not any(loss for (_, method, _), loss in by_told.items() if method == "bag-free")
    others = {
        name: [by_told[name, method, size] for method in ("bag-abs", "bag-nce", "bag-likelihood") for size in SIZES]
        for name in told
    }
    part = [by_told[name, "relu-part", size] for name in told for size in SIZES]
    assert max(part) < min(max(by_told[name, m, s] for name in told for s in SIZES) for m in methods[1:-1])
    wrong = ("ure", "abs", "relu-part", "bag-relu", "bag-free")
    return {
        "joint": [mean("bag-relu", prior=prior) - mean("marginal-relu", prior=prior) for prior in PRIORS[1:]],
        "correction": [mean("bag-relu", prior=prior) - mean("bag-ure", prior=prior) for prior in PRIORS[1:]],
        "told": by_told,
        "others": others,
        "part": part,
        "part_below": [
            f"{size} at {prior}"
            for size in SIZES
            for prior, variant in (("0.4", "prior-minus-10"), ("0.6", "prior-plus-10"))
            if mean("relu-part", size, variant=variant) < mean("bag-relu", size, variant=variant)
        ],
        "broken": {
            (method, size, share): lost(method, size, f"broken-{share}")
            for method in ("abs", "relu-part", "bag-relu", "bag-free")
            for size in SIZES
            for share in ("05", "10", "20")
        },
        "fifth": [mean(method, variant="broken-20") for method in wrong],
    }


def collected_facts(reference: Reference) -> dict[str, Any]:
    """Return what is said of the size and of the number of tuples, on MNIST at prior 0.5, and of the nearest method."""
    by_size = {
        method: [reference.mean("mnist", size, "0.5", method) for size in range(2, 8)]
        for method in ("abs", "relu-part", "bag-relu")
    }
    for means in by_size.values():
        even, odd = means[::2], means[1::2]
        pairs = [*zip(even, odd, strict=True), *zip(even[1:], odd[:-1], strict=True)]
        assert all(low < high for low, high in pairs), "odd sizes are better than the even ones beside them"

    def mean(method: str, size: str, n: int) -> float:
        return reference.mean("mnist", size, "0.5", method, n=n)

    return {
        "by_size": by_size,
        "third": {size: mean("bag-relu", size, 4_000) for size in SIZES},
        "whole": {size: max(mean(method, size, 12_000) for method in ("abs", "relu-part")) for size in SIZES},
        "late": {size: mean("bag-relu", size, 12_000) - mean("bag-relu", size, 8_000) for size in SIZES},
    }


def neighbour_facts(reference: Reference) -> dict[str, Any]:
    """Return how far methods of other settings lie below `bag-relu`, in points, and what `bag-count` answers at 0.6."""
    methods = ("llp", "noisy-or", "bag-count", "bag-em")
    behind = pd.DataFrame(
        {
            column: {m: reference.mean(*column, "bag-relu") - reference.mean(*column, m) for m in methods}
            for column in columns(DATASETS)
        }
    ).T.rename_axis(["dataset", "size", "prior"])
    em, nearest = behind["bag-em"], behind.idxmin(axis="columns")
    by_prior = [row.droplevel("prior") for _, row in em.groupby("prior")]
    return {
        "columns": len(behind),
        "em": listed(
            [
                f"{row.min():.1f} to {row.max():.1f} on {reference.title(str(dataset))}"
                for dataset, row in em.groupby("dataset", sort=False)
            ]
        ),
        "em_nearest": int((nearest == "bag-em").sum()),
        "otherwise": listed(
            [
                f"`{method}` on {size} of {reference.title(dataset)} at {prior}"
                for (dataset, size, prior), method in nearest[nearest != "bag-em"].items()
            ]
        ),
        "em_by_prior": all((low < high).all() for low, high in pairwise(by_prior)),
        "count_all_positive_at_06": all_positive(reference, "bag-count"),
    }


def cost_facts(reference: Reference) -> dict[str, Any]:
    """Return what methods on bags cost beside ReLU, what a run of ReLU costs, and what the paper's MNIST part does."""
    rows = pd.read_json(reference.folder / "method-cost.jsonl", lines=True)
    epochs = reference.config["protocol"]["training"]["epochs"]
    relu = rows.query("method == 'relu' and tuple_size == 2").iloc[0]
    whole = pd.read_json(reference.folder / "whole-part.jsonl", lines=True).iloc[-1]
    return {
        "times": {(row.method, row.tuple_size): row.times_relu for row in rows.itertuples()},
        "processor": {(row.method, row.tuple_size): row.times_relu_processor for row in rows.itertuples()},
        "run": relu["processor_seconds_per_run_epoch"] * epochs,
        "epochs": epochs,
        "device": relu["device"],
        "whole": {
            "runs": int(whole["runs"]),
            "wall": whole["wall_seconds"] / 60,
            "processor": whole["processor_seconds"] / 60,
            "device": whole["device"],
        },
    }


def rounding_facts(reference: Reference) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what rounding does to the accuracy of a run, by dataset and method.

    A trial in bfloat16 is paired with the same one in single precision.
    """
    tolerances = rounding_tolerances(reference.runs)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (dataset, method), group in rounding_pairs(reference.runs).groupby(["dataset", "method"]):
        moved = group["accuracy"] - group["accuracy_otherwise"]
        test = stats.ttest_1samp(moved, 0.0, alternative="greater") if moved.any() else None  # K-Means does not move
        found.setdefault(dataset, {})[method] = {
            "bf16": group["accuracy"].mean(),
            "fp32": group["accuracy_otherwise"].mean(),
            "mean": moved.mean(),
            "error": moved.sem(),
            "most": moved.abs().max(),
            "least": test.confidence_interval(0.95).low if test else 0.0,
            "trials": len(group),
            "tolerance": tolerances[dataset, method],
        }
    return found


def verified_facts(reference: Reference) -> dict[str, Any]:
    """Return what came of training shipped runs again, on processors of the kind that made them and on another.

    ``equal`` counts those that were equal bit for bit, ``agree`` those that were so or moved as far as rounding does.
    """
    rows = reference.read("verified")
    before, after = (rows[column].str.partition(" (")[0] for column in ("recorded_on", "again_on"))
    moved = (rows["again"] - rows["recorded"]).abs()
    agree = rows["equal"] | (moved <= rows["tolerance"])
    return {
        name: {
            "runs": int(of.sum()),
            "equal": int(rows["equal"][of].sum()),
            "agree": int(agree[of].sum()),
            "most": moved[of].max(),
            "method": rows["method"][moved[of].idxmax()] if of.any() else "",
        }
        for name, of in (("same", before == after), ("other", before != after))
    }
