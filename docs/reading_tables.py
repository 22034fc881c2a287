"""Tables and numbers of docs/explanation/readings.md, from the files that benchmarks/readings.py
wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from mdpu.pipeline.evaluate.comparison import NOT_RUN, VERDICTS

FOLDER = Path(__file__).resolve().parent.parent / "results" / "reference" / "readings"
METHODS = {"ure": "URE", "relu": "ReLU", "abs": "ABS"}
JUDGED = [verdict for verdict in VERDICTS if verdict != NOT_RUN]
MOST = 108  # numbers of the largest set
BEST = "epochs all, loss hinge"
PROTOCOL = "protocol"

WORDS = {
    "epochs all": "all epochs",
    "epochs best": "best epoch",
    "epochs last": "last epoch",
    "scope class": "class-wise scope",
    "scope part": "part-wise scope",
    "loss hinge": "hinge loss",
    "loss squared": "squared loss",
    "loss usual-ramp": "usual ramp",
    "letters all-26": "all 26 letters",
    "replacement without": "without replacement",
    "overlap disjoint": "disjoint pools",
    "counts images": "n counts images",
    "batch images": "minibatches count images",
    "layers one-hidden": "one hidden layer",
    "layers three-hidden": "three hidden layers",
    "optimizer adamw": "AdamW",
}
DATASETS = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "emnist-letters": "EMNIST-Letters",
}
# Values of a choice as the tables name them.
LOSSES = {"hinge": "hinge", "logistic": "logistic"}
IMAGES = {"without": "drawn once", "with": "with replacement"}
EPOCHS = {"all": "all 100", "last-ten": "last ten (protocol)", "last": "last"}

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]


@cache
def read(name: str) -> pd.DataFrame:
    """Return one of the files."""
    return pd.read_csv(FOLDER / f"{name}.csv", dtype={"prior": str, "value": str, "rate": str})


def one_decimal(value: float) -> str:
    """Return a number without the sign of a zero."""
    return f"{round(value, 1) + 0.0:.1f}"


def in_words(reading: str) -> str:
    """Return the name of a reading in words."""
    return ", ".join(WORDS.get(departure, departure) for departure in reading.split(", "))


def place_in_words(row: Mapping[str, object]) -> str:
    """Return which number a row is of."""
    size = {2: "pairs", 3: "triples"}[int(str(row["tuple_size"]))]
    method = METHODS[str(row["method"])]
    dataset = DATASETS[str(row["dataset"])]
    return f"{method} on {size} of {dataset} at prior {row['prior']}, n = {int(str(row['n'])):,}"


def sets(table: Table) -> str:
    """Return the sets of numbers on which readings are compared."""
    choices = read("choices").groupby("numbers")["choice"].unique()
    body = [
        [
            f"{row['numbers']}: {row['title']}",
            str(row["readings"]),
            ", ".join(choices[row["numbers"]]),
            str(row["trials"]),
            f"{row['power']:g}",
        ]
        for row in read("sets").to_dict("records")
    ]
    return table(["numbers", "readings", "choices that vary", "trials", "power"], body)


def joint(table: Table) -> str:
    """Return the three most probable readings of each set, and the protocol."""
    body = []
    for numbers, group in read("joint").groupby("numbers", sort=False):
        best = group.head(3)
        usual = group[(group["reading"] == PROTOCOL) & ~group.index.isin(best.index)]
        for row in pd.concat([best, usual]).to_dict("records"):
            gaps = " / ".join(one_decimal(row[f"gap_{method}"]) for method in METHODS)
            ones = [f"{row[name]:.1f}" for name in ("log_mean", "log_deviation")]
            twos = [f"{row[name]:.2f}" for name in ("tau", "kappa", "rms_z")]
            shown = [str(numbers), in_words(row["reading"]), f"{row['posterior']:.2f}"]
            body.append([*shown, *ones, *twos, gaps, f"{row['ratio']:.2f}"])
    head = ["numbers", "reading", "posterior", "log mean", "log deviation", "$\\tau$", "$\\kappa$"]
    return table([*head, "RMS z", "gap URE / ReLU / ABS", "ratio"], body)


def held_out(table: Table) -> str:
    """Return how well each dataset is predicted by the others."""
    body = []
    for row in read("held_out").to_dict("records"):
        scores = [f"{row[name]:.2f}" for name in ("mixture", "best", "protocol")]
        dataset = DATASETS[row["dataset"]]
        body.append([str(row["numbers"]), dataset, in_words(row["reading"]), *scores])
    head = ["numbers", "held out", "chosen by the others", "mixture", "best", "protocol"]
    return table(head, body)


def known(table: Table) -> str:
    """Return how often the value of a choice is found in papers whose reading is known."""
    rows = read("known").set_index(["choice", "numbers", "made_of"])
    body = []
    for choice in ("epochs", "letters", "scope", "replacement", "loss"):
        for numbers in read("sets")["numbers"]:
            if numbers == 12 and choice != "epochs":  # one of eleven; the text has its departures
                continue
            if (choice, numbers, "drawn trials, offset 1") not in rows.index:
                continue
            real = ["", "", ""]
            if (choice, numbers, "three real trials") in rows.index:
                found = rows.loc[choice, numbers, "three real trials"]
                real = [f"{found['papers']:.0f}", f"{found['first']:.2f}", f"{found['held']:.2f}"]
            made = rows.loc[choice, numbers, "drawn trials, offset 1"]
            share = [f"{made['first']:.2f}", f"{made['held']:.2f}"]
            body.append([f"{choice}, {numbers}", *real, *share])
    head = ["choice, numbers", "real: papers", "first", "held", "drawn: first", "held"]
    return table(head, body)


def single(table: Table) -> str:
    """Return what becomes of the numbers that differ, under each single departure that says
    more.
    """
    rows = read("single")
    better = rows[rows["verdict"].isin(["reproduced", "close"])]
    counts = better.groupby("reading").size().sort_values(ascending=False, kind="stable")
    verdicts = rows.groupby("reading")["verdict"]
    judged = verdicts.agg(lambda verdict: int((verdict != NOT_RUN).sum()))
    body = [[in_words(name), str(count), str(judged[name])] for name, count in counts.items()]
    return table(["reading", "reproduced or close", "of those that were run"], body[:6])


def compared(choices: str) -> pd.DataFrame:
    """Return the comparison of the values of some choices."""
    rows = read("compared")
    return rows[rows["choices"] == choices]


def gaps(row: Mapping[str, float]) -> str:
    """Return ours minus the paper's by method."""
    return ", ".join(f"{row[f'gap_{method}']:.2f}" for method in METHODS)


