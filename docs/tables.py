"""Make the tables of the documents from the files of results/reference.

    python docs/tables.py

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`, counts within a sentence between
`<!-- n: NAME -->` and `<!-- end -->`. tests/docs/test_pages.py holds the documents
to it. Accuracies are in percent, mean and deviation over trials.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import reading_tables
from scipy import stats

from mdpu.pipeline.evaluate.comparison import NOT_RUN, VERDICTS
from mdpu.pipeline.evaluate.published import in_one_reading, published_cells

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "results" / "reference"
CELL = ("dataset", "variant", "tuple_size", "n", "prior", "method", "loss")
DOCUMENTS = (
    "README.md",
    "ARTIFACT.md",
    *(f"docs/explanation/{name}.md" for name in ("article", "findings", "readings", "laws", "natural", "performance")),
    "docs/how-to/estimator.md",
    "docs/how-to/your-loop.md",
)
SMALLER = {"mnist": 10_000, "fashion-mnist": 10_000, "emnist-letters": 7_000, "emnist-letters-a-i": 7_000,
           "own-digits": 10_000, "own-balanced-digits": 4_000, "own-balanced": 4_000}  # fmt: skip
TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "emnist-letters-a-i": "EMNIST-Letters (A-I)"}
# Images in a split of their own: title, and the dataset of the paper.
OWN = {"own-digits": ("EMNIST-Digits", "emnist-digits"),
       "own-balanced-digits": ("EMNIST-Balanced, the digits", "emnist-balanced"),
       "own-balanced": ("EMNIST-Balanced, all 47 classes", "emnist-balanced")}  # fmt: skip
SETS = {"magic": "MAGIC", "cancer": "breast cancer", "reviews": "review sentences", "mnist": "MNIST"}
OF_IMAGES = {**TITLES, "emnist-letters": TITLES["emnist-letters-a-i"]}  # by the file that benchmarks read
PAPER = {"source": "paper"}
PRIORS = [
    (f"{size}, {prior}" if prior == "0.4" else prior, {"tuple_size": m, "prior": prior})
    for m, size in ((2, "pairs"), (3, "triples"))
    for prior in ("0.4", "0.5", "0.6")
]
HALVES = [(size, {"tuple_size": m, "prior": "0.5"}) for m, size in ((2, "pairs"), (3, "triples"))]
BESIDE = ("ure", "relu", "abs", "siamese", "contrastive", "kmeans")
BEYOND = ("relu-class", "abs-class", "relu-part", "abs-part", "nnpu", "llp", "bag-relu", "bag-free", "supervised")
TOLD = {"0.40": "prior-minus-10", "0.50": "base", "0.60": "prior-plus-10"}
BROKEN = {"0 %": "base", "5 %": "broken-05", "10 %": "broken-10", "20 %": "broken-20"}


def named(*methods: str, **axes) -> list[tuple[str, dict]]:
    """Return a row or column for each method."""
    return [(f"`{method}`", {"method": method, **axes}) for method in methods]


def crossed(rows, others) -> list[tuple[str, dict]]:
    """Return each of some rows for each of others."""
    return [(f"{other}, {label}", {**axes, **more}) for other, more in others for label, axes in rows]


SUMMARY = [*named("ure", "relu", "abs"), ("paper's best", {"method": "best", **PAPER}),
           *named("bag-relu", "bag-free", "supervised")]  # fmt: skip
# Name: first heading, rows, columns. A cell has the axes of its row and its column.
TABLES = {
    "readme": ("MNIST, n = 10,000", SUMMARY, PRIORS),
    "own-digits": (f"EMNIST-Digits, $n$ = {SMALLER['own-digits']:,}", SUMMARY,
        [(label, {**axes, "dataset": "own-digits"}) for label, axes in PRIORS]),
    "mnist": ("MNIST, $n$ = 10,000", [row for name in BESIDE for row in
        (*named(name), ("paper", {"method": name, **PAPER}))] + named(*BEYOND), PRIORS),
    **{dataset: (f"{title}, $n$ = {SMALLER[dataset]:,}", [row for name in BESIDE[:3] for row in
        (*named(name), ("paper", {"method": name, **PAPER}))] + named("relu-part", "llp", "bag-relu", "bag-free"),
        [(label, {**axes, "dataset": dataset}) for label, axes in PRIORS])
        for dataset, title in TITLES.items() if dataset != "mnist"},
    "letters": ("all 26 letters", named("ure", "relu", "abs"),
        [(label, {**axes, "dataset": "emnist-letters"}) for label, axes in PRIORS]),
    "told": ("given prior", crossed(named("abs", "relu-part", "bag-relu", "bag-em", "bag-free"), HALVES),
        [(label, {"variant": variant}) for label, variant in TOLD.items()]),
    "broken": ("broken tuples", crossed(named("ure", "abs", "relu-part", "bag-relu", "bag-free"), HALVES),
        [(label, {"variant": variant}) for label, variant in BROKEN.items()]),
    "sizes": ("size $M$", named("abs", "relu-part", "bag-relu"),
        [(str(size), {"tuple_size": size, "prior": "0.5"}) for size in range(2, 8)]),
    "numbers": ("tuples $n$", crossed(named("abs", "relu-part", "bag-relu", "bag-free"), HALVES),
        [(f"{n:,}", {"n": n}) for n in range(2000, 14000, 2000)]),
    "losses": ("loss", crossed(named("ure", "relu", "relu-part"), HALVES),
        [(loss, {"loss": loss}) for loss in ("logistic", "squared", "hinge", "ramp")]),
    "neighbours": ("MNIST", named("llp", "bag-em", "bag-relu"), PRIORS),
}  # fmt: skip


def shipped(*selections: str) -> pd.DataFrame:
    """Return the shipped runs of some configurations, by their names."""
    runs = pd.read_csv(REFERENCE / "runs.csv", dtype={"prior": str})
    return runs[runs["selection"].isin(selections)]


def cells() -> dict[tuple, tuple[float, float]]:
    """Return mean and deviation of our cells, and of the paper's under the key that ends with ``paper``."""
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
    names = [name for name in VERDICTS if name != NOT_RUN]
    counts = [[title, *(str((rows[of]["verdict"] == name).sum()) for name in names)] for title, of in groups]
    return markdown(["", *names], [*counts, ["all", *(str((rows["verdict"] == name).sum()) for name in names)]])


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
    """Return the verdict counts of the readings by name, and ``trials``, which all readings of a number share."""
    rows = pd.DataFrame(json.loads((REFERENCE / "verdicts.json").read_text())["numbers"])
    counts = rows.groupby(["reading", "verdict"]).size().unstack(fill_value=0)
    counts["trials"] = rows.groupby("reading")["trials"].min()
    assert rows["trials"].nunique() == 1, "readings beside one another have different trials"
    return counts.reindex(columns=[*(name for name in VERDICTS if name != NOT_RUN), "trials"], fill_value=0)


