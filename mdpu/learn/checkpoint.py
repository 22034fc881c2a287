"""Unfinished training on disk, so that a killed job loses minutes at most."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from mdpu.errors import UserError
from mdpu.files import replacing


class Checkpoint:
    """Training state of one stack, in one file.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    key : str
        Digest of all that the stack's histories depend on. A file of another key is refused.
    seconds : float
        Shortest time between two writes.
    """

    def __init__(self, path: Path, key: str, seconds: float) -> None:
        self.path, self.key, self.seconds = path, key, seconds
        self._last = time.monotonic()

    def restore(self, state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, history: Tensor) -> int:
        """Fill in what training changes, by name, and return the number of finished epochs; 0 if there is no file.

        Raises
        ------
        UserError
            If the file is broken or of another configuration.
        """
        try:
            saved = torch.load(self.path, map_location=history.device, weights_only=True)
            key, epochs = saved["key"], int(saved["epochs"])
        except FileNotFoundError:
            return 0
        except Exception:  # torch's own words run over several lines and advise to load it unsafely
            raise UserError(f"checkpoint {self.path} is not whole; delete it and run again") from None
        if key != self.key:
            raise UserError(f"checkpoint {self.path} is of another configuration; delete it and run again")
        for name, value in state.items():
            value.copy_(saved["state"][name])
        optimizer.load_state_dict(saved["optimizer"])
        history.copy_(saved["history"])
        return epochs

    def save_if_due(
        self, state: Mapping[str, Tensor], optimizer: torch.optim.Optimizer, history: Tensor, epochs: int
    ) -> None:
        """Write the state after `epochs` finished epochs, unless the last write was a moment ago."""
        if time.monotonic() - self._last < self.seconds:
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
        self.path.unlink(missing_ok=True)
