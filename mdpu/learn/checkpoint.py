"""Unfinished training on disk, so that a killed job loses a few minutes at most."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mdpu.errors import UserError
from mdpu.files import remove, replacing
from mdpu.seals import check


class Checkpoint:
    """Training state of one stack, in one file.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    key : str
        Digest of everything that the stack's histories depend on. A file with another key is not used.
    seconds : float
        Shortest time between two writes.
    """

    def __init__(self, path: Path, key: str, seconds: float) -> None:
        self.path, self.key, self.seconds = path, key, seconds
        self._last = time.monotonic()

    def restore(self, state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, history: Tensor) -> int:
        """Restore what training changes, by name, and return the number of finished epochs, 0 without a file.

        If the file is broken or has another key, a message says so and training starts again.
        """
        if not self.path.exists():
            return 0
        try:
            check(self.path)
            saved = torch.load(self.path, map_location=history.device, weights_only=True)
            usable = saved["key"] == self.key and {*state} <= {*saved["state"]}
            epochs, saved_state = int(saved["epochs"]), (saved["optimizer"], saved["history"])
        except Exception:  # torch's own message has several lines and recommends loading the file unsafely
            usable = False
        if not usable:
            print(f"checkpoint {self.path} is not what was written; training begins anew", file=sys.stderr)
            return 0
        for name, value in state.items():
            value.copy_(saved["state"][name])
        optimizer.load_state_dict(saved_state[0])
        history.copy_(saved_state[1])
        return epochs

    def save_if_due(
        self, state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, history: Tensor, epochs: int
    ) -> None:
        """Write the state after `epochs` finished epochs, unless they were the last or the last write is too recent."""
        if epochs == len(history) or time.monotonic() - self._last < self.seconds:
            return
        saved = {
            "key": self.key,
            "epochs": epochs,
            "state": dict(state),
            "optimizer": optimizer.state_dict(),
            "history": history,
        }
        with replacing(self.path) as temporary:
            torch.save(saved, temporary)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file, if there is one."""
        remove(self.path)


class KeptState(Checkpoint):
    """The state at the end of a training, in memory, from which another training goes on with more epochs.

    Parameters
    ----------
    key : str
        What the two trainings must have in common.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._saved: dict[str, Any] | None = None

    @property
    def epochs(self) -> int:
        """Number of finished epochs."""
        return int(self._saved["epochs"]) if self._saved else 0

    def restore(self, state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, history: Tensor) -> int:
        """Restore the state, if one is kept, and return the number of finished epochs.

        Raises
        ------
        UserError
            If it has more epochs than the training.
        """
        if not self._saved:
            return 0
        if self.epochs > len(history):
            raise UserError(
                f"training had {self.epochs} epochs already; give at least as many, or fit without warm_start"
            )
        for name, value in state.items():
            value.copy_(self._saved["state"][name])
        optimizer.load_state_dict(copy.deepcopy(self._saved["optimizer"]))
        history[: self.epochs] = self._saved["history"]
        return self.epochs

    def save_if_due(
        self, state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, history: Tensor, epochs: int
    ) -> None:
        """Keep the state after the last epoch."""
        if epochs == len(history):
            self._saved = {
                "epochs": epochs,
                "state": {name: value.detach().clone() for name, value in state.items()},
                "optimizer": copy.deepcopy(optimizer.state_dict()),
                "history": history.clone(),
            }

    def remove(self) -> None:
        """Keep it: a finished training is what another one goes on from."""