def readings() -> str:
    """Return the verdict counts of the readings, all by the same trials."""
    counts = reading_counts()
    body = [[title, *map(str, counts.loc[name])] for name, title in READINGS.items()]
    return markdown(["reading", *counts.columns], body)


def in_sentence(counts) -> str:
    """Return counts of verdicts as a part of a sentence."""
    reproduced, close, inconclusive, differ = counts
    return f"{reproduced} are reproduced, {close} close, {inconclusive} inconclusive, and {differ} differ"


def numbers() -> dict[str, str]:
    """Return the counts that stand within sentences, by their names."""
    rows = in_one_reading(pd.read_csv(REFERENCE / "comparison.csv", dtype={"prior": str}))
    rows = rows[rows["method"].isin(BESIDE[:3])]
    names = [name for name in VERDICTS if name != NOT_RUN]
    least, most = rows["trials"].min(), rows["trials"].max()
    assert least == most, "numbers of the headline have different trials"
    found = {"counts": in_sentence([(rows["verdict"] == name).sum() for name in names])}
    found["trials"] = f"{IN_WORDS[int(least)]} trials"
    keys = ["dataset", "tuple_size", "n", "prior", "method"]
    runs = shipped("paper-reference").query("variant == 'base' and loss == 'logistic'").merge(rows[keys], on=keys)
    found["precision"] = f"{(runs['precision'] == 'float32').sum()} of the {len(runs)} runs"
    counts = reading_counts()
    found["equal-trials"] = f"{IN_WORDS[int(counts['trials'].iloc[0])]} trials"
    short = {"probable": "epochs all, loss hinge", "protocol": "protocol", "all": "epochs all"}
    for name, reading in {**short, "literal": "epochs all, letters all-26"}.items():
        own = list(counts.loc[reading, names])
        found[f"reading-{name}"] = in_sentence(own)
        found[f"list-{name}"] = f"{own[0]}, {own[1]}, {own[2]} and {own[3]}"
    epoch = processor_seconds().loc["plain", "relu"]
    found |= {"relu-epoch": f"{epoch:.2f}", "relu-run": f"{EPOCHS * epoch:.0f}"}
    shares = pd.read_csv(REFERENCE / "claims.csv").set_index("claim")["ours"]
    named = {"above": "corrected-beats-ure", "negative": "ure-risk-goes-negative", "hold": "corrected-accuracy-holds"}
    return found | {name: shares[claim] for name, claim in named.items()}


