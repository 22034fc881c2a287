"""Make the tables of the documents from the files of results/reference.

    python docs/tables.py

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`, counts within a sentence
between `<!-- n: NAME -->` and `<!-- end -->`. tests/docs/test_pages.py holds the documents to it.
Accuracies are in percent, mean and deviation over trials.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pandas as pd
import reading_tables
from scipy import stats

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import collect, find_runs
from mdpu.pipeline.evaluate.forecasts import FILE, as_forecast, forecast_cells, score_forecasts
from mdpu.pipeline.evaluate.published import PROPOSED, in_one_reading, published_cells
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "results" / "reference"
KEYS = ["tuple_size", "n", "prior", "method"]  # of a forecast's cell, beside its dataset
CELL = ("dataset", "variant", "tuple_size", "n", "prior", "method", "loss")
DOCUMENTS = (
    "README.md",
    "ARTIFACT.md",
    *(
        f"docs/explanation/{name}.md"
        for name in ("article", "findings", "readings", "laws", "natural", "performance")
    ),
    "docs/how-to/estimator.md",
    "docs/how-to/warnings.md",
    "docs/how-to/your-loop.md",
)
SMALLER = {
    "mnist": 10_000,
    "fashion-mnist": 10_000,
    "emnist-letters": 7_000,
    "emnist-letters-a-i": 7_000,
    "own-digits": 10_000,
    "own-balanced-digits": 4_000,
    "own-balanced": 4_000,
}
TITLES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "emnist-letters-a-i": "EMNIST-Letters (A-I)",
}
# Images in a split of their own: title, and the dataset of the paper.
OWN = {
    "own-digits": ("EMNIST-Digits", "emnist-digits"),
    "own-balanced-digits": ("EMNIST-Balanced, the digits", "emnist-balanced"),
    "own-balanced": ("EMNIST-Balanced, all 47 classes", "emnist-balanced"),
}
SETS = {
    "magic": "MAGIC",
    "cancer": "breast cancer",
    "reviews": "review sentences",
    "mnist": "MNIST",
}
# by the file that benchmarks read
OF_IMAGES = {**TITLES, "emnist-letters": TITLES["emnist-letters-a-i"]}
PLACES = {
    "clean": "by the rule",
    "shares 0.1": "places, 0.1",
    "shares 0.25": "places, 0.25",
    "shares 0.5": "places, 0.5",
    "both": "places, 0.25, alike in a column",
    "feature": "alike in a column, equal shares",
    "broken 0.05": "5 % broken",
    "broken 0.1": "10 % broken",
    "few": "few",
}
PAPER = {"source": "paper"}
SIZES = {2: "pairs", 3: "triples"}
PRIORS = [
    (f"{size}, {prior}" if prior == "0.4" else prior, {"tuple_size": m, "prior": prior})
    for m, size in ((2, "pairs"), (3, "triples"))
    for prior in ("0.4", "0.5", "0.6")
]
HALVES = [(size, {"tuple_size": m, "prior": "0.5"}) for m, size in ((2, "pairs"), (3, "triples"))]
BESIDE = ("ure", "relu", "abs", "siamese", "contrastive", "kmeans")
BEYOND = (
    "relu-class",
    "abs-class",
    "relu-part",
    "abs-part",
    "nnpu",
    "llp",
    "bag-relu",
    "bag-free",
    "supervised",
)
TOLD = {"0.40": "prior-minus-10", "0.50": "base", "0.60": "prior-plus-10"}
BROKEN = {"0 %": "base", "5 %": "broken-05", "10 %": "broken-10", "20 %": "broken-20"}


def named(*methods: str, **axes) -> list[tuple[str, dict]]:
    """Return a row or column for each method."""
    return [(f"`{method}`", {"method": method, **axes}) for method in methods]


def crossed(rows, others) -> list[tuple[str, dict]]:
    """Return each of some rows for each of others."""
    return [
        (f"{other}, {label}", {**axes, **more}) for other, more in others for label, axes in rows
    ]


SUMMARY = [
    *named("ure", "relu", "abs"),
    ("paper's best", {"method": "best", **PAPER}),
    *named("bag-relu", "bag-free", "supervised"),
]
# Name: first heading, rows, columns. A cell has the axes of its row and its column.
TABLES = {
    "readme": ("MNIST, n = 10,000", SUMMARY, PRIORS),
    "own-digits": (
        f"EMNIST-Digits, $n$ = {SMALLER['own-digits']:,}",
        SUMMARY,
        [(label, {**axes, "dataset": "own-digits"}) for label, axes in PRIORS],
    ),
    "mnist": (
        "MNIST, $n$ = 10,000",
        [row for name in BESIDE for row in (*named(name), ("paper", {"method": name, **PAPER}))]
        + named(*BEYOND),
        PRIORS,
    ),
    **{
        dataset: (
            f"{title}, $n$ = {SMALLER[dataset]:,}",
            [
                row
                for name in BESIDE[:3]
                for row in (*named(name), ("paper", {"method": name, **PAPER}))
            ]
            + named("relu-part", "llp", "bag-relu", "bag-free"),
            [(label, {**axes, "dataset": dataset}) for label, axes in PRIORS],
        )
        for dataset, title in TITLES.items()
        if dataset != "mnist"
    },
    "letters": (
        "all 26 letters",
        named("ure", "relu", "abs"),
        [(label, {**axes, "dataset": "emnist-letters"}) for label, axes in PRIORS],
    ),
    "told": (
        "given prior",
        crossed(named("abs", "relu-part", "bag-relu", "bag-em", "bag-free"), HALVES),
        [(label, {"variant": variant}) for label, variant in TOLD.items()],
    ),
    "broken": (
        "broken tuples",
        crossed(named("ure", "abs", "relu-part", "bag-relu", "bag-free"), HALVES),
        [(label, {"variant": variant}) for label, variant in BROKEN.items()],
    ),
    "sizes": (
        "size $M$",
        named("abs", "relu-part", "bag-relu"),
        [(str(size), {"tuple_size": size, "prior": "0.5"}) for size in range(2, 8)],
    ),
    "numbers": (
        "tuples $n$",
        crossed(named("abs", "relu-part", "bag-relu", "bag-free"), HALVES),
        [(f"{n:,}", {"n": n}) for n in range(2000, 14000, 2000)],
    ),
    "losses": (
        "loss",
        crossed(named("ure", "relu", "relu-part"), HALVES),
        [(loss, {"loss": loss}) for loss in ("logistic", "squared", "hinge", "ramp")],
    ),
    "neighbours": ("MNIST", named("llp", "bag-em", "bag-relu"), PRIORS),
}


def shipped(*selections: str) -> pd.DataFrame:
    """Return the shipped runs of some configurations, by their names."""
    runs = pd.read_csv(REFERENCE / "runs.csv", dtype={"prior": str})
    return runs[runs["selection"].isin(selections)]


def cells() -> dict[tuple, tuple[float, float]]:
    """Return mean and deviation of our cells, and of the paper's under the key that ends with
    ``paper``.
    """
    runs = shipped("paper-reference", "own-split")
    ours = runs.groupby(list(CELL))["accuracy"].agg(["mean", "std"])
    found = {tuple(key): tuple(row) for key, row in zip(ours.index, ours.to_numpy(), strict=True)}
    for row in published_cells().to_dict("records"):
        key = {**row, "variant": "base", "loss": "logistic"}
        value = row["published_mean"], row["published_std"]
        own = (name for name, (_, published) in OWN.items() if published == row["dataset"])
        for dataset in (row["dataset"], f"{row['dataset']}-a-i", *own):
            best = tuple({**key, "dataset": dataset, "method": "best"}[axis] for axis in CELL)
            found[(*(({**key, "dataset": dataset})[axis] for axis in CELL), "paper")] = value
            found[(*best, "paper")] = max(value, found.get((*best, "paper"), value))
    return found


def shown(cells, axes) -> str:
    """Return a cell as text."""
    full = {"dataset": "mnist", "variant": "base", "loss": "logistic", **axes}
    key = tuple({"n": SMALLER[full["dataset"]], **full}[axis] for axis in CELL)
    mean, deviation = cells[(*key, "paper") if "source" in full else key]
    return f"{mean:.1f} ± {deviation:.1f}"


def markdown(header, rows) -> str:
    """Return a table whose first column stands left."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdicts() -> str:
    """Return the verdicts on the numbers of the proposed methods, by method and by dataset."""
    rows = in_one_reading(pd.read_csv(REFERENCE / "comparison.csv", dtype={"prior": str}))
    rows = rows[rows["method"].isin(BESIDE[:3])]
    groups = [*((f"`{name}`", rows["method"] == name) for name in BESIDE[:3])]
    groups += [(title, rows["dataset"] == name) for name, title in TITLES.items()]
    names = reading_tables.JUDGED
    counts = [
        [title, *(str((rows[of]["verdict"] == name).sum()) for name in names)]
        for title, of in groups
    ]
    return markdown(
        ["", *names], [*counts, ["all", *(str((rows["verdict"] == name).sum()) for name in names)]]
    )


