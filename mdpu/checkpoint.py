"""Unfinished training in a file, so that a training that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import io
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mdpu.files import atomic, remove_orphans

DIGEST = hashlib.sha256().digest_size  # bytes at the beginning of a file


class Checkpoint:
    """Unfinished training in one file, which begins with the SHA-256 of the rest; without a path it
    does nothing.

    Parameters
    ----------
    path : Path or None
    seconds : float
        Shortest time between two writes.
    state : sequence of Tensor
        The tensors that training changes, in their first state.
    """

    def __init__(self, path: Path | None, seconds: float, state: Sequence[Tensor]) -> None:
        self.path = path
        self.seconds = seconds
        self.state = [value.detach() for value in state]
        self.last = time.monotonic()
        self.key = ""

    def restore(self, *trained: Any) -> list[Any]:
        """Restore the state and return the history, which is empty without a file of the same
        training.

        Two trainings are the same if their data, their settings and their states at the beginning
        are.
        """
        if self.path is None:
            return []
        self.key = digest_of(*trained, *self.state)
        if not self.path.exists():
            return []

        saved = self._read(self.path)
        if saved is None:
            print(
                f"checkpoint {self.path} is not of this training; it begins anew", file=sys.stderr
            )
            return []
        for value, kept in zip(self.state, saved["state"], strict=True):
            value.copy_(kept)
        return list(saved["history"])

    def _read(self, path: Path) -> dict[str, Any] | None:
        """Return what a file holds, or None if it is damaged or of another training."""
        try:
            content = path.read_bytes()
            digest = content[:DIGEST]
            body = content[DIGEST:]
            saved = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
            is_whole = hashlib.sha256(body).digest() == digest
            is_of_this_training = saved["key"] == self.key
        except Exception:  # of many types; torch's own text recommends loading the file unsafely
            return None
        return saved if is_whole and is_of_this_training else None

    def save_if_due(self, history: list[Any], epochs: int) -> None:
        """Write the state, unless training is finished or the last write is too recent."""
        if self.path is None or len(history) == epochs:
            return
        if time.monotonic() - self.last < self.seconds:
            return

        buffer = io.BytesIO()
        state = [value.cpu() for value in self.state]
        torch.save({"key": self.key, "history": history, "state": state}, buffer)
        body = buffer.getbuffer()
        with atomic(self.path) as temporary, temporary.open("wb") as file:
            file.write(hashlib.sha256(body).digest())
            file.write(body)
        self.last = time.monotonic()

    def remove(self) -> None:
        """Delete the file, if there is one, and unfinished ones of processes that were killed as
        they wrote it.
        """
        if self.path is None:
            return
        self.path.unlink(missing_ok=True)
        remove_orphans(self.path)


def digest_of(*parts: Any) -> str:
    """Return the SHA-256 of arrays and tensors by their bytes, of other things by their text."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):
            part = part.detach().cpu().numpy()
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()