def own_split() -> str:
    """Return the verdicts on EMNIST's images in a split of their own, by dataset and method."""
    rows, body = pd.read_csv(REFERENCE / "own-split" / "comparison.csv"), []
    verdicts = [name for name in VERDICTS if name != NOT_RUN]
    for dataset, (title, _) in OWN.items():
        for method, own in rows[rows["dataset"] == dataset].groupby("method", sort=False):
            counts = [str((own["verdict"] == name).sum()) for name in verdicts]
            apart = own["difference"].agg(["mean", "min", "max"]).map("{:+.1f}".format)
            body.append([f"{title}: `{method}`", *counts, f"{apart['mean']} ({apart['min']} to {apart['max']})"])
    return markdown(["", *verdicts, "difference"], body)


def colour() -> str:
    """Return what ResNet-34 reaches on CIFAR-10 in 15 epochs, beside the paper's numbers."""
    at = "dataset == {} and n == 10_000 and prior == '0.5'"
    runs = shipped("own-split").query(at.format("'own-cifar-10'"))
    ours = runs.set_index(["method", "tuple_size"])["accuracy"]
    theirs = {
        (row.method, row.tuple_size): f"{row.published_mean:.1f} ± {row.published_std:.1f}"
        for row in published_cells().query(at.format("'cifar-10'")).itertuples()
    }
    rows = [
        [f"`{name}`", *(text for size in (2, 3) for text in (f"{ours[name, size]:.1f}", theirs.get((name, size), "–")))]
        for name in (*BESIDE[:3], "bag-relu", "supervised")
    ]
    return markdown(["prior 0.5, $n$ = 10,000", "pairs, one trial", "paper", "triples, one trial", "paper"], rows)


def claims() -> str:
    """Return the paper's claims, with the share that holds in our cells and in the paper's."""
    rows = pd.read_csv(REFERENCE / "claims.csv")
    readings = [name.removesuffix("_status") for name in rows if name.endswith("_status")]
    body = [
        [f"`{row['claim']}`", row["status"], row["ours"],
         *(f"{row[f'{name}_status']}, {row[name]}" for name in readings), str(row["paper"])]
        for row in rows.to_dict("records")
    ]  # fmt: skip
    return markdown(["claim", "status", "ours", *readings, "paper's numbers"], body)


def laws(dataset: str) -> str:
    """Return accuracies on a dataset by law, each with the lowest lead of bag-relu over a method on single members."""
    rows = pd.read_csv(REFERENCE / "laws" / "cells.csv", dtype={"prior": str})
    methods, body = ("ure", "relu", "abs", "bag-em", "bag-relu", "bag-free", "supervised"), []
    rows = rows[rows["law"] != "comparison"]  # of 0.2.0; the order of members counts in it
    for (size, law, prior), cells in rows[rows["dataset"] == dataset].groupby(["tuple_size", "law", "prior"]):
        by_method = {row.method: f"{row.mean:.1f} ± {row.std:.1f}" for row in cells.itertuples()}
        of_members = cells[cells["family"] == "marginal"].sort_values("above_low")
        lead = [f"{row.above:.1f} ({row.above_low:.1f} to {row.above_high:.1f})" for row in of_members.itertuples()]
        shown = [by_method.get(method, "–") for method in methods]
        body.append(
            [f"`{law}`, {size}", f"{float(prior):.2g}", *shown, lead[0] if lead and "nan" not in lead[0] else "–"]
        )
    return markdown(["law, $M$", "prior", *(f"`{method}`" for method in methods), "lead"], body)