# Readings that stand beside one another, by their names in verdicts.json.
READINGS = {
    "epochs all, loss hinge": "all epochs, hinge loss (best)",
    "epochs all": "all epochs",
    "epochs all, letters all-26": "all epochs, all 26 letters (literal)",
    "replacement without": "last ten epochs, without replacement",
    "protocol": "protocol: last ten epochs, A to I",
    "epochs best": "best epoch (uses test labels)",
    "epochs last": "last epoch",
}
IN_WORDS = {3: "three", 4: "four", 5: "five"}


def reading_counts() -> pd.DataFrame:
    """Return the verdict counts of the readings by name, and ``trials``, which all readings of a
    number share.
    """
    rows = pd.DataFrame(json.loads((REFERENCE / "verdicts.json").read_text())["numbers"])
    counts = rows.groupby(["reading", "verdict"]).size().unstack(fill_value=0)
    counts["trials"] = rows.groupby("reading")["trials"].min()
    assert rows["trials"].nunique() == 1, "readings beside one another have different trials"
    return counts.reindex(columns=[*reading_tables.JUDGED, "trials"], fill_value=0)


def readings() -> str:
    """Return the verdict counts of the readings, all by the same trials."""
    counts = reading_counts()
    body = [[title, *map(str, counts.loc[name])] for name, title in READINGS.items()]
    return markdown(["reading", *counts.columns], body)


