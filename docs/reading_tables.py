"""Tables and numbers of docs/explanation/readings.md, from the files that benchmarks/readings.py
wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import rows as reference
from rows import IN_WORDS, JUDGED, between, in_sentence, markdown

from mdpu.pipeline.evaluate.comparison import DIFFERS, NOT_RUN

METHODS = {"ure": "URE", "relu": "ReLU", "abs": "ABS"}
MOST = 108  # numbers of the largest set
BEST = "epochs all, loss hinge"
ONCE = "epochs all, replacement without"
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


def read(name: str) -> pd.DataFrame:
    """Return one of the files."""
    return reference.read(f"readings/{name}.csv")


def one_decimal(value: float) -> str:
    """Return a number without the sign of a zero."""
    return f"{round(value, 1) + 0.0:.1f}"


def probability(value: float) -> str:
    """Return a probability with two decimals, or that it is too small for them."""
    return f"{value:.2f}" if value >= 0.005 else "under 0.01"


def in_words(reading: str) -> str:
    """Return the name of a reading in words."""
    return ", ".join(WORDS.get(departure, departure) for departure in reading.split(", "))


def place_in_words(row: Mapping[str, object]) -> str:
    """Return which number a row is of."""
    size = {2: "pairs", 3: "triples"}[int(str(row["tuple_size"]))]
    method = METHODS[str(row["method"])]
    dataset = DATASETS[str(row["dataset"])]
    return f"{method} on {size} of {dataset} at prior {row['prior']}, n = {int(str(row['n'])):,}"


def sets() -> str:
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
    return markdown(["numbers", "readings", "choices that vary", "trials", "power"], body)


def with_trials(numbers: int) -> str:
    """Return how many numbers a set has, and by how many trials of each it is judged."""
    trials = read("sets").set_index("numbers").loc[numbers, "trials"]
    return f"{numbers} ({trials})"


def joint() -> str:
    """Return the three most probable readings of each set, and the protocol."""
    body = []
    for numbers, group in read("joint").groupby("numbers", sort=False):
        best = group.head(3)
        usual = group[(group["reading"] == PROTOCOL) & ~group.index.isin(best.index)]
        for row in pd.concat([best, usual]).to_dict("records"):
            gaps = " / ".join(one_decimal(row[f"gap_{method}"]) for method in METHODS)
            ones = [f"{row[name]:.1f}" for name in ("log_mean", "log_deviation")]
            twos = [f"{row[name]:.2f}" for name in ("tau", "kappa", "rms_z")]
            shown = [with_trials(numbers), in_words(row["reading"]), f"{row['posterior']:.2f}"]
            body.append([*shown, *ones, *twos, gaps, f"{row['ratio']:.2f}"])
    head = [
        "numbers (trials)",
        "reading",
        "posterior",
        "log mean",
        "log deviation",
        "$\\tau$",
        "$\\kappa$",
    ]
    return markdown([*head, "RMS z", "gap URE / ReLU / ABS", "ratio"], body)


def held_out() -> str:
    """Return how well each dataset is predicted by the others."""
    body = []
    for row in read("held_out").to_dict("records"):
        scores = [f"{row[name]:.2f}" for name in ("mixture", "best", "protocol")]
        dataset = DATASETS[row["dataset"]]
        numbers = with_trials(row["numbers"])
        body.append([numbers, dataset, in_words(row["reading"]), *scores])
    head = ["numbers (trials)", "held out", "chosen by the others", "mixture", "best", "protocol"]
    return markdown(head, body)


def known() -> str:
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
    return markdown(head, body)


def single() -> str:
    """Return what becomes of the numbers that differ, under each single departure that brings
    three of them nearer.
    """
    rows = of_single_departures()
    sums = rows.groupby("reading").agg(
        better=("better", "sum"),
        better_by_protocol=("better_by_protocol", "sum"),
        judged=("reading", "size"),
        fewest=("trials", "min"),
        most=("trials", "max"),
    )
    ordered = sums[sums["better"] >= 3].sort_values("better", ascending=False, kind="stable")
    body = []
    for name, row in ordered.iterrows():
        trials = str(row["most"])
        if row["fewest"] < row["most"]:
            trials = f"{row['fewest']} or {trials}"
        shown = [row["better"], row["better_by_protocol"], row["judged"], trials]
        body.append([in_words(str(name)), *map(str, shown)])
    head = ["reproduced or close", "under the protocol", "of those that were run", "trials"]
    return markdown(["reading", *head], body)


def of_single_departures() -> pd.DataFrame:
    """Return the numbers that differ under the protocol, by the single departures that were run:
    whether they are reproduced or close (``better``), and, by as many trials, under the protocol.
    """
    rows = read("single")
    rows = rows[rows["verdict"] != NOT_RUN]
    near = ["reproduced", "close"]
    return rows.assign(
        better=rows["verdict"].isin(near),
        better_by_protocol=rows["protocol"].isin(near),
    )


def compared(choices: str, of_all: bool = False) -> pd.DataFrame:
    """Return the comparison of the values of some choices: of those that have the most trials, or
    `of_all` by the trials that all have.
    """
    rows = read("compared")
    rows = rows[rows["choices"] == choices]
    trials = rows.groupby(["n", "dataset", "prior"], dropna=False)["trials"]
    return rows[rows["trials"] == trials.transform("min" if of_all else "max")]


def in_trials(rows: pd.DataFrame) -> str:
    """Return how many trials each number of some rows has."""
    (count,) = rows["trials"].unique()
    return f"{IN_WORDS[count]} trials"


def gaps(row: Mapping[str, float]) -> str:
    """Return ours minus the paper's by method."""
    return ", ".join(f"{row[f'gap_{method}']:.2f}" for method in METHODS)