def by_prior(
    table: Table,
    rows: pd.DataFrame,
    choice: str,
    values: Mapping[str, str],
    group: list[str],
) -> str:
    """Return how near the values of a choice come, by all epochs and by the last ten."""
    wide = rows.set_index([*group, choice, "epochs"]).sort_index()
    body = []
    for key in rows[group].drop_duplicates().itertuples(index=False, name=None):
        for place, (value, title) in enumerate(values.items()):
            every = wide.loc[(*key, value, "all")]
            last = wide.loc[(*key, value, "last-ten")]
            shown = ", ".join(key) if place == 0 else ""
            numbers = [f"{every['rms']:.2f}", gaps(every), f"{last['rms']:.2f}", gaps(last)]
            body.append([shown, title, *numbers])
    titles = [", ".join(group), choice]
    methods = ", ".join(METHODS.values())
    return table([*titles, "all epochs", methods, "last ten", methods], body)


def counts(
    table: Table,
    rows: pd.DataFrame,
    choice: str,
    values: Mapping[str, str],
    epochs: Sequence[str],
) -> str:
    """Return the verdicts under the values of a choice, by which epochs count."""
    sums = rows.groupby([choice, "epochs"])[JUDGED].sum()
    body = []
    for value, title in values.items():
        for name in epochs:
            shown = [title, EPOCHS[name]]
            body.append([*shown, *(str(count) for count in sums.loc[(value, name)])])
    return table([choice, "epochs", *JUDGED], body)


def losses_at_half(table: Table) -> str:
    """Return how near each loss comes at prior 0.5, by the last ten epochs."""
    rows = compared("loss").query("n == 'smaller' and prior == '0.5' and epochs == 'last-ten'")
    body = []
    for row in rows.sort_values("rms").to_dict("records"):
        loss = WORDS.get(f"loss {row['loss']}", row["loss"]).removesuffix(" loss")
        by_method = [f"{row[f'gap_{method}']:.2f}" for method in METHODS]
        body.append([loss, f"{row['rms']:.2f}", *by_method, f"{row['ratio']:.2f}"])
    return table(["loss", "RMS", *METHODS.values(), "ratio"], body)