def numbers() -> dict[str, str]:
    """Return the counts that stand within sentences, by their names."""
    rows = in_one_reading(pd.read_csv(REFERENCE / "comparison.csv", dtype={"prior": str}))
    rows = rows[rows["method"].isin(BESIDE[:3])]
    names = reading_tables.JUDGED
    least = rows["trials"].min()
    most = rows["trials"].max()
    assert least == most, "numbers of the headline have different trials"
    found = {
        "counts": reading_tables.in_sentence([(rows["verdict"] == name).sum() for name in names])
    }
    found["trials"] = f"{IN_WORDS[int(least)]} trials"
    keys = ["dataset", "tuple_size", "n", "prior", "method"]
    runs = (
        shipped("paper-reference")
        .query("variant == 'base' and loss == 'logistic'")
        .merge(rows[keys], on=keys)
    )
    found["precision"] = f"{(runs['precision'] == 'float32').sum()} of the {len(runs)} runs"
    counts = reading_counts()
    found["equal-trials"] = f"{IN_WORDS[int(counts['trials'].iloc[0])]} trials"
    short = {"probable": "epochs all, loss hinge", "protocol": "protocol", "all": "epochs all"}
    for name, reading in {**short, "literal": "epochs all, letters all-26"}.items():
        own = list(counts.loc[reading, names])
        found[f"reading-{name}"] = reading_tables.in_sentence(own)
        found[f"list-{name}"] = f"{own[0]}, {own[1]}, {own[2]} and {own[3]}"
    epoch = processor_seconds().loc["plain", "relu"]
    found |= {"relu-epoch": f"{epoch:.2f}", "relu-run": f"{EPOCHS * epoch:.0f}"}
    shares = pd.read_csv(REFERENCE / "claims.csv").set_index("claim")["ours"]
    named = {
        "above": "corrected-beats-ure",
        "negative": "ure-risk-goes-negative",
        "hold": "corrected-accuracy-holds",
    }
    return found | {name: shares[claim] for name, claim in named.items()}


def own_split() -> str:
    """Return the verdicts on EMNIST's images in a split of their own, by dataset and method."""
    rows = pd.read_csv(REFERENCE / "own-split" / "comparison.csv")
    body = []
    verdicts = reading_tables.JUDGED
    for dataset, (title, _) in OWN.items():
        for method, own in rows[rows["dataset"] == dataset].groupby("method", sort=False):
            counts = [str((own["verdict"] == name).sum()) for name in verdicts]
            apart = own["difference"].agg(["mean", "min", "max"]).map("{:+.1f}".format)
            body.append(
                [
                    f"{title}: `{method}`",
                    *counts,
                    f"{apart['mean']} ({apart['min']} to {apart['max']})",
                ]
            )
    return markdown(["", *verdicts, "difference"], body)


@cache
def cifar_plan() -> tuple[Plan, pd.DataFrame]:
    """Return the plan of the shipped runs of CIFAR-10, and their histories."""
    plan = Plan({**load_config([ROOT / "config" / "own-split.yaml"]), "datasets": ["own-cifar-10"]})
    return plan, collect(find_runs(plan, [REFERENCE / "runs" / "own-cifar-10.parquet"]))


