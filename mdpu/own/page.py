"""The page on a classifier from a user's own groups, ``report/own.html.j2`` in the style of the
report.
"""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from PIL import Image
from scipy.special import expit

from mdpu.data import UNLABELED
from mdpu.own.doubts import doubts_of
from mdpu.own.findings import Study
from mdpu.own.groups import GroupData, rows_of_groups
from mdpu.pipeline.files import write_text
from mdpu.pipeline.report.drawing import draw_panels, save_figure
from mdpu.pipeline.report.html import STYLE, environment, figure, read_templates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 20  # suspicious groups, and columns that matter
MEMBERS = 8  # of a suspicious group
COLUMNS = 6  # of these members
NAMING = 2  # columns that name a row
# as in `mdpu.pipeline.report.style`
BLUE = "#0072B2"
RED = "#D55E00"
GREY = "#999999"


def write_own_page(study: Study, out: Path) -> None:
    """Write all that is known of a classifier as one self-contained HTML page."""
    draw = {"histogram": _histogram, "calibration": _calibration, "curve": _curve}
    context = {
        "study": study,
        "doubts": doubts_of(study),
        "classifier": study.classifier,
        "importance": study.importance.sort_values("loss", ascending=False, kind="stable").head(
            SHOWN
        ),
        "figures": {name: _figure(study, own) for name, own in draw.items()},
        "style": read_templates(STYLE),
    }
    context["headings"] = _headings(study, context["importance"]["column"].tolist())
    suspects = _suspects(study, context["headings"])
    write_text(out, environment().get_template("own.html.j2").render(**context, suspects=suspects))


def _headings(study: Study, important: list[str]) -> list[str]:
    """Return the columns that a suspicious row shows: those that name it, which training left out,
    and what matters.
    """
    if not isinstance(study.data.rows, pd.DataFrame):
        return important[:COLUMNS]
    rows = study.data.rows
    naming = [column.name for column in study.data.account.left_out if column.name in rows]
    n_different = {name: rows[name].astype(str).nunique() for name in naming}
    naming.sort(key=lambda name: -n_different[name])
    return naming[:NAMING] + important[:COLUMNS]


def _figure(study: Study, draw: Callable[[Study, Axes], None]) -> dict[str, Any]:
    drawing, axes = draw_panels(1, 1, 2.4)
    draw(study, axes[0, 0])
    with tempfile.TemporaryDirectory() as folder:
        save_figure(drawing, Path(folder) / "one.svg", Path(folder) / "one.pdf")
        return figure(Path(folder) / "one.svg")


def _histogram(study: Study, axis: Axes) -> None:
    edges = np.linspace(0, 1, 21)
    probabilities = expit(study.held_out)
    unlabeled = study.data.groups == UNLABELED
    for inside, label, colour in ((unlabeled, "unlabeled", BLUE), (~unlabeled, "in groups", RED)):
        if not inside.any():
            continue
        axis.stairs(
            100 * np.histogram(probabilities[inside], edges)[0] / inside.sum(),
            edges,
            label=label,
            color=colour,
        )
    axis.set(xlabel="probability of being positive", ylabel="rows in percent")
    axis.legend()


def _calibration(study: Study, axis: Axes) -> None:
    table = study.calibration
    ends = [table["share"] - table["low"], table["high"] - table["share"]]
    axis.plot([0, 1], [0, 1], color=GREY, linestyle="--")
    axis.errorbar(
        table["probability"], table["share"], ends, color=BLUE, marker="o", linestyle="", capsize=3
    )
    axis.set(
        xlabel="probability that the classifier gives",
        ylabel="share of positives",
        xlim=(0, 1),
        ylim=(0, 1),
    )


def _curve(study: Study, axis: Axes) -> None:
    sizes, errors = zip(*study.curve, strict=True)
    right = [100 * (1 - error.value) for error in errors]
    below = [100 * (error.high - error.value) for error in errors]
    above = [100 * (error.value - error.low) for error in errors]
    axis.errorbar(sizes, right, [below, above], color=BLUE, marker="o", capsize=3)
    prior = study.classifier.prior_
    axis.axhline(100 * max(prior, 1 - prior), color=GREY, linestyle="--")

    axis.set(xlabel="groups in training", ylabel="right answers in percent", xscale="log")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.minorticks_off()
    low, high = axis.get_ylim()
    axis.set_ylim(max(0, low), min(102, high))


def _suspects(study: Study, headings: list[str]) -> list[dict[str, Any]]:
    """Return the most suspicious groups with their members: the values of some columns, or
    pictures.
    """
    data = study.data
    tuples = rows_of_groups(np.arange(len(data.groups)), data.groups)
    probabilities = expit(study.held_out)
    sign = 1 if study.rule.dominant == "positive" else -1

    suspects = list[Any]()
    for row in study.suspicion.tuples.head(SHOWN).to_dict("records"):
        places = sorted(tuples[row["tuple"]], key=lambda place: sign * probabilities[place])
        members = []
        for place in places[:MEMBERS]:
            probability = {"probability": float(probabilities[place])}
            members.append(probability | _member(data, place, headings))
        name = data.names[row["tuple"]]
        suspects.append(row | {"name": name, "size": len(places), "members": members})
    return suspects


def _member(data: GroupData, place: int, headings: list[str]) -> dict[str, Any]:
    """Return what the page shows of a row: its picture, or its line and the values of columns."""
    if data.rows.ndim > 2:
        name = f"row {place}"
        if data.files is not None:
            name = data.files[place].name
        return {"picture": _picture(data.rows[place], data.rows), "name": name}
    if isinstance(data.rows, pd.DataFrame):
        row = data.rows.iloc[place]
        values = [row[name] for name in headings]
    else:
        row = data.rows[place]
        values = [row[int(name)] for name in headings]
    return {"line": int(data.lines[place]), "values": [_short(value) for value in values]}


def _picture(pixels: Any, rows: Any) -> str:
    """Return a picture for the page; of channels that are no colours, the first is shown."""
    if pixels.ndim == 3 and pixels.shape[-1] not in (3, 4):
        pixels = pixels[..., 0]
    if pixels.dtype != np.uint8:
        pixels = np.uint8(255 * (pixels - rows.min()) / (np.ptp(rows) or 1))
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="png")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _short(value: Any) -> str:
    if np.ndim(value) or isinstance(value, dict):
        return str(value)
    if pd.isna(value):
        return "–"
    if isinstance(value, pd.Timestamp):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, float | np.floating):
        return f"{value:.10g}"
    return str(value)
