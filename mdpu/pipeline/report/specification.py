"""The specification curve: all numbers of the paper by all readings that were tried, sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.comparison import JUDGED, NOT_RUN, VERDICTS, count_verdicts
from mdpu.pipeline.evaluate.exported import reading_address
from mdpu.pipeline.evaluate.panel import Panel, verdicts
from mdpu.pipeline.evaluate.rejudge import places_tried
from mdpu.pipeline.evaluate.summary import in_points
from mdpu.pipeline.files import read_csv, write_csv
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.drawing import PAGE, draw_panels, legend_below, save_figure
from mdpu.pipeline.report.html import figure
from mdpu.pipeline.report.sections import downloads
from mdpu.pipeline.report.verdicts import reading_words, value_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "readings"
TITLE = "Every number under every reading"
CAPTION = """\
A column is a reading of the paper, sorted by the median of ours minus the paper's. The list below
names each by its number. Above: the median over its
numbers, the middle half (thick) and the middle eight tenths (thin), in points of accuracy. The axis
is linear to 5 points and logarithmic beyond. In the middle: the verdict on each number, those with
most readings on top, then those where ours is highest; what is empty was not run. Below: where the
reading departs from the protocol, our choices that were fixed in advance. A number has all trials
that were run of it, so readings may have unequal ones; the list has how many.
"""
# Red, green, blue and opacity of each of `VERDICTS`.
HEX = ("00744fff", "4a9fdcff", "c3ccd5ff", "e8743fff", "00000000")
COLOURS = np.array([list(bytes.fromhex(colour)) for colour in HEX], np.uint8)
LINEAR = 5.0  # points to each side within which the upper axis is linear
# of the upper axis, those that it reaches
TICKS = np.array([-50, -20, -10, -5, -2, 0, 2, 5, 10, 20, 50])
COUNTED = 20  # columns between two numbers below
LETTER_SHARE = 0.0115  # share of the columns' width that a letter of a name takes


class Curve(NamedTuple):
    """The readings that were tried, sorted by the median difference: a row of each array is a
    reading.
    """

    readings: list[dict[str, str]]
    gaps: np.ndarray  # ours minus the paper's by number, missing where it was not run
    verdicts: np.ndarray  # by number
    trials: np.ndarray  # of each number, with those that diverged

    @property
    def medians(self) -> np.ndarray:
        """The median of each reading's differences."""
        medians: np.ndarray = np.nanmedian(self.gaps, axis=1)
        return medians


def write_specification(plan: Plan, panel: Panel, svg: Path, pdf: Path, csv: Path) -> None:
    """Draw a panel that `mdpu.pipeline.evaluate.rejudge.write_readings` returns, and name its
    columns in a table.
    """
    readings = Readings(plan.config)
    rule = plan.config["comparison"]
    save_figure(specification_figure(panel, readings, rule), svg, pdf)
    write_csv(specification_columns(panel, readings, rule), csv)


def specification_curve(panel: Panel, rule: Any) -> Curve:
    """Return the readings of a panel that were tried, with the numbers that most readings have
    first.
    """
    places = np.array(places_tried(panel), dtype=int)
    readings = [panel.readings[place] for place in places]
    tried = Panel(readings, panel.cells, panel.trials[places])
    n_trials = np.isfinite(tried.trials).sum(axis=2)
    means = np.nansum(tried.finished, axis=2) / np.where(n_trials, n_trials, np.nan)
    published, _ = tried.published
    gaps = means - published  # (readings, numbers)
    judged = verdicts(tried, rule)

    columns = np.argsort(np.nanmedian(gaps, axis=1), kind="stable")
    n_readings = (n_trials > 0).sum(axis=0)
    rows = np.lexsort((-np.nanmean(gaps, axis=0), -n_readings))
    sorted_places = np.ix_(columns, rows)
    in_order = [readings[place] for place in columns]
    return Curve(
        in_order,
        gaps[sorted_places],
        judged[sorted_places],
        tried.counts[sorted_places],
    )


def specification_columns(panel: Panel, readings: Readings, rule: Any) -> pd.DataFrame:
    """Return a row for each column of the figure: its number; its reading, also in words, and its
    address; how many numbers it has, in how many trials; median and verdicts.
    """
    curve = specification_curve(panel, rule)
    rows = []
    for column, reading in enumerate(curve.readings):
        judged = curve.verdicts[column]
        trials = curve.trials[column][judged != NOT_RUN]
        rows.append(
            {
                "column": column + 1,
                "reading": readings.name(reading),
                "words": reading_words(reading, readings),
                "address": reading_address(reading, readings),
                "numbers": len(trials),
                "fewest_trials": int(trials.min()),
                "most_trials": int(trials.max()),
                "median": round(float(curve.medians[column]), 2),
                **count_verdicts(judged, JUDGED),
            }
        )
    return pd.DataFrame(rows)