@cache
def cifar() -> pd.DataFrame:
    """Return the cells of CIFAR-10 that were run: published number, ours, and the forecasts.

    ``all``, ``last`` and ``best`` are the means over all epochs and over the last ten, and the best
    epoch. ``low_caption`` and so on are the ends of a forecast's interval, by reading.
    """
    plan, metrics = cifar_plan()
    forecasts = forecast_cells(plan, as_forecast(plan, metrics), read_csv(FILE))
    by_reading = forecasts.set_index(["reading", *KEYS])
    caption = by_reading.loc["caption"]
    protocol = by_reading.loc["protocol"]
    cells = caption[["published_mean", "published_std"]].assign(all=caption["accuracy"])
    cells["last"] = protocol["accuracy"]
    cells["best"] = 100 * metrics.groupby(KEYS)["accuracy"].max()
    for name in ("low", "high"):
        cells[f"{name}_caption"] = caption[name]
        cells[f"{name}_protocol"] = protocol[name]
    order = {method: place for place, method in enumerate(PROPOSED)}
    by = ["tuple_size", "prior", "method"]
    return cells.reset_index().sort_values(by, key=lambda axis: axis.replace(order))


def colour() -> str:
    """Return what ResNet-34 reaches on CIFAR-10, beside the paper's numbers and the forecasts."""
    body = [
        [
            f"{SIZES[row.tuple_size]}, {row.prior}: `{row.method}`",
            f"{row.published_mean:.1f} ± {row.published_std:.1f}",
            f"{row.all:.1f}",
            f"{row.low_caption:.0f} to {row.high_caption:.0f}",
            f"{row.last:.1f}",
            f"{row.low_protocol:.0f} to {row.high_protocol:.0f}",
            f"{row.best:.1f}",
        ]
        for row in cifar().itertuples()
    ]
    return markdown(
        ["", "paper", "all epochs", "forecast", "last ten", "forecast", "best epoch"], body
    )


def cifar_scores() -> pd.DataFrame:
    """Return how the forecasts of CIFAR-10 fare, by reading."""
    plan, metrics = cifar_plan()
    scores = score_forecasts(plan, as_forecast(plan, metrics), read_csv(FILE))
    return pd.DataFrame(scores).set_index("reading")


def colour_forecasts() -> str:
    """Return how the forecasts of CIFAR-10 fare, as the table of the rehearsal has it."""
    body = [
        [
            f"`{reading}`" if reading == "caption" else reading,
            f"{row['inside']} of {row['numbers']}",
            f"{row['above']}",
            f"{row['width']:.1f}",
            f"{row['score']:.1f}",
            f"{row['paper_inside']}",
            f"{row['paper_score']:.1f}",
        ]
        for reading, row in cifar_scores().iterrows()
    ]
    return markdown(
        ["reading", "inside", "above", "width", "score", "paper: inside", "score"], body
    )


def colour_numbers() -> dict[str, str]:
    """Return the numbers about CIFAR-10 that stand within sentences, by their names."""
    cells = cifar()
    scores = cifar_scores()
    stem = pd.read_csv(REFERENCE / "gpu" / "stems.csv", dtype={"prior": str}).iloc[0]
    lead = cells["all"] - cells["published_mean"]
    corrected = lead[cells["method"] != "ure"]
    unbiased = cells[cells["method"] == "ure"]
    same_cell = f"tuple_size == {stem['tuple_size']} and prior == '{stem['prior']}'"
    same_cell += f" and method == '{stem['method']}'"
    same = cells.query(same_cell).iloc[0]
    _, metrics = cifar_plan()
    history = metrics.query(same_cell)
    first = 100 * history.loc[history["epoch"] <= stem["epochs"], "accuracy"].mean()
    caption = scores.loc["caption"]
    risk = shipped("own-split").query("dataset == 'own-cifar-10' and method == 'ure'")["risk"]
    return {
        "colour-lead": f"{corrected.min():.1f} to {corrected.max():.1f}",
        "colour-above": f"{(lead > 0).sum()} of the {len(lead)} numbers",
        "colour-ure": f"{unbiased['best'].min():.0f} to {unbiased['best'].max():.0f}",
        "colour-ure-last": f"{unbiased['last'].min():.0f} to {unbiased['last'].max():.0f}",
        "colour-ure-risk": f"{risk.min():,.0f} to {risk.max():,.0f}",
        "colour-stem": f"{stem['mean_of_all']:.1f} %",
        "colour-stem-epochs": f"{stem['epochs']} epochs",
        "colour-stem-lead": f"{stem['mean_of_all'] - same['published_mean']:.1f} points",
        "colour-stem-same": f"{first:.1f} %",
        "colour-inside": f"{caption['inside']} of {caption['numbers']}",
        "colour-centre": f"{caption['above']} of {caption['numbers']}",
        "colour-width": f"{caption['width']:.0f} points",
    }


