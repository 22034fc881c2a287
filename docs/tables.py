"""Make the tables of the documents from the files of results/reference.

    python docs/tables.py

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`, counts within a sentence
between `<!-- n: NAME -->` and `<!-- end -->`. tests/docs/test_pages.py holds the documents to it.
`rows` reads the files, `sentences` makes the numbers, and the other modules make tables of a page.
Accuracies are in percent, mean and deviation over trials.
"""

from __future__ import annotations

import re
from functools import cache

import classifier_tables
import colour_tables
import pandas as pd
import performance_tables
import reading_tables
import sentences
from rows import (
    JUDGED,
    ROOT,
    TITLES,
    around,
    claims,
    comparison,
    markdown,
    read,
    shipped,
    with_interval,
)

from mdpu.pipeline.evaluate.published import published_cells

CELL = ("dataset", "variant", "tuple_size", "n", "prior", "method", "loss")
PAGES = ("article", "findings", "readings", "laws", "natural", "performance", "protocol")
DOCUMENTS = (
    "README.md",
    "ARTIFACT.md",
    "docs/index.md",
    "docs/CHECKLIST.md",
    *(f"docs/explanation/{name}.md" for name in PAGES),
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
# Images in a split of their own: title, and the dataset of the paper.
OWN = {
    "own-digits": ("EMNIST-Digits", "emnist-digits"),
    "own-balanced-digits": ("EMNIST-Balanced, the digits", "emnist-balanced"),
    "own-balanced": ("EMNIST-Balanced, all 47 classes", "emnist-balanced"),
}
PAPER = {"source": "paper"}
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
        crossed(named("relu", "abs", "relu-part", "bag-relu", "bag-em", "bag-free"), HALVES),
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


@cache
def accuracies() -> dict[tuple, pd.Series]:
    """Return the accuracies of each of our cells by seed."""
    runs = shipped("paper-reference", "own-split")
    return {key: rows.set_index("seed")["accuracy"] for key, rows in runs.groupby(list(CELL))}


@cache
def of_paper() -> dict[tuple, tuple[float, float]]:
    """Return mean and deviation of the paper's cells under the keys of ours, also of its best
    method.
    """
    found = {}
    for row in published_cells().to_dict("records"):
        key = {**row, "variant": "base", "loss": "logistic"}
        value = row["published_mean"], row["published_std"]
        own = (name for name, (_, published) in OWN.items() if published == row["dataset"])
        for dataset in (row["dataset"], f"{row['dataset']}-a-i", *own):
            best = tuple({**key, "dataset": dataset, "method": "best"}[axis] for axis in CELL)
            found[tuple({**key, "dataset": dataset}[axis] for axis in CELL)] = value
            found[best] = max(value, found.get(best, value))
    return found


def key_of(axes) -> tuple:
    """Return the key of a table's cell."""
    full = {"dataset": "mnist", "variant": "base", "loss": "logistic", **axes}
    return tuple({"n": SMALLER[full["dataset"]], **full}[axis] for axis in CELL)


def of_cells(name: str) -> str:
    """Return a table of cells, each by the trials that its whole row has; the row says how many."""
    head, rows, columns = TABLES[name]
    body = []
    for label, axes in rows:
        keys = [key_of({**axes, **more}) for _, more in columns]
        if "source" in axes:
            values = [of_paper()[key] for key in keys]
            body.append([label, *(f"{mean:.1f} ± {deviation:.1f}" for mean, deviation in values)])
            continue
        ours = [accuracies()[key] for key in keys]
        shared = sorted(set.intersection(*(set(cell.index) for cell in ours)))
        body.append([f"{label} ({len(shared)})", *(around(cell.loc[shared]) for cell in ours)])
    return markdown([f"{head} (trials)", *(label for label, _ in columns)], body)


def verdicts() -> str:
    """Return the verdicts on the numbers of the proposed methods, by method and by dataset."""
    rows = sentences.judged()
    groups = [*((f"`{name}`", rows["method"] == name) for name in BESIDE[:3])]
    groups += [(title, rows["dataset"] == name) for name, title in TITLES.items()]
    names = JUDGED
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


def readings() -> str:
    """Return the verdict counts of the readings, all by the same trials."""
    counts = sentences.reading_counts()
    body = [[title, *map(str, counts.loc[name])] for name, title in READINGS.items()]
    return markdown(["reading", *counts.columns], body)


def own_split() -> str:
    """Return the verdicts on EMNIST's images in a split of their own, by dataset and method."""
    rows = comparison("own-split")
    body = []
    verdicts = JUDGED
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


def claims_table() -> str:
    """Return the paper's claims, with the share that holds in our cells and in the paper's."""
    rows = claims().reset_index()
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
    rows = read("laws/cells.csv")
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


# A baseline of the paper, what of ours may be it, and how its accuracies are reported.
BASELINES = [
    ("siamese", "siamese", "last ten"),
    ("siamese", "siamese", "first"),
    ("siamese", "siamese", "swapped"),
    ("siamese", "siamese-mixed", "last ten"),
    ("siamese", "untrained", "last ten"),
    ("contrastive", "contrastive", "last ten"),
    ("contrastive", "contrastive", "first"),
    ("kmeans", "kmeans", "last ten"),
    ("kmeans", "kmeans-members", "last ten"),
    ("kmeans", "kmeans-means", "last ten"),
]


def baselines() -> str:
    """Return how far readings of the baselines are from the paper, as benchmarks/baselines.py
    compared them.
    """
    rows = read("baselines.csv").set_index(["paper", "ours", "reported", "M"]).sort_index()
    body = []
    for paper, ours, reported in BASELINES:
        by_size = rows.loc[(paper, ours, reported)]
        report = "" if reported == "last ten" else f", {reported}"
        cells = by_size["cells"] // len(TITLES)
        distances = [f"{by_size.loc[size, dataset]:.1f}" for dataset in TITLES for size in (2, 3)]
        body.append([f"{paper}, `{ours}`{report}", str(cells.min()), *distances])
    heads = [f"{title}, {size}" for title in TITLES.values() for size in ("pairs", "triples")]
    return markdown(["paper, ours", "rows", *heads], body)


def natural() -> str:
    """Return accuracy and AUC by the kind of supervision, on tuples that nobody drew."""
    rows = read("natural.csv").set_index(["set", "kind", "trial"]).sort_index()
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


def tables() -> dict[str, str]:
    """Return every table by its name."""
    made = {name: of_cells(name) for name in TABLES}
    made |= {"laws-mnist": laws("mnist"), "natural": natural(), "own-split": own_split()}
    made |= {"verdicts": verdicts(), "claims": claims_table(), "readings": readings()}
    made["article-claims"] = markdown(
        ["statement", "ours", "article's numbers"], sentences.article_claims()
    )
    made["siamese"] = markdown(
        ["", "`untrained`", "paper's Siamese", "ours"], sentences.siamese_lines(TITLES)
    )
    made["baselines"] = baselines()
    for more in (
        classifier_tables.tables(),
        colour_tables.tables(),
        performance_tables.tables(),
        reading_tables.tables(),
        reading_tables.numbers(),
        sentences.numbers(),
        counts_of_marks(),
    ):
        twice = made.keys() & more.keys()
        assert not twice, f"two tables or numbers have the names {sorted(twice)}"
        made |= more
    return made


def counts_of_marks() -> dict[str, str]:
    """Return how many numbers, tables and paragraphs of the documents are filled in or by hand."""
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)
    return {
        "filled-numbers": str(text.count("<!-- n: ")),
        "filled-tables": str(text.count("<!-- table: ")),
        "by-hand": str(text.count("<!-- by hand: ")),
    }


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
