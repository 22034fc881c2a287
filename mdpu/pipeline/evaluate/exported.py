"""Verdicts for other sites and papers: a row a number and reading, held by
``workflow/schemas/verdicts.schema.json``.

All readings of a number are judged by the same trials, those that each of them has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

import numpy as np

from mdpu.pipeline.config import BASE
from mdpu.pipeline.evaluate.choices import Reading, Readings
from mdpu.pipeline.evaluate.comparison import NOT_RUN
from mdpu.pipeline.evaluate.panel import Panel, verdicts
from mdpu.pipeline.evaluate.published import NUMERALS
from mdpu.pipeline.evaluate.shipped import variant_of
from mdpu.pipeline.plan import DOMINANT, LOGISTIC, cell_name

DECIMALS = 4  # of means and deviations in percent


def reading_address(reading: Reading, readings: Readings) -> str:
    """Return the address of a reading on the page, as the page's script writes it; nothing for the
    protocol.
    """
    parts = []
    for choice, value in readings.departures(reading).items():
        if choice in readings.free:
            parts.append(f"{choice}:{value}")
    training = readings.training(reading)
    if training != readings.training(readings.protocol):
        parts.append(f"training:{training}")
    if not parts:
        return ""
    return f"#reading={quote_plus(';'.join(parts), safe=':;/,')}"


def address(reading: Reading, readings: Readings, cell: str) -> str:
    """Return the address of a number under a reading on the page."""
    of_reading = reading_address(reading, readings)
    return f"{of_reading}&number={cell}" if of_reading else f"#{cell}"


def exported(
    panel: Panel,
    readings: Readings,
    rule: Mapping[str, float],
    seeds: Sequence[int],
) -> list[dict[str, Any]]:
    """Return every number that was run under the readings of a panel, ready for JSON.

    `seeds` are those of the panel's trials, in their order.
    """
    judged = verdicts(panel, rule)
    cells = panel.cells.to_dict("records")
    rows = []
    for place, reading in enumerate(panel.readings):
        for number, cell in enumerate(cells):
            verdict = judged[place, number]
            if verdict == NOT_RUN:
                continue
            by_seed = dict(zip(seeds, panel.trials[place, number], strict=True))
            trials = {seed: value for seed, value in by_seed.items() if not np.isnan(value)}
            rows.append(_row(cell, reading, readings, trials, str(verdict)))
    return rows


def _row(
    cell: Mapping[Any, Any],
    reading: Reading,
    readings: Readings,
    trials: Mapping[int, float],
    verdict: str,
) -> dict[str, Any]:
    """Return one number under one reading; `trials` are infinite if they diverged."""
    run = _cell_of_runs(cell, reading, readings)
    return {
        "table": NUMERALS[cell["table"]],
        "dataset": cell["dataset"],
        "tuple_size": int(cell["tuple_size"]),
        "n": int(cell["n"]),
        "prior": float(cell["prior"]),
        "method": cell["method"],
        "reading": readings.name(reading),
        "published": {"mean": float(cell["published_mean"]), "std": float(cell["published_std"])},
        "ours": _statistics(trials.values()),
        "trials": len(trials),
        "verdict": verdict,
        "address": address(reading, readings, _cell_of_page(cell, reading, readings)),
        "runs": [f"{run}/seed{seed}" for seed in trials],
    }


def _statistics(trials: Iterable[float]) -> dict[str, float | None]:
    """Return mean and deviation (ddof = 1) of the trials that did not diverge."""
    finished = np.array([accuracy for accuracy in trials if np.isfinite(accuracy)])
    mean = None
    std = None
    if len(finished):
        mean = round(float(finished.mean()), DECIMALS)
    if len(finished) > 1:
        std = round(float(finished.std(ddof=1)), DECIMALS)
    return {"mean": mean, "std": std}


def _cell_of_runs(cell: Mapping[Any, Any], reading: Reading, readings: Readings) -> str:
    """Return the name of the cell whose runs stand for a published one in a reading."""
    changes = readings.changes(reading)
    replacing = changes["methods"].get(cell["method"], cell["method"])
    method, _, loss = replacing.partition(".")
    ours = {
        "dataset": changes["datasets"].get(cell["dataset"], cell["dataset"]),
        "variant": variant_of(readings.training(reading)),
        "method": method,
        "loss": loss or LOGISTIC,
        "law": DOMINANT,
    }
    return cell_name({**cell, **ours})


def _cell_of_page(cell: Mapping[Any, Any], reading: Reading, readings: Readings) -> str:
    """Return the name under which the page shows a published cell in a reading: that of the
    protocol's runs on the images that the reading takes.
    """
    ours = readings.changes(reading)["datasets"]
    dataset = ours.get(cell["dataset"], cell["dataset"])
    return cell_name(
        {**cell, "dataset": dataset, "variant": BASE, "loss": LOGISTIC, "law": DOMINANT}
    )