def devices() -> str:
    """Return how far runs of a GPU end from a CPU's, by the precision of the CPU's and by
    method.
    """
    rows = pd.read_csv(REFERENCE / "gpu" / "mnist.csv")
    body = []
    for precision in ("float32", "bfloat16"):
        for method in PROPOSED:
            own = rows[(rows["cpu_precision"] == precision) & (rows["method"] == method)]
            apart = own["difference"]
            error = apart.std() / len(apart) ** 0.5
            half = stats.t.ppf(0.975, len(apart) - 1) * error
            interval = f"{apart.mean() - half:+.2f} to {apart.mean() + half:+.2f}"
            body.append(
                [
                    f"`{method}`, {precision}",
                    str(len(own)),
                    f"{own['cpu_accuracy'].mean():.2f}",
                    f"{own['gpu_accuracy'].mean():.2f}",
                    f"{apart.mean():+.2f} ± {error:.2f}",
                    interval,
                    f"{apart[apart.abs().idxmax()]:+.2f}",
                    f"{own['early'].mean():.2f}",
                ]
            )
    titles = ["CPU's run", "pairs", "CPU", "GPU", "difference", "its interval", "largest"]
    return markdown([*titles, "first three epochs"], body)


def claims() -> str:
    """Return the paper's claims, with the share that holds in our cells and in the paper's."""
    rows = pd.read_csv(REFERENCE / "claims.csv")
    readings = [name.removesuffix("_status") for name in rows if name.endswith("_status")]
    body = [
        [
            f"`{row['claim']}`",
            row["status"],
            row["ours"],
            *(f"{row[f'{name}_status']}, {row[name]}" for name in readings),
            str(row["paper"]),
        ]
        for row in rows.to_dict("records")
    ]
    return markdown(["claim", "status", "ours", *readings, "paper's numbers"], body)


def laws(dataset: str) -> str:
    """Return accuracies on a dataset by law, each with the lowest lead of bag-relu over a method on
    single members.
    """
    rows = pd.read_csv(REFERENCE / "laws" / "cells.csv", dtype={"prior": str})
    methods = ("ure", "relu", "abs", "bag-em", "bag-relu", "bag-free", "supervised")
    body = []
    rows = rows[rows["law"] != "comparison"]  # of 0.2.0; the order of members counts in it
    for (size, law, prior), cells in rows[rows["dataset"] == dataset].groupby(
        ["tuple_size", "law", "prior"]
    ):
        by_method = {row.method: f"{row.mean:.1f} ± {row.std:.1f}" for row in cells.itertuples()}
        of_members = cells[cells["family"] == "marginal"].sort_values("above_low")
        lead = [
            f"{row.above:.1f} ({row.above_low:.1f} to {row.above_high:.1f})"
            for row in of_members.itertuples()
        ]
        shown = [by_method.get(method, "–") for method in methods]
        body.append(
            [
                f"`{law}`, {size}",
                f"{float(prior):.2g}",
                *shown,
                lead[0] if lead and "nan" not in lead[0] else "–",
            ]
        )
    return markdown(["law, $M$", "prior", *(f"`{method}`" for method in methods), "lead"], body)


def around(values: pd.Series) -> str:
    """Return mean and deviation over trials, or the value of a single one."""
    return f"{values.mean():.1f}" + (f" ± {values.std():.1f}" if len(values) > 1 else "")


def scale() -> str:
    """Return what `fit` takes by the number of pairs, as benchmarks/loops.py of commit b711da5
    measured it.
    """
    rows = (
        pd.read_csv(REFERENCE / "loops.csv").query("what == 'scale'").sort_values(["n", "epochs"])
    )
    rows["speed"] = rows["images"] / rows["cpu_seconds"]
    shown = rows[["n", "epochs", "cpu_seconds", "data", "memory", "speed"]].map(
        lambda value: f"{value:,.0f}"
    )
    shown.insert(2, "accuracy", rows["accuracy"].map("{:.1f}".format))
    head = [
        "pairs",
        "epochs",
        "accuracy",
        "CPU s",
        "data, MiB",
        "memory beyond it, MiB",
        "images per CPU s",
    ]
    return markdown(head, shown.to_numpy().tolist())