def by_prior(
    rows: pd.DataFrame,
    choice: str,
    values: Mapping[str, str],
    group: list[str],
) -> str:
    """Return how near the values of a choice come, by all epochs and by the last ten."""
    wide = rows.set_index([*group, choice, "epochs"]).sort_index()
    keys = rows[group].drop_duplicates()
    body = []
    for key in keys.itertuples(index=False, name=None):
        place = ", ".join(key)
        for value, title in values.items():
            every = wide.loc[(*key, value, "all")]
            last = wide.loc[(*key, value, "last-ten")]
            of_every = [f"{every['rms']:.2f}", gaps(every)]
            of_last = [f"{last['rms']:.2f}", gaps(last)]
            body.append([place, title, *of_every, *of_last])
            place = ""  # a place is named once
    methods = ", ".join(METHODS.values())
    head = [", ".join(group), choice, "all epochs", methods, "last ten", methods]
    return markdown(head, body)


def counts(
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
    return markdown([choice, "epochs", *JUDGED], body)


def every_loss() -> pd.DataFrame:
    """Return the comparison of all losses at prior 0.5."""
    return compared("loss", of_all=True).query("n == 'smaller' and prior == '0.5'")


def both_choices() -> pd.DataFrame:
    """Return the comparison of the hinge loss with and without replacement."""
    return compared("loss replacement", of_all=True).query("loss == 'hinge' and n == 'smaller'")


def losses_at_half() -> str:
    """Return how near each loss comes at prior 0.5, by the last ten epochs."""
    rows = every_loss().query("epochs == 'last-ten'")
    body = []
    for row in rows.sort_values("rms").to_dict("records"):
        loss = WORDS.get(f"loss {row['loss']}", row["loss"]).removesuffix(" loss")
        by_method = [f"{row[f'gap_{method}']:.2f}" for method in METHODS]
        body.append([loss, f"{row['rms']:.2f}", *by_method, f"{row['ratio']:.2f}"])
    return markdown(["loss", "RMS", *METHODS.values(), "ratio"], body)


def rates() -> str:
    """Return how near two rates come on Fashion-MNIST, by the last ten epochs."""
    rows = compared("rate").query("dataset == 'fashion-mnist' and epochs == 'last-ten'")
    wide = rows.set_index(["prior", "rate"])
    body = []
    for prior in ("0.4", "0.5", "0.6"):
        for rate in ("4e-5", "1e-3"):
            row = wide.loc[(prior, rate)]
            shown = [prior if rate == "4e-5" else "", rate, f"{row['accuracy']:.1f}"]
            body.append([*shown, f"{row['rms']:.2f}", gaps(row), f"{row['ratio']:.2f}"])
    return markdown(
        ["prior", "rate", "accuracy", "RMS", ", ".join(METHODS.values()), "ratio"], body
    )


# Choices of benchmarks/screening.py that the table words otherwise.
SCREENED = {
    "exact class counts": "exact class counts instead of drawn ones",
    "drawn at the natural prior": "all images drawn at the prior of the dataset",
}


def screening() -> str:
    """Return by how many points nine choices move URE, by prior, over all epochs."""
    runs = reference.read("screening.csv")
    means = runs.pivot(index="choice", columns=["prior", "seed"], values="all")
    moved = (means - means.loc["protocol"]).T.groupby(level="prior").mean()
    choices = [choice for choice in runs["choice"].unique() if choice != "protocol"]
    body = []
    for choice in choices:
        points = [f"{moved.loc[prior, choice]:+.1f}" for prior in moved.index]
        body.append([SCREENED.get(choice, choice), *points])
    return markdown(["choice", *(f"prior {prior}" for prior in moved.index)], body)


# Claims whose status a reading changes.
CHANGED = {
    "corrected-beats-ure": "a correction is above URE in a cell",
    "corrected-beats-ure-on-datasets": "it is so averaged over a dataset",
    "ure-overfits": "URE ends below its own best",
    "corrected-accuracy-holds": "ReLU and ABS hold their accuracy",
    "accuracy-grows-with-n": "accuracy grows with n",
}


def claims() -> str:
    """Return in how many cases claims hold, by named reading."""
    rows = reference.claims()
    named = ["probable", "caption", "literal"]
    body = []
    for claim, title in CHANGED.items():
        body.append([title, *rows.loc[claim, ["ours", *named]]])
    return markdown(["claim", "protocol", *named], body)


REHEARSED = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "emnist-letters": "EMNIST-Letters (A-I)",
    "own-digits": "EMNIST-Digits, own split",
    "own-balanced-digits": "EMNIST-Balanced, the digits, own split",
    "own-balanced": "EMNIST-Balanced, all 47 classes, own split",
}