def rates(table: Table) -> str:
    """Return how near two rates come on Fashion-MNIST, by the last ten epochs."""
    rows = compared("rate").query("dataset == 'fashion-mnist' and epochs == 'last-ten'")
    wide = rows.set_index(["prior", "rate"])
    body = []
    for prior in ("0.4", "0.5", "0.6"):
        for rate in ("4e-5", "1e-3"):
            row = wide.loc[(prior, rate)]
            shown = [prior if rate == "4e-5" else "", rate, f"{row['accuracy']:.1f}"]
            body.append([*shown, f"{row['rms']:.2f}", gaps(row), f"{row['ratio']:.2f}"])
    return table(["prior", "rate", "accuracy", "RMS", ", ".join(METHODS.values()), "ratio"], body)


def tables(table: Table) -> dict[str, str]:
    """Return every table of the page by its name."""
    loss = compared("loss")
    once = compared("replacement")
    both = compared("loss replacement").query("loss == 'hinge' and n == 'smaller'")
    smaller = loss[loss["n"] == "smaller"]
    larger = loss[loss["n"] == "larger"]
    three = ["all", "last-ten", "last"]
    return {
        "reading-sets": sets(table),
        "reading-known": known(table),
        "reading-joint": joint(table),
        "reading-held-out": held_out(table),
        "reading-single": single(table),
        "losses-at-half": losses_at_half(table),
        "losses-by-prior": by_prior(table, smaller, "loss", LOSSES, ["prior"]),
        "losses-smaller": counts(table, smaller, "loss", LOSSES, three),
        "losses-larger": counts(table, larger, "loss", LOSSES, three[:2]),
        "images-by-prior": by_prior(table, once, "replacement", IMAGES, ["n", "prior"]),
        "both-by-prior": by_prior(table, both, "replacement", IMAGES, ["prior"]),
        "rates": rates(table),
    }


def in_sentence(counts: Iterable[int]) -> str:
    """Return counts of verdicts as a part of a sentence."""
    reproduced, close, inconclusive, differ = counts
    return (
        f"{reproduced} are reproduced, {close} close, {inconclusive} inconclusive, and {differ} "
        "differ"
    )


def between(values: pd.Series) -> str:
    """Return the range of some numbers."""
    return f"{values.min():.1f} to {values.max():.1f}"


def numbers() -> dict[str, str]:
    """Return the numbers that stand within sentences of the page, by their names."""
    joint_rows = read("joint").set_index(["numbers", "reading"])
    best = joint_rows.loc[MOST, BEST]
    usual = joint_rows.loc[MOST, PROTOCOL]
    every = joint_rows.loc[MOST, "epochs all"]
    value = read("choices").set_index(["numbers", "choice", "value"])
    found = {}

    for name, row in {"best": best, "protocol": usual}.items():
        found[f"{name}-posterior"] = f"{row['posterior']:.2f}"
        found[f"{name}-means-alone"] = f"{row['means_alone']:.2f}"
        found[f"{name}-no-offsets"] = f"{row['no_offsets']:.2f}"
        found[f"{name}-rms-z"] = f"{row['rms_z']:.2f}"
    found["every-posterior"] = f"{every['posterior']:.2f}"
    found["readings-of-all"] = str(len(joint_rows.loc[MOST]))
    offsets = [f"{title} {best[f'gap_{method}']:+.1f}" for method, title in METHODS.items()]
    found["best-offsets"] = ", ".join(offsets)

    hinge = ("loss", "hinge")
    without = ("replacement", "without")
    for name, key, column in (
        ("hinge-54", (54, *hinge), "posterior"),
        ("hinge-108", (MOST, *hinge), "posterior"),
        ("hinge-108-prior", (MOST, *hinge), "prior_probability"),
        ("hinge-108-no-offsets", (MOST, *hinge), "no_offsets"),
        ("without-54", (54, *without), "posterior"),
        ("without-54-prior", (54, *without), "prior_probability"),
        ("without-108", (MOST, *without), "posterior"),
        ("without-108-prior", (MOST, *without), "prior_probability"),
    ):
        found[name] = f"{value.loc[key, column]:.2f}"
    letters = read("choices").query("choice == 'letters' and value == 'a-i'")
    found["letters-posterior"] = f"{letters['posterior'].min():.2f}"

    scores = read("held_out").query("numbers == @MOST")
    gain = scores["best"] - scores["protocol"]
    found["gain"] = between(gain)

    trials = sorted(read("compared")["trials"].unique())
    found["trials-compared"] = " to ".join(str(count) for count in trials) + " trials"
    runs = read("runs").set_index("precision")["runs"]
    found["runs"] = f"{runs.sum():,}"
    found["runs-by-precision"] = " and ".join(
        f"{count:,} in {precision}" for precision, count in runs.items()
    )
    return {**found, **known_numbers(), **single_numbers(), **image_numbers()}