LOOPS = {"ordinary": "ordinary loop", "plain": "the trainer"}
EPOCHS = 100  # of the protocol


def processor_seconds() -> pd.DataFrame:
    """Return the processor seconds of an epoch by loop and method, as benchmarks/training_speed.py
    measured them.
    """
    rows = pd.read_csv(REFERENCE / "speed.csv")
    return rows.pivot(index="loop", columns="method", values="seconds")


def speed() -> str:
    """Return the processor seconds of an epoch of an ordinary loop and of the trainer."""
    seconds = processor_seconds()
    body = [
        [title, *(f"{seconds.loc[loop, method]:.2f}" for method in BESIDE[:3])]
        for loop, title in LOOPS.items()
    ]
    return markdown(["", "URE", "ReLU", "ABS"], body)


def with_interval(values) -> str:
    """Return the mean over trials with its 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std() / len(values) ** 0.5
    return f"{values.mean():.1f} ± {half:.1f}"


def natural() -> str:
    """Return accuracy and AUC by the kind of supervision, on tuples that nobody drew."""
    rows = pd.read_csv(REFERENCE / "natural.csv").set_index(["set", "kind", "trial"]).sort_index()
    kinds = ("labels", "copied", "joint", "effect", "max", "shuffled")
    titles = {
        "members": "accuracy, members",
        "members_auc": "AUC, members",
        "groups": "accuracy, groups",
        "groups_auc": "AUC, groups",
    }
    body = [
        [
            f"{name}: {title}",
            *(with_interval(rows.loc[name, kind][measure]) for kind in kinds),
            with_interval(rows.loc[name, "joint"][measure] - rows.loc[name, "copied"][measure]),
        ]
        for name in ("birds", "reviews", "court")
        for measure, title in titles.items()
    ]
    return markdown(["", *kinds, "joint less copied"], body)


def recipe() -> str:
    """Return what the classifiers' default networks reach, by the number of tuples."""
    rows = pd.read_csv(REFERENCE / "recipe.csv").query("what == 'size'")
    body = []
    kinds = "constant", "one-cycle"
    for (n, dataset, size), own in rows.groupby(["n", "dataset", "tuple_size"]):
        paired = own.pivot(
            index="trial", columns="recipe", values=["accuracy", "cpu_seconds"]
        ).dropna()
        accuracies = [around(paired["accuracy", kind]) for kind in kinds]
        seconds = [f"{paired['cpu_seconds', kind].mean():.0f}" for kind in kinds]
        body.append(
            [f"{n:,}", f"{OF_IMAGES[dataset]}, {size}", str(len(paired)), *accuracies, *seconds]
        )
    titles = ["100 epochs", "one-cycle", "CPU s, 100 epochs", "CPU s, one-cycle"]
    return markdown(["tuples $n$", "images, $M$", "trials", *titles], body)


def coverage() -> str:
    """Return how often intervals cover in each setting, and how wide that of the prior is where it
    is known.
    """
    rows = pd.read_csv(REFERENCE / "coverage.csv", dtype={"sizes": str})
    body = []
    names = {
        "prior": "interval of the prior",
        "risk": "error rate",
        "risk, prior estimated": "error rate, prior estimated",
        "auc": "AUC",
        "balanced_accuracy": "balanced accuracy",
        "precision": "precision",
        "recall": "recall",
    }
    axes = ["set", "law", "sizes", "prior", "n", "broken", "copies", "first"]
    rows = rows.assign(copies=rows.get("copies", 1))
    for (name, law, sizes, prior, n, broken, copies, _), own in rows.groupby(axes, sort=False):
        own = own.set_index("interval")
        shares = (100 * own["covers"] / own["repetitions"]).reindex(names)
        cells = ["–" if pd.isna(share) else f"{share:.1f}" for share in shares]
        of = own.loc["prior"]
        known = [
            f"{of.known_covers} of {of.known}",
            "–" if pd.isna(of.known_width) else f"{of.known_width:.2f}",
        ]
        what = SETS.get(name, name) + ("" if law == "dominant" else ", exactly one")
        what += f", {100 * broken:.0f} % broken" if broken else ""
        what += f", unlabeled rows {copies} times" if copies > 1 else ""
        body.append(
            [what, sizes.replace(" ", ", "), str(prior), f"{n:,}", cells[0], *known, *cells[1:]]
        )
    shown = list(names.values())
    return markdown(
        ["set", "M", "prior", "n", shown[0], "known that cover", "width of the known", *shown[1:]],
        body,
    )


