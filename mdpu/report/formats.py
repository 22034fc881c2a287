"""What the files of a report are called, and their media types."""

from __future__ import annotations

from pathlib import Path

MEDIA_TYPES = {
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
}
FORMATS = {".csv": "CSV", ".md": "Markdown", ".pdf": "PDF", ".png": "PNG", ".svg": "SVG", ".tex": "LaTeX"}
BESIDE = "LaTeX, with the paper’s"  # a table with the paper's numbers beside ours
WITH_PAPER = "-paper.tex"  # how the name of a LaTeX table ends that has the paper's numbers beside ours


def format_name(file: str | Path) -> str:
    """Return what a reader calls the format of a file."""
    return BESIDE if str(file).endswith(WITH_PAPER) else FORMATS[Path(file).suffix]