def known_numbers() -> dict[str, str]:
    """Return what is said of papers whose reading is known."""
    rows = read("known")
    drawn = rows[rows["made_of"] == "drawn trials, offset 1"]
    departures = drawn[(drawn["numbers"] == 12) & ~drawn["choice"].isin(["epochs"])]
    ordered = departures.sort_values("found", ascending=False, kind="stable")
    shares = [
        f"{row['choice']} {row['found']:.2f}"
        for row in ordered.to_dict("records")
        if row["choice"] != "more information"
    ]
    first = rows.query("numbers == @MOST and choice == 'epochs'").set_index("made_of")["first"]
    more = departures.set_index("choice").loc["more information", "found"]
    return {
        "found-of-departures": ", ".join(shares),
        "found-more": f"{more:.2f}",
        "least-held": f"{rows['held'].min():.2f}",
        "epochs-drawn": f"{first['drawn trials, offset 0']:.2f}",
        "epochs-real": f"{first['three real trials']:.2f}",
    }


def single_numbers() -> dict[str, str]:
    """Return what is said of the numbers that differ under the protocol."""
    rows = read("single")
    keys = ["dataset", "tuple_size", "n", "prior", "method"]
    better = rows["verdict"].isin(["reproduced", "close"])
    explained = better.groupby([rows[key] for key in keys], sort=False).any()
    left = explained[~explained].reset_index()
    outside = read("outside")
    names = [place_in_words(row) for row in outside.to_dict("records")]
    nearest = [f"{gap:.1f}" for gap in outside["nearest"].abs()]
    return {
        "differ": str(len(explained)),
        "differ-explained": str(int(explained.sum())),
        "differ-left": "; ".join(place_in_words(row) for row in left.to_dict("records")),
        "outside": "; ".join(
            f"{name} (the nearest is {gap} points off)"
            for name, gap in zip(names, nearest, strict=True)
        ),
    }


def image_numbers() -> dict[str, str]:
    """Return what is said of images that are drawn once."""
    rows = compared("replacement").query("epochs == 'all'")
    wide = rows.pivot(index=["n", "prior"], columns="replacement", values="gap_ure")
    both = compared("loss replacement").query("loss == 'hinge' and n == 'smaller'")
    once = both.query("epochs == 'all' and replacement == 'without'")
    corrected = once[["gap_relu", "gap_abs"]].abs().max().max()
    found = {
        "once-raises-ure": between(wide["without"] - wide["with"]),
        "both-corrected": f"{corrected:.1f}",
        "both-ure": between(once["gap_ure"]),
    }
    joint_rows = read("joint").set_index(["numbers", "reading"])
    both_name = "epochs all, loss hinge, replacement without"
    found["both-posterior"] = f"{joint_rows.loc[(54, both_name), 'posterior']:.2f}"
    found["hinge-posterior"] = f"{joint_rows.loc[(54, BEST), 'posterior']:.2f}"
    for name, rows_of, replacement in (
        ("once", rows, "without"),
        ("replaced", rows, "with"),
        ("both", both.query("epochs == 'all'"), "without"),
        ("hinge-alone", both.query("epochs == 'all'"), "with"),
    ):
        sums = rows_of[rows_of["replacement"] == replacement][JUDGED].sum()
        found[f"{name}-counts"] = in_sentence(sums)
    return found