def places() -> str:
    """Return how often the intervals of pages cover where groups come from places, are broken or
    few: as they were, by the rule alone, and as they are.
    """
    rows = pd.read_csv(REFERENCE / "places.csv")
    rows = rows[rows["low"].notna()]
    rows["said_before"] = rows["by_rule_high"].ge(0) & rows["by_rule_low"].le(1)
    rows["said_before"] &= rows["verdict"] != "does not fit"
    rows["said"] = ~rows["refused"].astype(bool)
    rows["covered_before"] = rows["truth"].between(rows["by_rule_low"], rows["by_rule_high"])
    rows["covered"] = rows["truth"].between(rows["low"], rows["high"])

    body = []
    for (way, told), own in rows.groupby(["way", "told"], sort=False):
        cells = []
        for said, covered in (("said_before", "covered_before"), ("said", "covered")):
            for half in ("A", "B"):
                stated = own[own[said] & (own["half"] == half)]
                cells.append(f"{stated[covered].sum()} of {len(stated)}")
        ends = own[["by_rule_low", "by_rule_high", "low", "high"]].clip(0, 1)
        widths = [ends["by_rule_high"] - ends["by_rule_low"], ends["high"] - ends["low"]]
        cells.append(f"{own['from_places'].astype(bool).sum()} of {len(own)}")
        cells += [f"{100 * width.median():.0f}" for width in widths]
        body.append([PLACES[way], "told" if told else "estimated", *cells])
    heads = ["before, A", "before, B", "now, A", "now, B", "seen as places"]
    return markdown(["groups", "prior", *heads, "median width before", "now"], body)


LEARNERS = ("student", "linear", "network", "abs", "copied", "uu", "labels")


def learners() -> dict[str, str]:
    """Return accuracies of learners by cell, and how far the default is from each."""
    cell = ["set", "sizes", "prior", "n"]
    rows = pd.read_csv(REFERENCE / "learners.csv", dtype={"sizes": str})
    by_trial = rows.pivot(index=[*cell, "trial"], columns="learner", values="accuracy")
    means = by_trial.groupby(level=cell).mean()
    body = []
    for key, trials in by_trial.groupby(level=cell):
        name, sizes, prior, n = key
        n_known = trials["default"].notna().sum()
        accuracies = [accuracy(means.loc[key, learner]) for learner in ("default", *LEARNERS)]
        setting = [SETS.get(name, name), sizes.replace(" ", ", "), str(prior), f"{n:,}"]
        constant = f"{100 * max(prior, 1 - prior):.1f}"
        body.append([*setting, f"{n_known} of {len(trials)}", *accuracies, constant])

    named = [f"`{name}`" for name in LEARNERS]
    head = ["set", "M", "prior", "n", "known", "default", *named, "constant"]
    return {"learners": markdown(head, body), "learners-paired": learners_paired(rows, by_trial)}


def accuracy(percent: float) -> str:
    """Return an accuracy as a table shows it."""
    return "–" if pd.isna(percent) else f"{percent:.1f}"


def learners_paired(rows: pd.DataFrame, by_trial: pd.DataFrame) -> str:
    """Return how far the default, told the prior, is from other learners; paired by cell."""
    cell = ["set", "sizes", "prior", "n"]
    named = rows[rows["learner"] == "default"].drop_duplicates(cell).set_index(cell)["chosen"]
    told = [row[named[key[:-1]]] for key, row in by_trial.iterrows()]
    by_trial = by_trial.assign(told=told)
    means = by_trial.groupby(level=cell).mean()
    without_prior = by_trial["told"] - by_trial["default"]
    leads = {"itself without the prior, where known": without_prior.groupby(level=cell).mean()}
    for name in LEARNERS:
        leads[f"`{name}`"] = means["told"] - means[name]
    best = means[list(LEARNERS[:3])].max(axis=1)
    leads["the best of the three learners"] = means["told"] - best

    body = []
    for name, lead in leads.items():
        n_cells = str(lead.notna().sum())
        body.append([name, n_cells, with_interval(lead.dropna()), f"{lead.min():.1f}"])
    return markdown(["the default less", "cells", "points", "lowest cell"], body)


