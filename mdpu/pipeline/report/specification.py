"""The specification curve: all numbers of the paper by all readings that were tried, sorted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.pipeline.evaluate.comparison import VERDICTS
from mdpu.pipeline.evaluate.readings import Panel, Readings, verdicts
from mdpu.pipeline.evaluate.rejudge import places_tried
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.drawing import PAGE, draw_panels, legend_below, save_figure
from mdpu.pipeline.report.html import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, TITLE = "readings", "Every number under every reading"
CAPTION = """\
A column is a reading of the paper, sorted by the median of ours minus the paper's. Above: the median over its numbers,
the middle half (thick) and the middle eight tenths (thin). In the middle: the verdict on each number, those with most
readings on top, then those where ours is highest; what is empty was not run. Below: where the reading departs from the
protocol.
"""
# Red, green, blue and opacity of each of `VERDICTS`.
HEX = ("00744fff", "4a9fdcff", "c3ccd5ff", "e8743fff", "00000000")
COLOURS = np.array([list(bytes.fromhex(colour)) for colour in HEX], np.uint8)
REACH = 6.0  # points of the upper axis to each side


def write_specification(plan: Plan, panel: Panel, svg: Path, pdf: Path) -> None:
    """Draw a panel that `mdpu.pipeline.evaluate.rejudge.write_readings` returns."""
    save_figure(specification_figure(panel, Readings(plan.config), plan.config["comparison"]), svg, pdf)


def specification_figure(panel: Panel, readings: Readings, rule: Any) -> Figure:
    """Draw the readings of a panel that were tried: differences, verdicts and departures, one column each."""
    places = np.array(places_tried(panel), dtype=int)
    own = Panel([panel.readings[place] for place in places], panel.cells, panel.trials[places])
    number = np.isfinite(own.trials).sum(axis=2)
    gaps = np.nansum(own.finished, axis=2) / np.where(number, number, np.nan) - own.published[0]
    order = np.argsort(np.nanmedian(gaps, axis=1), kind="stable")
    rows = np.lexsort((-np.nanmean(gaps, axis=0), -(number > 0).sum(axis=0)))
    codes = np.vectorize(VERDICTS.index, otypes=[int])(verdicts(own, rule))[order][:, rows]
    departures = [readings.departures(own.readings[place]) for place in order]
    marks = list(
        dict.fromkeys((c, v) for c in readings.choices for one in departures for k, v in one.items() if k == c)
    )

    heights = [1.5, 2.4, 0.15 * max(1, len(marks))]
    drawn, axes = draw_panels(3, 1, (0.3 + sum(heights)) / 3, PAGE, sharex=True, height_ratios=heights)
    upper, middle, lower = axes[:, 0]
    across = np.arange(len(order))
    for low, high, width in ((10, 90, 0.6), (25, 75, 2.4)):
        ends = np.nanpercentile(gaps[order], [low, high], axis=1)
        upper.vlines(across, *ends, color="#0072B2", linewidth=width)
    upper.plot(across, np.nanmedian(gaps[order], axis=1), ".", color="#000000", markersize=3)
    upper.axhline(0, color="0.4", linewidth=0.8)
    upper.set_ylim(-REACH, REACH)
    upper.set_ylabel("Ours minus\nthe paper's")
    middle.imshow(COLOURS[codes.T], aspect="auto", interpolation="nearest")
    middle.set_ylabel("Numbers")
    middle.set_yticks([])
    for place, departed in enumerate(departures):
        lower.plot([place] * len(departed), [marks.index(pair) for pair in departed.items()], ".", color="#000000")
    lower.set_yticks(range(len(marks)), labels=[f"{choice}: {value}" for choice, value in marks])
    lower.set_ylim(len(marks) - 0.5, -0.5)
    lower.set_xticks([])
    lower.set_xlabel(f"{len(order)} readings")
    for axis in (middle, lower):
        axis.grid(visible=False)
    for verdict, colour in zip(VERDICTS[:4], COLOURS / 255, strict=False):
        lower.plot([], [], "s", color=colour, label=verdict)
    legend_below(drawn)
    return drawn


def specification_section(svg: Path, tried: int) -> dict[str, Any]:
    """Return the figure's section for the template."""
    seen = f"{TITLE}: {tried} readings, with the verdicts on all numbers and what each reading departs in."
    return {
        "template": "sections/figure.html.j2",
        "name": NAME,
        "title": TITLE,
        "caption": CAPTION,
        "trials": "",
        "not_run": [],
        "seen": seen,
        "downloads": [],
        **figure(svg),
    }
