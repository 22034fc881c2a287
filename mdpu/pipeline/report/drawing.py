"""What the figures share: their size, panels and titles, who competes, reference lines, bands, and
the legend.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.files import atomic
from mdpu.methods import load_method
from mdpu.pipeline.report.style import method_style, use_house_style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_NAMES = {1: "Points", 2: "Pairs", 3: "Triples"}
# inches: a column and a page of a paper in two columns
COLUMN = 3.4
PAGE = 7.0
MOST_ACROSS = 4  # panels side by side on a page
LETTER = 0.067  # inches that a letter of 8 pt takes on average
ALLOWANCE = 0.5  # share of the methods' range that a control may add to it


def size_name(tuple_size: int) -> str:
    """Return what tuples of a size are called: Pairs, Triples, 4-tuples."""
    return SIZE_NAMES.get(tuple_size, f"{tuple_size}-tuples")


def panel_columns(count: int) -> int:
    """Return how many of `count` panels stand side by side, so that the rows are few and about
    equally long.
    """
    return -(-count // -(-count // MOST_ACROSS))


def draw_panels(
    rows: int, columns: int, height: float, width: float | None = None, **options: Any
) -> tuple[Figure, Any]:
    """Return a figure in the house style and its axes (rows, columns); `options` are those of
    `Figure.subplots`.

    `height` is that of a row of panels with its title and labels, in inches; a legend comes on top
    of it. By default one panel across is a `COLUMN` wide, and more are a `PAGE` wide.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    use_house_style()
    wide = width or (COLUMN if columns == 1 else PAGE)
    figure = Figure(figsize=(wide, height * rows))
    FigureCanvasAgg(figure)  # it measures text
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def entitle(axis: Axes, *parts: str, beside: float = 0.4) -> None:
    """Write a panel's title: its parts with commas between them, in as many lines as it needs.

    `beside` is how much of the figure's width labels take on the left of all panels, in inches.
    """
    letters = _letters_across(axis, beside)
    lines: list[str] = []
    for part in parts:
        is_formula = part.startswith("$")
        for piece in [part] if is_formula else textwrap.wrap(part, letters):
            if lines and _letters(lines[-1]) + 2 + _letters(piece) <= letters:
                lines[-1] += f", {piece}"
            else:
                lines.append(piece)
    axis.set_title("\n".join(lines))


def _letters_across(axis: Axes, beside: float) -> int:
    """Return how many letters a panel is wide; `beside` is as `entitle` has it."""
    figure = axis.get_figure(root=True)
    place = axis.get_subplotspec()
    assert figure is not None and place is not None
    room = (figure.get_figwidth() - beside) / place.get_gridspec().ncols
    return int(0.95 * room / LETTER)


def _letters(text: str) -> int:
    """Return how many letters of a line are seen: formulas have commands that are not."""
    return len(re.sub(r"[$_]", "", re.sub(r"\\[a-z]+", "p", text)))


def literal(text: str) -> str:
    """Return a title from a configuration as matplotlib shows it as it is: its dollars begin no
    formula.
    """
    return text.replace("$", r"\$")


def share_range(
    axes: Iterable[Axes], values: Iterable[float], beyond: Iterable[float] = ()
) -> None:
    """Give axes of panels that are compared one vertical range: that of `values` with a margin.

    Each of `beyond`, such as controls, is shown if the range does not grow by more than `ALLOWANCE`
    for it.
    """
    finite = [value for value in values if np.isfinite(value)]
    if not finite:
        return
    low = min(finite)
    high = max(finite)
    reach = ALLOWANCE * (high - low)
    near = [value for value in beyond if low - reach <= value <= high + reach]
    low = min([low, *near])
    high = max([high, *near])
    margin = 0.06 * (high - low) or 1.0
    for axis in axes:
        axis.set_ylim(low - margin, high + margin)


def competitors_and_controls(metrics: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the methods of a table in order, with controls listed apart."""
    methods = list(dict.fromkeys(metrics["method"]))
    is_control = {method: load_method(method).control for method in methods}
    competitors = [method for method in methods if not is_control[method]]
    return competitors, [method for method in methods if is_control[method]]


def reference_lines(axes: Axes, controls: pd.Series) -> None:
    """Draw the accuracies of controls, in percent and by method, as horizontal lines."""
    for control, accuracy in controls.items():
        line = {**method_style(str(control)), "marker": "", "linewidth": 1}
        axes.axhline(accuracy, **line, label=load_method(str(control)).title)


def name_outside(axis: Axes, controls: pd.Series) -> None:
    """Name the controls whose accuracy lies outside of the vertical range of `axis` above it; see
    `reference_lines`.

    They leave the legend.
    """
    low, high = axis.get_ylim()
    outside = controls[(controls < low) | (controls > high)]
    names = []
    for control, accuracy in outside.items():
        arrow = "↑" if accuracy > high else "↓"
        names.append(f"{load_method(str(control)).title} {accuracy:.1f} {arrow}")

    titles = {load_method(str(control)).title for control in outside.index}
    for line in axis.get_lines():
        if line.get_label() in titles:
            line.set_label(f"_{line.get_label()}")

    if names:
        fits = sum(map(len, names)) + 2 <= _letters_across(axis, 0.4)
        axis.text(
            1,
            1.01,
            (", " if fits else "\n").join(names),
            transform=axis.transAxes,
            ha="right",
            va="bottom",
        )


def legend_below(figure: Figure) -> None:
    """Put one legend of all axes below them, as wide as the figure; the figure grows by its
    height.
    """
    handle_of: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handle_of.setdefault(label, handle)
    labels = list(handle_of)
    handles = list(handle_of.values())
    for rows in range(1, len(labels) + 1):
        legend = figure.legend(
            handles, labels, loc="outside lower center", ncols=-(-len(labels) // rows)
        )
        box = legend.get_window_extent()
        if rows == len(labels) or box.width <= figure.bbox.width:
            figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)
            return
        legend.remove()


def save_figure(figure: Figure, svg: Path, pdf: Path) -> None:
    """Save a figure as SVG and as PDF; the same figure is the same bytes whenever it is saved."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    _settle(figure)
    # `Figure.savefig` draws a figure twice, first without ink, to lay it out; this one is laid out.
    with atomic(svg) as temporary:
        FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None})  # type: ignore[no-untyped-call]
    with atomic(pdf) as temporary:
        FigureCanvasPdf(figure).print_pdf(temporary, metadata={"CreationDate": None})  # type: ignore[no-untyped-call]


def _settle(figure: Figure) -> None:
    """Lay a figure out for good, on a grid: the solver's last digits differ from time to time."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    for axis in figure.axes:
        if axis.get_axes_locator() is None:
            axis.set_position(tuple(np.round(axis.get_position(original=True).bounds, 5)))


def bands(axes: Axes, accuracies: pd.DataFrame, methods: Sequence[str], along: str) -> None:
    """Draw accuracies along a column: the mean over trials as a line, one standard deviation as a
    band.
    """
    for method in methods:
        method_rows = accuracies[accuracies["method"] == method]
        if method_rows.empty:
            continue
        by_value = method_rows.groupby(along)["accuracy"].agg(["mean", "std"])
        style = method_style(method)
        values = by_value.index.to_numpy()
        every = max(1, len(values) // 8)
        label = load_method(method).title
        axes.plot(values, by_value["mean"], **style, markevery=every, label=label)
        spread = by_value["std"].fillna(0)
        axes.fill_between(
            values,
            by_value["mean"] - spread,
            by_value["mean"] + spread,
            color=style["color"],
            alpha=0.2,
            linewidth=0,
        )