# Rules of `learner="auto"` and what a document calls them.
RULES = {
    "auto": "the default",
    "student": "`student`",
    "linear": "`linear`",
    "network": "`network`",
    "by kind": "`student`, for pictures `network`",
    "mean, alike": "mean of the probabilities",
    "mean, default twice": "mean, `student` (pictures: `network`) twice",
    "least loss on a quarter": "least loss on a quarter of the tuples",
    "left by one error": "`student`, unless another is better by a standard error",
    "stacking": "weights by out-of-fold loss",
}


def default_rules() -> dict[str, str]:
    """Return how far each rule of the default is from the best learner of a draw, by half."""
    draws = pd.read_csv(REFERENCE / "default_rules.csv")
    folds = draws[draws["rule"] == "stacking"][["draw", "set"]]
    rules_on_all = [rule for rule in RULES if (draws["rule"] == rule).sum() > len(folds)]
    return {
        "default-rules": rules_by_half(draws, rules_on_all),
        "default-rules-kinds": rules_by_kind(draws),
        "default-rules-sets": str(draws["set"].nunique()),
    }


def rules_by_half(draws: pd.DataFrame, rules: list[str]) -> str:
    """Return the regret of rules on each half of the sets, and what a fit takes."""
    body = []
    for rule in rules:
        of_rule = draws[draws["rule"] == rule]
        line = [RULES[rule]]
        for half in ("A", "B"):
            regret = of_rule.loc[of_rule["half"] == half, "regret"]
            below = 100 * (regret < -4).mean()
            line += [f"{regret.mean():.2f}", f"{regret.min():.1f}", f"{below:.0f} %"]
        less = of_rule.loc[of_rule["half"] == "B", "less_student"]
        line.append(f"{less.mean():+.2f} ± {less.sem():.2f}")
        line.append(f"{of_rule['seconds'].mean():.1f}")
        body.append(line)
    of_half = ["mean", "worst", "more than 4 below"]
    head = ["rule", *(f"A: {name}" for name in of_half), *(f"B: {name}" for name in of_half)]
    return markdown([*head, "B: less `student`", "s"], body)


def rules_by_kind(draws: pd.DataFrame) -> str:
    """Return the mean regret of single learners and the default, by kind of data and n."""
    sizes = pd.cut(draws["n"], [0, 300, 1000, 5000], labels=["to 300", "to 1,000", "to 5,000"])
    rules = ["auto", "student", "linear", "network"]
    body = []
    for (kind, size), cell in draws.groupby([draws["kind"], sizes], observed=True):
        regrets = cell.groupby("rule")["regret"].mean().reindex(rules)
        shown = ["–" if pd.isna(regret) else f"{regret:.2f}" for regret in regrets]
        body.append([str(kind), str(size), str((cell["rule"] == "auto").sum()), *shown])
    return markdown(["kind", "n", "draws", *(RULES[rule] for rule in rules)], body)


def tables() -> dict[str, str]:
    """Return every table by its name."""
    known = cells()
    made = {
        name: markdown(
            [head, *(label for label, _ in columns)],
            [
                [label, *(shown(known, {**axes, **more}) for _, more in columns)]
                for label, axes in rows
            ],
        )
        for name, (head, rows, columns) in TABLES.items()
    }
    made["laws-mnist"] = laws("mnist")
    made |= {"natural": natural(), "own-split": own_split(), "speed": speed(), "devices": devices()}
    made |= {"colour": colour(), "colour-forecasts": colour_forecasts(), **colour_numbers()}
    made |= {"loops-scale": scale(), "recipe": recipe(), "coverage": coverage(), **learners()}
    made |= default_rules()
    made["places"] = places()
    made |= {"verdicts": verdicts(), "claims": claims(), "readings": readings()}
    for more in (numbers(), reading_tables.tables(markdown), reading_tables.numbers()):
        assert not made.keys() & more.keys(), "two tables or numbers have one name"
        made |= more
    return made


def written(text: str, made: dict[str, str]) -> str:
    """Return a document with its tables made anew."""
    pattern = re.compile(r"(<!-- table: ([a-z0-9-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
    text = pattern.sub(lambda found: f"{found[1]}\n{made[found[2]]}\n\n{found[3]}", text)
    inline = re.compile(r"(<!-- n: ([a-z0-9-]+) -->).*?(<!-- end -->)", re.DOTALL)
    return inline.sub(lambda found: f"{found[1]}{made[found[2]]}{found[3]}", text)


if __name__ == "__main__":
    made = tables()
    for name in DOCUMENTS:
        document = ROOT / name
        document.write_text(written(document.read_text(encoding="utf-8"), made), encoding="utf-8")
