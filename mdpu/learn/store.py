"""Finished runs on disk, so that a cohort trains only what is new.

A run is retrained when its fingerprint changes: its key, its training settings, the contents of its
images, labels or split, or the code that trains it. Nothing else makes it stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.errors import UserError
from mdpu.experiment import Run, run_columns, training_code
from mdpu.files import digest, digest_files, read_table, write_table


def fingerprint(run: Run, settings: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Return a digest of all that a run's history depends on.

    Parameters
    ----------
    run : Run
    settings : mapping
        Training settings.
    inputs : mapping
        SHA-256 of the images, the labels and the run's split.
    """
    code = digest_files(training_code([run.method]))
    return digest({"run": run_columns(run), "settings": dict(settings), "inputs": dict(inputs), "code": code})


class RunStore:
    """A folder with one history per finished run, each marked with its fingerprint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, run: Run) -> Path:
        """Return the file of a run."""
        return self.folder / f"{run.name}.parquet"

    def load(self, run: Run, wanted: str) -> pd.DataFrame | None:
        """Return a run's history if it is there, whole and of the wanted fingerprint, else None."""
        try:
            history = read_table(self.path(run))
        except UserError:
            return None
        return history if history.attrs.get("fingerprint") == wanted else None

    def save(self, run: Run, history: pd.DataFrame, fingerprint: str) -> None:
        """Keep a run's history under its fingerprint."""
        write_table(history, self.path(run), fingerprint=fingerprint)
