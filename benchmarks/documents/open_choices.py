"""What the sensitivity studies say of the choices that the paper leaves open."""

from __future__ import annotations

from typing import Any

import pandas as pd

from documents.rows import SENSITIVITY, SIZES, Reference
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.evaluate.sensitivity import SCOPE_KEY
from mdpu.pipeline.experiments.sensitivity.tables import departures_title

STUDIED = ("mnist", "fashion-mnist")
# Choices that change neither the data nor how far training gets, and those that train nothing anew.
OF_TRAINING = ("hidden", "batch_counts", "optimizer", "weight_decay", "learning_rate")
OF_REPORTS = ("average_last", "test_prior")
LOW_RATES = ("2e-05", "4e-05")


def effect_rows(reference: Reference) -> list[dict[str, Any]]:
    """Return, for each of the paper's methods, the open choice with the largest effect whose interval excludes zero."""
    clear = reference.sensitivity.query("low * high > 0")
    clear = clear.loc[clear["difference"].abs().groupby(clear["method"]).idxmax()].set_index("method", drop=False)
    return [dict(row) for row in clear.loc[list(PROPOSED)].to_dict("records")]


def sensitivity_facts(reference: Reference) -> dict[str, Any]:
    """Return how far groups of choices move the methods, and which choices come near to the paper's numbers."""
    moves = reference.sensitivity
    retrained = moves[~moves["key"].isin([SCOPE_KEY, *OF_REPORTS])]
    of_training = retrained[retrained["key"].isin(OF_TRAINING) & ~retrained["value"].isin(LOW_RATES)]
    decays = of_training[of_training["key"] == "weight_decay"].pivot(
        index=["dataset", "tuple_size", "method"], columns="value", values="difference"
    )
    neighbours = (decays["0.0006"] - decays["0.0007"]).abs().groupby("method").max()
    by_method = {method: rows["difference"] for method, rows in of_training.groupby("method")}
    ure = retrained[retrained["method"] == "ure"].groupby(["key", "value"])["difference"]
    best = moves[(moves["key"] == "average_last") & (moves["value"] == "best")]["difference"]
    return {
        "runs": reference.selected("sensitivity.yaml"),
        "differences": len(moves),
        "bold": int((moves["low"] * moves["high"] > 0).sum()),
        "by_chance": (1 - reference.config["comparison"]["level"]) * len(moves),
        "of_training": by_method,
        "lower": {method: int((values < 0).sum()) for method, values in by_method.items()},
        "neighbours": {method: float(neighbours[method]) for method in PROPOSED},
        "ure": {name: ure.get_group(name) for name in ure.groups},
        "low_rates": {rate: _low_rate_facts(reference, rate) for rate in LOW_RATES},
        "best": best,
        "nearest": {size: nearest_facts(reference, name) for size, name in SENSITIVITY.items()},
    }


def _low_rate_facts(reference: Reference, rate: str) -> dict[str, Any]:
    """Return what the three methods reach at a low learning rate, and when URE's training risk falls below zero."""
    at_rate = reference.sensitivity.query("key == 'learning_rate' and value == @rate")
    means = at_rate.pivot(index=["dataset", "tuple_size"], columns="method", values="mean")[list(PROPOSED)]
    others = at_rate[at_rate["method"] != "ure"]
    histories = [
        reference.history(dataset, size, "0.5", "ure", variant=f"rate-{rate.replace('e-0', 'e-')}")
        for dataset in STUDIED
        for size in SIZES
    ]
    below = [run.loc[run["risk"] < 0, "epoch"].min() for history in histories for _, run in history.groupby("seed")]
    return {
        "spread": means.max(axis=1) - means.min(axis=1),
        "ure": at_rate.loc[at_rate["method"] == "ure", "difference"],
        "others": others["difference"],
        "others_lose": int((others["high"] < 0).sum()),
        "runs": len(below),
        "epochs": pd.Series(below).dropna().astype(int),
    }


def nearest_facts(reference: Reference, study: str) -> dict[str, Any]:
    """Return how far the protocol and other combinations of choices lie from the published numbers of a study."""
    nearest = titled(reference, study)
    alone = nearest[nearest["keys"] == 1]
    return {
        "cells": int(nearest["cells"].iloc[0]),
        "combinations": len(nearest),
        "tied": int(nearest["tied"].sum()),
        "first": nearest.iloc[0],
        "base": nearest[nearest["keys"] == 0].squeeze(),
        "nearer": _with_gains(alone[alone["gain_low"] > 0]),
        "farther": _with_gains(alone[alone["gain_high"] < 0]),
    }


def sides_facts(reference: Reference) -> dict[str, Any]:
    """Return what the letters A to I give the proposed methods instead of all, and which combinations come nearest."""
    moves, nearest = reference.study("sensitivity-sides"), titled(reference, "sensitivity-sides")
    letters = nearest["departures"].str.contains("sides = emnist-letters-a-i")
    return {
        **nearest_facts(reference, "sensitivity-sides"),
        "gain": moves.loc[moves["key"] == "sides", "difference"],
        "tied_with_all": int((nearest["tied"] & ~letters).sum()),
        "nearest_of_all": nearest[~letters].iloc[0],
        "alone": nearest[nearest["departures"] == "sides = emnist-letters-a-i"].squeeze(),
    }


def titled(reference: Reference, study: str) -> pd.DataFrame:
    """Return the distances of a study's combinations to the published numbers, each with a ``title`` in italics."""
    datasets = {name: reference.title(name) for name in reference.config["definitions"]["datasets"]}
    nearest = reference.nearest(study)
    return nearest.assign(title=[f"*{departures_title(name, datasets)}*" for name in nearest["departures"]])


def _with_gains(nearest: pd.DataFrame) -> str:
    return "; ".join(f"{row.title} ({abs(row.gain):.2f})" for row in nearest.itertuples())
