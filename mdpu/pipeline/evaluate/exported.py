"""Verdicts for other sites and papers: a row a number and reading, held by ``workflow/schemas/verdicts.schema.json``.

All readings of a number are judged by the same trials, those that each of them has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

import numpy as np

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.comparison import NOT_RUN
from mdpu.pipeline.evaluate.published import NUMERALS
from mdpu.pipeline.evaluate.readings import Panel, Reading, Readings, verdicts
from mdpu.pipeline.evaluate.shipped import variant_of
from mdpu.pipeline.plan import DOMINANT, LOGISTIC, cell_name


def reading_address(reading: Reading, readings: Readings) -> str:
    """Return the address of a reading on the page, as the page's script writes it; nothing for the protocol."""
    training = readings.training(reading)
    free = {choice: value for choice, value in readings.departures(reading).items() if choice in readings.free}
    parts = [f"{choice}:{value}" for choice, value in free.items()]
    if training != readings.training(readings.protocol):
        parts.append(f"training:{training}")
    return f"#reading={quote_plus(';'.join(parts), safe=':;/,')}" if parts else ""


def address(reading: Reading, readings: Readings, cell: str) -> str:
    """Return the address of a number under a reading on the page."""
    own = reading_address(reading, readings)
    return f"{own}&number={cell}" if own else f"#{cell}"


def exported(panel: Panel, readings: Readings, rule: Mapping[str, float], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return every number that was run under the readings of a panel, ready for JSON.

    `seeds` are those of the panel's trials, in their order.
    """
    judged = verdicts(panel, rule)
    rows = []
    for place, reading in enumerate(panel.readings):
        for number, cell in enumerate(panel.cells.to_dict("records")):
            if judged[place, number] != NOT_RUN:
                trials = panel.trials[place, number]
                rows.append(
                    _row(cell, reading, readings, dict(zip(seeds, trials, strict=True)), str(judged[place, number]))
                )
    return rows


def _row(
    cell: Mapping[Any, Any], reading: Reading, readings: Readings, by_seed: Mapping[int, float], verdict: str
) -> dict[str, Any]:
    """Return one number under one reading; trials are infinite if they diverged, missing if not run."""
    change = readings.changes(reading)
    method, _, loss = change["methods"].get(cell["method"], cell["method"]).partition(".")
    shared = {axis: cell[axis] for axis in ("tuple_size", "n", "prior")} | {"law": DOMINANT}
    of_page = {**shared, "method": cell["method"], "loss": LOGISTIC, "variant": BASE}
    usual = readings.changes(readings.protocol)["datasets"].get(cell["dataset"], cell["dataset"])
    dataset = change["datasets"].get(cell["dataset"], cell["dataset"])
    ours = {"dataset": dataset, "variant": variant_of(readings.training(reading)), "method": method}
    name = cell_name({**shared, **ours, "loss": loss or LOGISTIC})
    trials = {seed: accuracy for seed, accuracy in by_seed.items() if not np.isnan(accuracy)}
    finished = np.array([accuracy for accuracy in trials.values() if np.isfinite(accuracy)])
    return {
        "table": NUMERALS[cell["table"]],
        "dataset": cell["dataset"],
        "tuple_size": int(cell["tuple_size"]),
        "n": int(cell["n"]),
        "prior": float(cell["prior"]),
        "method": cell["method"],
        "reading": readings.name(reading),
        "published": {"mean": float(cell["published_mean"]), "std": float(cell["published_std"])},
        "ours": {
            "mean": round(float(finished.mean()), 4) if len(finished) else None,
            "std": round(float(finished.std(ddof=1)), 4) if len(finished) > 1 else None,
        },
        "trials": len(trials),
        "verdict": verdict,
        "address": address(reading, readings, cell_name({**of_page, "dataset": usual})),
        "runs": [f"{name}/seed{seed}" for seed in trials],
    }