def specification_figure(panel: Panel, readings: Readings, rule: Any) -> Figure:
    """Draw the readings of a panel that were tried: differences, verdicts and departures, one
    column each.
    """
    curve = specification_curve(panel, rule)
    departures = [readings.departures(reading) for reading in curve.readings]
    marks = _departures_once(departures, readings)

    heights = [1.7, 2.4, 0.15 * max(1, len(marks))]
    height = (0.5 + sum(heights)) / 3
    figure, axes = draw_panels(3, 1, height, PAGE, sharex=True, height_ratios=heights)
    upper, middle, lower = axes[:, 0]
    _draw_gaps(upper, curve)
    _name_columns((upper, middle, lower), curve, readings)
    _draw_verdicts(middle, curve)
    _draw_departures(lower, departures, marks)

    for axis in (middle, lower):
        axis.grid(visible=False)
    for verdict, colour in zip(JUDGED, COLOURS / 255, strict=False):
        lower.plot([], [], "s", color=colour, label=verdict)
    legend_below(figure)
    return figure


def _departures_once(
    departures: Sequence[Mapping[str, str]], readings: Readings
) -> list[tuple[str, str]]:
    """Return each choice and value in which a reading departs, choice by choice."""
    marks: dict[tuple[str, str], None] = {}
    for choice in readings.choices:
        for departed in departures:
            if choice in departed:
                marks[choice, departed[choice]] = None
    return list(marks)


def _draw_gaps(axis: Axes, curve: Curve) -> None:
    """Draw the median and the middle of each reading's differences, wherever they reach."""
    across = np.arange(len(curve.readings))
    for low, high, width in ((10, 90, 0.6), (25, 75, 2.4)):
        ends = np.nanpercentile(curve.gaps, [low, high], axis=1)
        axis.vlines(across, *ends, color="#0072B2", linewidth=width)
    axis.plot(across, curve.medians, ".", color="#000000", markersize=3)
    axis.axhline(0, color="0.4", linewidth=0.8)
    axis.set_yscale("symlog", linthresh=LINEAR)
    bottom, top = axis.get_ylim()
    ticks = [tick for tick in TICKS if min(bottom, -LINEAR) <= tick <= max(top, LINEAR)]
    labels = [in_points(tick, 0) if tick else "0" for tick in ticks]
    axis.set_yticks(ticks, labels=labels)
    axis.set_ylabel("Ours minus the paper's\n(points)")


def _draw_verdicts(axis: Axes, curve: Curve) -> None:
    """Draw the verdict on each number under each reading as a coloured cell."""
    codes = np.vectorize(VERDICTS.index, otypes=[int])(curve.verdicts)
    axis.imshow(COLOURS[codes.T], aspect="auto", interpolation="nearest")
    axis.set_ylabel(f"{codes.shape[1]} numbers")
    axis.set_yticks([])


def _draw_departures(
    axis: Axes, departures: Sequence[Mapping[str, str]], marks: Sequence[tuple[str, str]]
) -> None:
    """Draw a point for each departure of each reading, and number the columns."""
    for column, departed in enumerate(departures):
        heights = [marks.index(departure) for departure in departed.items()]
        axis.plot([column] * len(heights), heights, ".", color="#000000")
    axis.set_yticks(range(len(marks)), labels=[value_words(*mark) for mark in marks])
    axis.set_ylim(len(marks) - 0.5, -0.5)

    n_columns = len(departures)
    counted = [1, *range(COUNTED, n_columns + 1, COUNTED)]
    axis.set_xticks([number - 1 for number in counted], labels=[str(n) for n in counted])
    axis.set_xlabel(f"Column, of {n_columns} readings")


def _name_columns(axes: Sequence[Axes], curve: Curve, readings: Readings) -> None:
    """Write the names that the configuration has for readings above their columns, each with a line
    down to it.
    """
    names = {}
    for name, reading in readings.named.items():
        if reading in curve.readings:
            names[curve.readings.index(reading)] = name
    end = 0.0  # of the last name, as a share of the columns' width
    for column, name in sorted(names.items()):
        for axis in axes:
            axis.axvline(column, color="0.4", linewidth=0.5, linestyle=":")
        place = max(end, (column + 0.5) / len(curve.readings))
        end = place + LETTER_SHARE * (len(name) + 2)
        axes[0].annotate(
            name,
            (column, 1),
            (place, 1.08),
            xycoords=axes[0].get_xaxis_transform(),
            textcoords="axes fraction",
            arrowprops={
                "arrowstyle": "-",
                "color": "0.4",
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )


def specification_section(plan: Plan, tried: int) -> dict[str, Any]:
    """Return the figure's section for the template, with a line for each column."""
    csv = plan.layout.table(NAME)
    seen = (
        f"{TITLE}: {tried} readings, with the verdicts on all numbers and what each reading "
        "departs in."
    )
    return {
        "template": "sections/figure.html.j2",
        "name": NAME,
        "title": TITLE,
        "caption": f"{CAPTION} {_names_in_words(Readings(plan.config))}",
        "trials": "",
        "not_run": [],
        "seen": seen,
        "listed": read_csv(csv).fillna("").to_dict("records"),
        "downloads": downloads([csv]),
        **figure(plan.layout.figure(NAME)),
    }


def _names_in_words(readings: Readings) -> str:
    """Return what the names of readings mean that stand on top of the figure."""
    names = []
    for name, reading in readings.named.items():
        if reading != readings.protocol:
            names.append(f"{name} is {reading_words(reading, readings)}")
    return f"On top, {'; '.join(names)}." if names else ""
