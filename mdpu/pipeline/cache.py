"""Finished runs on disk, so that a cohort trains only what is new.

A run is retrained when its fingerprint changes. The fingerprint covers its key, its training settings, the
contents of its images, labels and split, and the code that trains it; nothing else makes a run stale. A run also
carries its origin, even to other machines: the commit, device, packages and machine that trained it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.learn.task import Settings, Task
from mdpu.pipeline.closure import closure, code_digest
from mdpu.pipeline.files import digest, read_json, read_table, replacing, write_table
from mdpu.pipeline.grid import AXES, Run, run_columns
from mdpu.pipeline.seals import recording

# What trains runs and makes their histories, apart from the modules of method and network.
TRAINING = (
    "mdpu.learn.fitting.fit_each",
    "mdpu.learn.evaluation.TestRates",
    "mdpu.pipeline.validation.draw_validation_bags",
    "mdpu.pipeline.history.run_history",
)
# Code that cannot change a number: errors, files, the order in which stacks take turns, and the key of a run, which is
# in the fingerprint itself.
HARMLESS = (
    "mdpu.errors",
    "mdpu.pipeline.files",
    "mdpu.pipeline.seals",
    "mdpu.learn.checkpoint",
    "mdpu.learn.schedule",
    "mdpu.pipeline.grid",
)


def method_module(name: str) -> str:
    """Return the module of a method."""
    return f"mdpu.learn.methods.{name.replace('-', '_')}"


def network_module(name: str) -> str:
    """Return the module of a network."""
    return f"mdpu.learn.networks.{name.replace('-', '_')}"


def training_code(method: str, network: str) -> list[Path]:
    """Return the source files that affect the histories of a method and a network."""
    return closure(*TRAINING, method_module(method), network_module(network), without=HARMLESS)


@cache
def training_digest(method: str, network: str) -> str:
    """Return a digest of the code in `training_code`, without its prose."""
    return code_digest(training_code(method, network))


def fingerprint(run: Run, task: Task, settings: Settings, inputs: Mapping[str, str]) -> str:
    """Return a digest of everything that a run's history depends on.

    Parameters
    ----------
    run : Run
    task : Task
        What its model is trained for.
    settings : Settings
        With the precision that is actually used, not ``auto``.
    inputs : mapping
        SHA-256 of the images, the labels and the run's split.
    """
    code = training_digest(run.method, settings.network)
    key = {"run": run_columns(run), "task": asdict(task), "settings": settings.flat(), "inputs": dict(inputs)}
    return digest({**key, "code": code})


class RunStore:
    """A folder with one history per finished run, each marked with its fingerprint and its origin.

    The marks are the table's ``attrs``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, run: Run) -> Path:
        """Return the file of a run."""
        return self.folder / f"{run.name}.parquet"

    def load(self, run: Run, fingerprints: Collection[str]) -> pd.DataFrame | None:
        """Return a run's history if it is stored intact, with one of the fingerprints and a known origin, else None."""
        try:
            history = read_table(self.path(run))
        except UserError:
            return None
        return history if history.attrs.get("fingerprint") in fingerprints and "origin" in history.attrs else None

    def fingerprint(self, run: Run) -> str | None:
        """Return the fingerprint of a stored run without reading its history, or None if it is not stored."""
        from pyarrow import ArrowException, parquet

        try:
            marks = json.loads((parquet.read_schema(self.path(run)).metadata or {})[b"PANDAS_ATTRS"])
        except (OSError, ArrowException, KeyError, ValueError):
            return None
        return marks.get("fingerprint") if "origin" in marks else None

    def save(self, run: Run, history: pd.DataFrame, fingerprint: str, origin: Mapping[str, Any]) -> pd.DataFrame:
        """Store a run's history, marked with its fingerprint and its origin, and return it so marked."""
        marked = history.copy(deep=False)
        marked.attrs = {"fingerprint": fingerprint, "origin": dict(origin)}
        with recording():  # the fingerprint covers the inputs, so the seal does not list them
            write_table(marked, self.path(run))
        return marked

    def restore(self, run: Run, histories: Path) -> None:
        """Restore a lost run from the histories of its cohort, bit for bit.

        Raises
        ------
        UserError
            If the histories or their provenance are missing or broken, or lack the run.
        """
        facts = read_json(histories.with_suffix(".json"))
        origins = [
            {key: value for key, value in group.items() if key != "runs"}
            for group in facts.get("trained", [])
            if run.name in group["runs"]
        ]
        rows = read_table(histories).merge(pd.DataFrame([run]), on=list(AXES))
        fingerprint = facts.get("fingerprints", {}).get(run.name)
        if rows.empty or fingerprint is None or not origins:
            raise UserError(f"{histories} does not hold all of {run.name}")
        self.save(run, rows, fingerprint, origins[0])

    def pack(self, path: Path) -> int:
        """Write all finished runs of known origin into one file, a fifth of their size, and return their number.

        Raises
        ------
        UserError
            If there are none, or a run's file is broken.
        """
        files = sorted(self.folder.rglob("[!.]*.parquet"))  # hidden files are leftovers of killed processes
        stored = [read_table(file) for file in files]
        histories = [history for history in stored if {"fingerprint", "origin"} <= history.attrs.keys()]
        if not histories:
            raise UserError(f"{self.folder} has no finished run")
        packed = pd.concat(
            [
                history.assign(fingerprint=history.attrs["fingerprint"], origin=json.dumps(history.attrs["origin"]))
                for history in histories
            ],
            ignore_index=True,
        )
        packed.attrs = {}
        measures = packed.select_dtypes("float").columns
        with replacing(path) as temporary:
            packed.to_parquet(
                temporary,
                index=False,
                compression="zstd",
                compression_level=19,
                use_dictionary=[column for column in packed.columns if column not in measures],
                column_encoding=dict.fromkeys(measures, "BYTE_STREAM_SPLIT"),
            )
        return len(histories)

    def unpack(self, path: Path, replace: bool = False) -> tuple[int, int]:
        """Add the runs of a packed file to the folder, except those that it already has.

        Whether an added run is of use is decided by its fingerprint, when it is loaded.

        Parameters
        ----------
        path : Path
            What `pack` wrote.
        replace : bool
            Replace runs that the folder has with another fingerprint.

        Returns
        -------
        new, kept : int
            Numbers of runs that were added, and that the folder already had.

        Raises
        ------
        UserError
            If the file is missing, broken or not written by `pack`.
        """
        packed = read_table(path)
        if missing := {*AXES, "epoch", "fingerprint", "origin"} - {*packed.columns}:
            raise UserError(f"{path} does not hold finished runs: it has no column {', '.join(sorted(missing))}")
        new = kept = 0
        for _, rows in packed.groupby(list(AXES), sort=False):
            first = rows.iloc[0].to_dict()
            run = Run(**{axis: first[axis] for axis in AXES})
            if not self.path(run).resolve().is_relative_to(self.folder.resolve()):
                raise UserError(f"{path} names a run that is no place in {self.folder}: {run.name}")
            if self.fingerprint(run) == first["fingerprint"] or (self.path(run).exists() and not replace):
                kept += 1
                continue
            history = own_columns(rows.drop(columns=["fingerprint", "origin"])).reset_index(drop=True)
            self.save(run, history, first["fingerprint"], json.loads(first["origin"]))
            new += 1
        return new, kept


def own_columns(history: pd.DataFrame) -> pd.DataFrame:
    """Return a history without the measures that only other runs of the same table have.

    The columns up to ``accuracy`` are those of every run.
    """
    place = history.columns.get_loc("accuracy")
    assert isinstance(place, int)
    others = [name for name in history.columns[place + 1 :] if history[name].isna().all()]
    return history.drop(columns=others)


def group_by_origin(histories: Mapping[Run, pd.DataFrame]) -> list[dict[str, Any]]:
    """Return the origins of histories as a `RunStore` gives them, each with the names of its ``runs``."""
    groups: dict[str, list[str]] = {}
    for run, history in histories.items():
        groups.setdefault(json.dumps(history.attrs["origin"]), []).append(run.name)
    return [{**json.loads(origin), "runs": names} for origin, names in groups.items()]
