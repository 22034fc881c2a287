"""The forest plot of the first screen: ours minus the paper's with its interval, one line per
number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mdpu.pipeline.evaluate.summary import counted, verdict_counts

SPAN = 8.0  # points to each side; what lies beyond is drawn at the edge
# of a panel, in its own units
WIDTH = 120
HEIGHT = 160
MOST_PITCH = 14.0


def forest_panels(comparison: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a panel per method: its counts of verdicts, and a mark per comparison, from the
    highest difference down.

    A mark has ``x``, ``y`` and the ends of the interval in units of the panel, None without one,
    and ``beyond``, the side on which the difference leaves the panel (-1, 0 or 1). A cell without a
    difference has no mark.
    """
    run = counted(comparison)
    panels = []
    for panel in verdict_counts(comparison):
        rows = run[run["method"] == panel["method"]].dropna(subset="difference")
        rows = rows.sort_values("difference", ascending=False, kind="stable")
        pitch = min(MOST_PITCH, HEIGHT / max(1, len(rows)))
        marks = []
        for position, row in enumerate(rows.to_dict("records")):
            middle = round((position + 0.5) * pitch, 1)
            marks.append(_mark(row, middle))
        outside = sum(mark["beyond"] != 0 for mark in marks)
        panels.append({**panel, "marks": marks, "outside": outside})
    return panels


def _mark(row: Mapping[Any, Any], y: float) -> dict[str, Any]:
    """Return the mark of a comparison at a height."""
    difference = row["difference"]
    has_interval = not pd.isna(row["interval_low"])
    return {
        "x": _across(difference),
        "y": y,
        "low": _across(row["interval_low"]) if has_interval else None,
        "high": _across(row["interval_high"]) if has_interval else None,
        "beyond": (difference > SPAN) - (difference < -SPAN),
        "verdict": row["verdict"],
        "cell": row["cell"],
        "words": f"{row['cell']}: {difference:+.2f}, {row['verdict']}",
    }


def _across(difference: float) -> float:
    """Return where a difference in points lies across a panel."""
    held = max(-SPAN, min(SPAN, difference))
    return round((held / SPAN + 1) * WIDTH / 2, 1)
