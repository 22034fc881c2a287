"""What trained the runs of a report: commits, devices, dates, and the splits that they learned from."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdpu.pipeline.cache import identity
from mdpu.pipeline.files import read_json
from mdpu.pipeline.plan import Plan


@dataclass(frozen=True)
class Training:
    """What the manifests of a plan say of its runs' making.

    `origins` are one per commit, device, precision and software, with a ``letter`` to refer to it; `letters` leads to
    them from each run's name. `splits` has the SHA-256 of the file that the training read, `diagnostics` how well it
    follows its law. `seconds` are of all training commands together; runs that were `reused` cost time elsewhere.
    """

    origins: list[dict[str, Any]]
    letters: Mapping[str, str]
    splits: Mapping[str, str]
    diagnostics: Mapping[str, dict[str, Any]]
    seconds: float
    reused: int


def read_training(plan: Plan) -> Training:
    """Return what trained a plan's runs; raise `UserError` if a manifest is missing or broken."""
    groups: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    drawn: dict[str, dict[str, Any]] = {}
    seconds, reused = 0.0, 0
    for job in plan.jobs.values():
        facts = read_json(plan.layout.manifest(job.name, identity(plan, job.name)))
        seconds += facts["seconds"]
        reused += facts["reused"]
        drawn |= facts["splits"]
        for group in facts["trained"]:
            made = {key: value for key, value in group.items() if key not in ("runs", "date")}
            key = repr(sorted(made.items()))
            origin = groups.setdefault(key, {**made, "dates": [], "runs": 0})
            origin["dates"].append(group["date"])
            origin["runs"] += len(group["runs"])
            places |= dict.fromkeys(group["runs"], key)
    ordered = dict(sorted(groups.items(), key=lambda item: min(item[1]["dates"])))
    names = (letter + turn for turn in ("", *map(str, range(2, 1000))) for letter in string.ascii_uppercase)
    letters = dict(zip(ordered, names, strict=False))  # A, B, ..., Z, A2, B2, ...
    origins = [
        {**origin, "letter": letters[key], "first": min(origin["dates"])[:10], "last": max(origin["dates"])[:10]}
        for key, origin in ordered.items()
    ]
    splits = {split: facts.pop("sha256") for split, facts in drawn.items()}
    return Training(origins, {run: letters[key] for run, key in places.items()}, splits, drawn, seconds, reused)


def duration(seconds: float) -> str:
    """Return a length of time as a reader would say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
