"""Unfinished training on disk, so that a killed job loses a few minutes at most."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mdpu.errors import UserError

DIGEST = hashlib.sha256().digest_size  # bytes of the digest with which a file begins


class Checkpoint:
    """Training state of one stack, in one file that begins with the SHA-256 of the rest.

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

    def restore(self, state: Mapping[str, Tensor], history: Tensor) -> int:
        """Restore what training changes, by name, and return the number of finished epochs, 0 without a file.

        If the file is broken or has another key, a message says so and training starts again.
        """
        if not self.path.exists():
            return 0
        try:
            saved = self._read()
            epochs, own = int(saved["epochs"]), saved["history"]
            usable = saved["key"] == self.key and {*state} <= {*saved["state"]}
            usable &= 0 < epochs < len(history) and own.shape == history.shape
        except Exception:  # torch's own message has several lines and recommends loading the file unsafely
            usable = False
        if not usable:
            print(f"checkpoint {self.path} is not what was written; training begins anew", file=sys.stderr)
            return 0
        for name, value in state.items():
            value.copy_(saved["state"][name])
        history.copy_(own)
        return epochs

    def _read(self) -> dict[str, Any]:
        content = self.path.read_bytes()
        if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
            raise ValueError("the digest does not match")
        saved: dict[str, Any] = torch.load(io.BytesIO(content[DIGEST:]), map_location="cpu", weights_only=True)
        return saved

    def save_if_due(self, state: Mapping[str, Tensor], history: Tensor, epochs: int) -> None:
        """Write the state after `epochs` finished epochs, unless they were the last or the last write is too recent."""
        if epochs == len(history) or time.monotonic() - self._last < self.seconds:
            return
        saved = {
            "key": self.key,
            "epochs": epochs,
            "state": {name: value.cpu() for name, value in state.items()},
            "history": history.cpu(),
        }
        buffer = io.BytesIO()
        torch.save(saved, buffer)
        content = buffer.getbuffer()
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(hashlib.sha256(content).digest())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise UserError(f"the checkpoint {self.path} could not be written: {error.strerror}") from None
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file, if there is one."""
        self.path.unlink(missing_ok=True)


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

    def restore(self, state: Mapping[str, Tensor], history: Tensor) -> int:
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
        history[: self.epochs] = self._saved["history"].to(history.device)
        return self.epochs

    def save_if_due(self, state: Mapping[str, Tensor], history: Tensor, epochs: int) -> None:
        """Keep the state after the last epoch."""
        if epochs == len(history):
            self._saved = {
                "epochs": epochs,
                "state": {name: value.detach().cpu().clone() for name, value in state.items()},
                "history": history.cpu().clone(),
            }

    def remove(self) -> None:
        """Keep it: a finished training is what another one goes on from."""
