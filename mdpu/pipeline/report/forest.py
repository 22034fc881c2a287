"""The forest plot of the first screen: ours minus the paper's with its interval, one line per
number.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from mdpu.pipeline.evaluate.published import in_one_reading
from mdpu.pipeline.evaluate.summary import verdict_counts, were_run

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
    run = in_one_reading(were_run(comparison))
    panels = []
    for panel in verdict_counts(comparison):
        rows = run[run["method"] == panel["method"]].dropna(subset="difference")
        rows = rows.sort_values("difference", ascending=False, kind="stable")
        pitch = min(MOST_PITCH, HEIGHT / max(1, len(rows)))
        marks = [
            {
                "x": _across(row["difference"]),
                "y": round((position + 0.5) * pitch, 1),
                "low": None if pd.isna(row["interval_low"]) else _across(row["interval_low"]),
                "high": None if pd.isna(row["interval_high"]) else _across(row["interval_high"]),
                "beyond": (row["difference"] > SPAN) - (row["difference"] < -SPAN),
                "verdict": row["verdict"],
                "cell": row["cell"],
                "words": f"{row['cell']}: {row['difference']:+.2f}, {row['verdict']}",
            }
            for position, row in enumerate(rows.to_dict("records"))
        ]
        panels.append(
            {**panel, "marks": marks, "outside": sum(mark["beyond"] != 0 for mark in marks)}
        )
    return panels


def _across(difference: float) -> float:
    """Return where a difference in points lies across a panel."""
    held = max(-SPAN, min(SPAN, difference))
    return round((held / SPAN + 1) * WIDTH / 2, 1)
