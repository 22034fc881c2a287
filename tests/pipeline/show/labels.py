"""Whether what is written in a figure can be read: nothing touches, and nothing leaves the page."""

import itertools

from matplotlib.figure import Figure
from matplotlib.text import Text

SLACK = 0.5  # points by which boxes may overlap: the box of a text is larger than its letters


def touching(figure: Figure) -> list[str]:
    """Return the pairs of texts that overlap, and the texts that leave the figure, as its file
    shows them.
    """
    figure.canvas.draw()
    boxes = [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if is_shown(text, figure)
    ]
    slack = SLACK * figure.dpi / 72
    page = figure.bbox
    found = [
        f"{text!r} leaves the figure"
        for text, box in boxes
        if box.x0 < page.x0 - slack
        or box.x1 > page.x1 + slack
        or box.y0 < page.y0 - slack
        or box.y1 > page.y1 + slack
    ]
    for (first, one), (second, other) in itertools.combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        down = min(one.y1, other.y1) - max(one.y0, other.y0)
        if across > slack and down > slack:
            found.append(f"{first!r} touches {second!r}")
    return found


def is_shown(text: Text, figure: Figure) -> bool:
    """Return whether a text appears in the file: tick labels beyond the axis and those of hidden
    axes do not.
    """
    if not text.get_text().strip() or not text.get_visible():
        return False
    for axes in figure.axes:
        if not axes.get_visible() and text in axes.findobj(Text):
            return False
        for axis in (axes.xaxis, axes.yaxis):
            for tick in (*axis.majorTicks, *axis.minorTicks):
                if text in (tick.label1, tick.label2):
                    low, high = sorted(axis.get_view_interval())
                    return axes.axison and axes.get_visible() and low <= tick.get_loc() <= high
        if not axes.axison and text in (
            axes.xaxis.label,
            axes.yaxis.label,
            *axes.xaxis.findobj(Text),
        ):
            return False
    return True
