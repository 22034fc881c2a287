"""What a source is: files to fetch and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mdpu.pipeline.data.download import Archive
    from mdpu.pipeline.data.images import ImageSet


@dataclass(frozen=True)
class Source:
    """Images that this project knows how to fetch and read.

    Attributes
    ----------
    archives : callable
        Returns the files to fetch. It is a function, because their addresses need an import of torchvision.
    read : callable
        From a scratch folder with the verified archives, each under its `Archive.path`, to the images. It may
        unpack the archives there.
    """

    archives: Callable[[], Sequence[Archive]]
    read: Callable[[Path], ImageSet]
