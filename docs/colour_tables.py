"""Tables and numbers of the runs of CIFAR-10, from the files of results/reference."""

from __future__ import annotations

from functools import cache

import pandas as pd
from rows import REFERENCE, ROOT, between, markdown, read, shipped

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import collect, find_runs
from mdpu.pipeline.evaluate.forecasts import FILE, as_forecast, forecast_cells, score_forecasts
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import Plan

KEYS = ["tuple_size", "n", "prior", "method"]  # of a forecast's cell, beside its dataset
SIZES = {2: "pairs", 3: "triples"}
AS_IT_IS = "as it is"  # none of the choices


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


def choices() -> pd.DataFrame:
    """Return the accuracies under each choice that the paper leaves open, a column for each method
    and measure; means over trials.
    """
    runs = read("colour_choices.csv")
    means = runs.groupby(["choice", "method"], sort=False)[["all", "best"]].mean()
    return means.unstack("method").swaplevel(axis=1).reindex(PROPOSED, axis=1, level=0)


def moved() -> pd.DataFrame:
    """Return by how much each choice moves the accuracies, with the columns of `choices`."""
    accuracies = choices()
    return (accuracies - accuracies.loc[AS_IT_IS]).drop(AS_IT_IS)


def first_accuracies(cell: str, epochs: int) -> pd.Series:
    """Return the accuracies in percent of the first epochs of the long run that a query selects."""
    _, metrics = cifar_plan()
    history = metrics.query(cell)
    return 100 * history.loc[history["epoch"] <= epochs, "accuracy"]


def long_runs() -> list[float]:
    """Return how the runs of the same cell with 10,000 pairs fare in as many epochs, in the order
    of the columns of `choices`.
    """
    epochs = read("colour_choices.csv")["epochs"].iloc[0]
    accuracies = []
    for method in PROPOSED:
        cell = f"tuple_size == 2 and prior == '0.5' and method == '{method}'"
        first = first_accuracies(cell, epochs)
        accuracies += [first.mean(), first.max()]
    return accuracies


def colour_choices() -> str:
    """Return accuracies without any of the choices, what each choice moves, and accuracies of the
    long runs.
    """
    body = [[AS_IT_IS, *(f"{accuracy:.1f}" for accuracy in choices().loc[AS_IT_IS])]]
    for choice, differences in moved().iterrows():
        body.append([str(choice), *(f"{difference:+.1f}" for difference in differences)])
    body.append(["10,000 pairs, on a GPU", *(f"{accuracy:.1f}" for accuracy in long_runs())])

    header = [""]
    for method in PROPOSED:
        header += [f"`{method}`, all epochs", "best epoch"]
    return markdown(header, body)


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
    stem = read("gpu/stems.csv").iloc[0]
    lead = cells["all"] - cells["published_mean"]
    corrected = lead[cells["method"] != "ure"]
    unbiased = cells[cells["method"] == "ure"]
    same_cell = f"tuple_size == {stem['tuple_size']} and prior == '{stem['prior']}'"
    same_cell += f" and method == '{stem['method']}'"
    same = cells.query(same_cell).iloc[0]
    first = first_accuracies(same_cell, stem["epochs"]).mean()
    caption = scores.loc["caption"]
    over_all = moved().xs("all", axis=1, level=1).stack()
    risk = shipped("own-split").query("dataset == 'own-cifar-10' and method == 'ure'")["risk"]
    return {
        "colour-lead": between(corrected),
        "colour-above": f"{(lead > 0).sum()} of the {len(lead)} numbers",
        "colour-ure": between(unbiased["best"], digits=0),
        "colour-ure-last": between(unbiased["last"], digits=0),
        "colour-ure-risk": f"{risk.min():,.0f} to {risk.max():,.0f}",
        "colour-stem": f"{stem['mean_of_all']:.1f} %",
        "colour-stem-epochs": f"{stem['epochs']} epochs",
        "colour-stem-lead": f"{stem['mean_of_all'] - same['published_mean']:.1f} points",
        "colour-stem-same": f"{first:.1f} %",
        "colour-inside": f"{caption['inside']} of {caption['numbers']}",
        "colour-moved": f"{over_all.min():+.1f} to {over_all.max():+.1f}",
        "colour-centre": f"{caption['above']} of {caption['numbers']}",
        "colour-width": f"{caption['width']:.0f} points",
    }


def tables() -> dict[str, str]:
    """Return every table and number of CIFAR-10 by its name."""
    return {
        "colour": colour(),
        "colour-choices": colour_choices(),
        "colour-forecasts": colour_forecasts(),
        **colour_numbers(),
    }
