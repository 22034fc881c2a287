"""What a source is: files to fetch and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mdpu.data.download import Archive
    from mdpu.data.images import ImageSet


@dataclass(frozen=True)
class Source:
    """Images that this project knows how to get.

    Attributes
    ----------
    archives : callable
        Returns the files to fetch. A function, because asking torchvision imports it.
    read : callable
        Takes a scratch folder that holds the verified archives, each under its `Archive.path`, and
        returns the images. It may unpack them there.
    """

    archives: Callable[[], Sequence[Archive]]
    read: Callable[[Path], ImageSet]
