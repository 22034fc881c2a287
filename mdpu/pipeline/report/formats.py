"""What a report calls its files and its numbers of trials, and the media types of files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
}
FORMATS = {".csv": "CSV", ".pdf": "PDF", ".png": "PNG", ".svg": "SVG", ".tex": "LaTeX"}
BESIDE = "LaTeX, with the paper’s"  # a table with the paper's numbers beside ours
WITH_PAPER = "-paper.tex"  # how the name of a LaTeX table ends that has the paper's numbers beside ours


def format_name(file: str | Path) -> str:
    """Return what a reader calls the format of a file."""
    return BESIDE if str(file).endswith(WITH_PAPER) else FORMATS[Path(file).suffix]


def number_of_trials(counts: Collection[int]) -> str:
    """Return numbers of trials in words: ``3 trials``, or ``3 to 5 trials``."""
    least, most = min(counts), max(counts)
    return f"{least} to {most} trials" if least < most else f"{most} trial{'s' if most > 1 else ''}"