def around(values: pd.Series) -> str:
    """Return mean and deviation over trials, or the value of a single one."""
    return f"{values.mean():.1f}" + (f" ± {values.std():.1f}" if len(values) > 1 else "")


def scale() -> str:
    """Return what `fit` takes by the number of pairs, as benchmarks/loops.py of commit b711da5 measured it."""
    rows = pd.read_csv(REFERENCE / "loops.csv").query("what == 'scale'").sort_values(["n", "epochs"])
    rows["speed"] = rows["images"] / rows["cpu_seconds"]
    shown = rows[["n", "epochs", "cpu_seconds", "data", "memory", "speed"]].map(lambda value: f"{value:,.0f}")
    shown.insert(2, "accuracy", rows["accuracy"].map("{:.1f}".format))
    head = ["pairs", "epochs", "accuracy", "CPU s", "data, MiB", "memory beyond it, MiB", "images per CPU s"]
    return markdown(head, shown.to_numpy().tolist())


LOOPS = {"ordinary": "ordinary loop", "plain": "the trainer"}
EPOCHS = 100  # of the protocol


def processor_seconds() -> pd.DataFrame:
    """Return the processor seconds of an epoch by loop and method, as benchmarks/training_speed.py measured them."""
    rows = pd.read_csv(REFERENCE / "speed.csv")
    return rows.pivot(index="loop", columns="method", values="seconds")


def speed() -> str:
    """Return the processor seconds of an epoch of an ordinary loop and of the trainer."""
    seconds = processor_seconds()
    body = [[title, *(f"{seconds.loc[loop, method]:.2f}" for method in BESIDE[:3])] for loop, title in LOOPS.items()]
    return markdown(["", "URE", "ReLU", "ABS"], body)


def with_interval(values) -> str:
    """Return the mean over trials with its 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std() / len(values) ** 0.5
    return f"{values.mean():.1f} ± {half:.1f}"


def natural() -> str:
    """Return accuracy and AUC by the kind of supervision, on tuples that nobody drew."""
    rows = pd.read_csv(REFERENCE / "natural.csv").set_index(["set", "kind", "trial"]).sort_index()
    kinds = ("labels", "copied", "joint", "effect", "max", "shuffled")
    titles = {"members": "accuracy, members", "members_auc": "AUC, members", "groups": "accuracy, groups",
              "groups_auc": "AUC, groups"}  # fmt: skip
    body = [
        [f"{name}: {title}", *(with_interval(rows.loc[name, kind][measure]) for kind in kinds),
         with_interval(rows.loc[name, "joint"][measure] - rows.loc[name, "copied"][measure])]
        for name in ("birds", "reviews", "court") for measure, title in titles.items()
    ]  # fmt: skip
    return markdown(["", *kinds, "joint less copied"], body)


def recipe() -> str:
    """Return what the classifiers' default networks reach, by the number of tuples."""
    rows, body = pd.read_csv(REFERENCE / "recipe.csv").query("what == 'size'"), []
    kinds = "constant", "one-cycle"
    for (n, dataset, size), own in rows.groupby(["n", "dataset", "tuple_size"]):
        paired = own.pivot(index="trial", columns="recipe", values=["accuracy", "cpu_seconds"]).dropna()
        accuracies = [around(paired["accuracy", kind]) for kind in kinds]
        seconds = [f"{paired['cpu_seconds', kind].mean():.0f}" for kind in kinds]
        body.append([f"{n:,}", f"{OF_IMAGES[dataset]}, {size}", str(len(paired)), *accuracies, *seconds])
    titles = ["100 epochs", "one-cycle", "CPU s, 100 epochs", "CPU s, one-cycle"]
    return markdown(["tuples $n$", "images, $M$", "trials", *titles], body)


