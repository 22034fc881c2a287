"""Tables of docs/explanation/performance.md, from the files of results/reference."""

from __future__ import annotations

import pandas as pd
from rows import REFERENCE, TITLES, around, markdown, read
from scipy import stats

from mdpu.pipeline.evaluate.published import PROPOSED

LOOPS = {"ordinary": "ordinary loop", "plain": "the trainer"}
# by the file that benchmarks read
OF_IMAGES = {**TITLES, "emnist-letters": TITLES["emnist-letters-a-i"]}


def processor_seconds() -> pd.DataFrame:
    """Return the processor seconds of an epoch by loop and method, as benchmarks/training_speed.py
    measured them.
    """
    return read("speed.csv").pivot(index="loop", columns="method", values="seconds")


def speed() -> str:
    """Return the processor seconds of an epoch of an ordinary loop and of the trainer."""
    seconds = processor_seconds()
    body = [
        [title, *(f"{seconds.loc[loop, method]:.2f}" for method in PROPOSED)]
        for loop, title in LOOPS.items()
    ]
    return markdown(["", "URE", "ReLU", "ABS"], body)


def scale() -> str:
    """Return what `fit` takes by the number of pairs, as benchmarks/loops.py of commit b711da5
    measured it.
    """
    rows = read("loops.csv").query("what == 'scale'").sort_values(["n", "epochs"])
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


def devices() -> str:
    """Return how far runs of a GPU end from a CPU's, by the precision of the CPU's and by
    method.
    """
    rows = read("gpu/mnist.csv")
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


def recipe() -> str:
    """Return what the classifiers' default networks reach, by the number of tuples."""
    rows = read("recipe.csv").query("what == 'size'")
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


def precision() -> str:
    """Return what another precision does to the same runs, as benchmarks/paired.py compared
    them.
    """
    rows = read("precision.csv").set_index("method")
    columns = ["pairs", "first", "second", "difference", "deviation", "largest"]
    others = rows.index.drop([*PROPOSED, "all"])
    body = []
    for method in (*PROPOSED, *others, "all"):
        pairs, *numbers = rows.loc[method, columns]
        title = method if method == "all" else f"`{method}`"
        body.append([title, str(pairs), *(shown(number) for number in numbers)])
    heads = ["pairs", "bfloat16", "float32", "difference", "deviation", "largest"]
    return markdown(["", *heads], body)


def shown(value: float | str) -> str:
    """Return a number of a comparison in pairs, or its interval, as text."""
    return value if isinstance(value, str) else f"{value:.2f}"


def precision_numbers() -> dict[str, str]:
    """Return how far the precision moves the paper's methods, and the number of pairs."""
    rows = read("precision.csv").set_index("method")
    moved = rows.loc[list(PROPOSED), "difference"].str.split().str[0].astype(float).abs()
    return {
        "precision-most": f"{moved.max():.2f} points",
        "precision-runs": str(rows.loc["all", "pairs"]),
        "bfloat16-shipped": in_bfloat16(read("runs.csv")),
        "page-size": f"{(REFERENCE / 'report.html').stat().st_size / 1e6:.1f} MB",
    }


def in_bfloat16(runs: pd.DataFrame) -> str:
    """Return how many of some runs multiplied in bfloat16."""
    return f"{(runs['precision'] == 'bfloat16').sum():,} of {len(runs):,}"


def memory_numbers() -> dict[str, str]:
    """Return the memory of a fit beyond its rows at 100,000 groups, of the student and of the other
    learners.
    """
    memory = read("costs.csv").query("n == 100_000").set_index("learner")["gib"]
    return {
        "memory-student": f"{memory['student']:.1f} GiB",
        "memory-others": f"{memory.drop('student').max():.1f} GiB",
    }


LEARNERS = ("linear", "student", "network")


def costs() -> str:
    """Return the processor seconds of a fit by learner and number of groups."""
    seconds = read("costs.csv").pivot(index="learner", columns="n", values="seconds")
    body = []
    for learner in LEARNERS:
        cells = [seconds_shown(value) for value in seconds.loc[learner]]
        body.append([f"`{learner}`", *cells])
    return markdown(["learner", *(f"{n:,}" for n in seconds.columns)], body)


def seconds_shown(value: float) -> str:
    """Return seconds with two digits at least, or a dash where nothing was measured."""
    if pd.isna(value):
        return "–"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def tables() -> dict[str, str]:
    """Return every table and number of the page by its name."""
    return {
        "speed": speed(),
        "loops-scale": scale(),
        "devices": devices(),
        "recipe": recipe(),
        "precision": precision(),
        "costs": costs(),
        **precision_numbers(),
        **memory_numbers(),
    }