def rehearsal() -> str:
    """Return how forecasts fare on runs that they were made without."""
    rows = reference.read("rehearsal.csv").set_index(["runs", "reading"])
    body = []
    for name, title in REHEARSED.items():
        for reading in ("caption", "protocol"):
            row = rows.loc[(name, reading)]
            counts = [f"{row[column]:.0f}" for column in ("numbers", "inside")]
            scores = [f"{row[column]:.1f}" for column in ("width", "score")]
            paper = [f"{row['paper_inside']:.0f}", f"{row['paper_score']:.1f}"]
            shown = title if reading == "caption" else ""
            body.append([shown, reading, *counts, *scores, *paper])
    heads = ["numbers", "inside", "width", "score", "paper: inside", "score"]
    return markdown(["runs", "reading", *heads], body)


def rehearsal_numbers() -> dict[str, str]:
    """Return how many of our means the rehearsed forecasts hold."""
    sums = reference.read("rehearsal.csv").groupby("runs")[["inside", "numbers"]].sum()
    three = sums.loc[["mnist", "fashion-mnist", "emnist-letters"]].sum()
    others = sums.loc[["own-digits", "own-balanced-digits"]].sum()
    return {
        "rehearsed-three": f"{three['inside']} of {three['numbers']}",
        "rehearsed-other": f"{others['inside']} of {others['numbers']}",
        "rehearsed-share": f"{100 * others['inside'] / others['numbers']:.0f}",
    }