def coverage() -> str:
    """Return how often intervals cover in each setting, and how wide that of the prior is where it is known."""
    rows, body = pd.read_csv(REFERENCE / "coverage.csv", dtype={"sizes": str}), []
    names = {"prior": "interval of the prior", "risk": "error rate",
             "risk, prior estimated": "error rate, prior estimated", "auc": "AUC",
             "balanced_accuracy": "balanced accuracy", "precision": "precision", "recall": "recall"}  # fmt: skip
    axes = ["set", "law", "sizes", "prior", "n", "broken", "copies", "first"]
    rows = rows.assign(copies=rows.get("copies", 1))
    for (name, law, sizes, prior, n, broken, copies, _), own in rows.groupby(axes, sort=False):
        own = own.set_index("interval")
        shares = (100 * own["covers"] / own["repetitions"]).reindex(names)
        cells = ["–" if pd.isna(share) else f"{share:.1f}" for share in shares]
        of = own.loc["prior"]
        known = [f"{of.known_covers} of {of.known}", "–" if pd.isna(of.known_width) else f"{of.known_width:.2f}"]
        what = SETS.get(name, name) + ("" if law == "dominant" else ", exactly one")
        what += f", {100 * broken:.0f} % broken" if broken else ""
        what += f", unlabeled rows {copies} times" if copies > 1 else ""
        body.append([what, sizes.replace(" ", ", "), str(prior), f"{n:,}", cells[0], *known, *cells[1:]])
    shown = list(names.values())
    return markdown(["set", "M", "prior", "n", shown[0], "known that cover", "width of the known", *shown[1:]], body)


def learners() -> dict[str, str]:
    """Return accuracies of learners by cell, and how far `auto` is from each, paired by cell."""
    cell, names = (["set", "sizes", "prior", "n"], ["student", "linear", "network", "abs", "copied", "uu", "labels"])
    rows = pd.read_csv(REFERENCE / "learners.csv", dtype={"sizes": str})
    chosen = rows[rows["learner"] == "auto"]
    everything = pd.concat([rows, chosen.assign(learner=chosen["chosen"])]).drop_duplicates([*cell, "trial", "learner"])
    by_trial = everything.pivot(index=[*cell, "trial"], columns="learner", values="accuracy")
    rules = [name for name in by_trial if name.startswith("by ")]
    for rule in rules:  # that chose a learner
        own = rows[rows["learner"] == rule].set_index([*cell, "trial"])["chosen"]
        by_trial[rule] = pd.Series({key: by_trial.loc[key, name] for key, name in own.items()})
    means, body = by_trial.groupby(level=cell).mean().reindex(columns=["auto", "default", *names, *rules]), []
    seconds = chosen.groupby(cell)["seconds"].mean()
    for key, own in by_trial.groupby(level=cell):
        name, sizes, prior, n = key
        known = own["default"].notna().sum()
        numbers = ["–" if pd.isna(value) else f"{value:.1f}" for value in means.loc[key, ["default", *names]]]
        setting = [SETS.get(name, name), sizes.replace(" ", ", "), str(prior), f"{n:,}"]
        constant, time = f"{100 * max(prior, 1 - prior):.1f}", f"{seconds[key]:.1f}"
        body.append([*setting, f"{known} of {len(own)}", *numbers, constant, time])
    paired = [["`default`, where known", (by_trial["auto"] - by_trial["default"]).groupby(level=cell).mean()]]
    paired += [[f"`{name}`", means["auto"] - means[name]] for name in names]
    paired += [[f"the choice {rule}", means["auto"] - means[rule]] for rule in rules]
    paired += [["the best of the three learners", means["auto"] - means[names[:3]].max(axis=1)]]
    beside = [
        [name, str(lead.notna().sum()), with_interval(lead.dropna()), f"{lead.min():.1f}"] for name, lead in paired
    ]
    titles = ["set", "M", "prior", "n", "known", "default", *(f"`{name}`" for name in names), "constant", "s"]
    return {
        "learners": markdown(titles, body),
        "learners-paired": markdown(["`auto` less", "cells", "points", "lowest cell"], beside),
    }


def tables() -> dict[str, str]:
    """Return every table by its name."""
    known = cells()
    made = {
        name: markdown([head, *(label for label, _ in columns)],
                       [[label, *(shown(known, {**axes, **more}) for _, more in columns)] for label, axes in rows])
        for name, (head, rows, columns) in TABLES.items()
    }  # fmt: skip
    made["laws-mnist"] = laws("mnist")
    made["speed"] = speed()
    made |= {"natural": natural(), "own-split": own_split(), "colour": colour()}
    made |= {"loops-scale": scale(), "recipe": recipe(), "coverage": coverage(), **learners()}
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
