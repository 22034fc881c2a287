"""Errors and reasons of Snakemake in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

MOST_NAMES = 3  # that a reason lists


def error_of(what: str, logs: Iterable[str]) -> str:
    """Return what went wrong in a job, in a sentence: the last line of its log, which is the command's own.

    Parameters
    ----------
    what : str
        The job.
    logs : iterable of str
        Its log files.
    """
    for log in logs:
        lines = last_lines(Path(log), 1)
        if lines:
            return f"{what}: {lines[-1].removeprefix('error: ')} ({log})"
    return f"{what} failed, and left no log"


def last_lines(log: Path, number: int) -> list[str]:
    """Return the last lines of a log that are not empty; none if there is no log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-number:]


def sentence_of(message: str) -> str:
    """Return an error message of Snakemake's as a sentence, without the places in the workflow's files."""
    lines = [line for line in message.splitlines() if not re.match(r'\s*File ".*", line \d+', line)]
    if lines and re.match(r"\w+(Error|Exception) in (file|rule) .*:$", lines[0]):
        lines = lines[1:]
    return " ".join(" ".join(lines).split()).removeprefix("Error: ")


def reason_of(reason: str) -> str:
    """Return why Snakemake runs a job, with a few file names instead of all.

    >>> reason_of("Missing output files: a, b, c, d; Input files updated by another job: e")
    'Missing output files'
    >>> reason_of("Updated input files: mdpu/learn/risk.py")
    'Updated input files: mdpu/learn/risk.py'
    """
    parts = [part.partition(": ") for part in reason.split("; ")]
    own = [part for part in parts if part[0] != "Input files updated by another job"] or parts
    return "; ".join(_short(name, names.split(", ")) for name, _, names in own)


def _short(name: str, names: Sequence[str]) -> str:
    if name in ("Updated input files", "Set of input files has changed since last execution"):
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f"{name}: {', '.join(names[:MOST_NAMES])}{more}" if names != [""] else name
    return name