def tables() -> dict[str, str]:
    """Return every table of the page by its name."""
    loss = compared("loss")
    once = compared("replacement")
    both = both_choices()
    smaller = loss[loss["n"] == "smaller"]
    larger = loss[loss["n"] == "larger"]
    three = ["all", "last-ten", "last"]
    return {
        "reading-sets": sets(),
        "reading-known": known(),
        "reading-joint": joint(),
        "reading-held-out": held_out(),
        "reading-single": single(),
        "losses-at-half": losses_at_half(),
        "losses-by-prior": by_prior(smaller, "loss", LOSSES, ["prior"]),
        "losses-smaller": counts(smaller, "loss", LOSSES, three),
        "losses-larger": counts(larger, "loss", LOSSES, three[:2]),
        "images-by-prior": by_prior(once, "replacement", IMAGES, ["n", "prior"]),
        "both-by-prior": by_prior(both, "replacement", IMAGES, ["prior"]),
        "rates": rates(),
        "screening": screening(),
        "claims-readings": claims(),
        "rehearsal": rehearsal(),
    }


def numbers() -> dict[str, str]:
    """Return the numbers that stand within sentences of the page, by their names."""
    joint_rows = read("joint").set_index(["numbers", "reading"])
    best = joint_rows.loc[MOST, BEST]
    usual = joint_rows.loc[MOST, PROTOCOL]
    every = joint_rows.loc[MOST, "epochs all"]
    value = read("choices").set_index(["numbers", "choice", "value"])
    found = {}

    for name, row in {"best": best, "protocol": usual}.items():
        found[f"{name}-posterior"] = probability(row["posterior"])
        found[f"{name}-means-alone"] = f"{row['means_alone']:.2f}"
        found[f"{name}-no-offsets"] = f"{row['no_offsets']:.2f}"
        found[f"{name}-rms-z"] = f"{row['rms_z']:.2f}"
    found["every-posterior"] = probability(every["posterior"])
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
    found["once-36"] = f"{joint_rows.loc[(36, ONCE), 'posterior']:.2f}"
    found["hinge-36"] = f"{joint_rows.loc[(36, BEST), 'posterior']:.2f}"
    trials = read("sets").set_index("numbers")["trials"]
    found["trials-54"] = f"{IN_WORDS[trials[54]]} trials"
    letters = read("choices").query("choice == 'letters' and value == 'a-i'")
    found["letters-posterior"] = f"{letters['posterior'].min():.2f}"

    scores = read("held_out").query("numbers == @MOST")
    gain = scores["best"] - scores["protocol"]
    found["gain"] = between(gain)

    found["trials-every-loss"] = in_trials(every_loss())
    found["trials-losses"] = in_trials(compared("loss"))
    found["trials-both"] = in_trials(both_choices())
    found["trials-rates"] = in_trials(compared("rate", of_all=True))
    found["trials-replacement"] = in_trials(compared("replacement"))
    runs = read("runs").set_index("precision")["runs"]
    found["runs"] = f"{runs.sum():,}"
    found["runs-by-precision"] = " and ".join(
        f"{count:,} in {precision}" for precision, count in runs.items()
    )
    return {
        **found,
        **known_numbers(),
        **single_numbers(),
        **image_numbers(),
        **scope_numbers(),
        **rehearsal_numbers(),
    }


def scope_numbers() -> dict[str, str]:
    """Return how near the part-wise scope comes with and without replacement, beside each
    alone.
    """
    rows = compared("scope replacement", of_all=True).query("n == 'smaller' and prior == '0.5'")
    rms = rows.set_index(["epochs", "scope", "replacement"])["rms"]
    found = {"trials-scope": in_trials(rows)}
    for name, epochs in (("last", "last-ten"), ("all", "all")):
        found[f"scope-both-{name}"] = f"{rms.loc[epochs, 'part', 'without']:.2f}"
        found[f"scope-alone-{name}"] = f"{rms.loc[epochs, 'part', 'with']:.2f}"
        found[f"scope-whole-once-{name}"] = f"{rms.loc[epochs, 'whole', 'without']:.2f}"
        found[f"scope-whole-{name}"] = f"{rms.loc[epochs, 'whole', 'with']:.2f}"
    return found


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
    rows = of_single_departures()
    keys = ["dataset", "tuple_size", "n", "prior", "method"]
    explains = rows["better"] & (rows["protocol"] == DIFFERS)
    explained = explains.groupby([rows[key] for key in keys], sort=False).any()
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
    both = both_choices()
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
