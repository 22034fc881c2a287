"""Mermaid flowcharts of the pages as drawings, made when the site is built, so that it loads
nothing from elsewhere.

A code host draws the same blocks by itself. What is understood is what the pages use: nodes with a
title and a line of text, and arrows. A node stands below all that point to it, beside the others of
its row.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from html import escape
from itertools import pairwise

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

# pixels: a box, between boxes, a letter, beside columns
ROW = 46
GAP = 26
LETTER = 6.9
MARGIN = 24


class Flowchart(Directive):
    """Draws the block."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the drawing as HTML."""
        return [nodes.raw("", draw("\n".join(self.content)), format="html")]


def draw(text: str) -> str:
    """Return a flowchart as HTML."""
    said: dict[str, list[str]] = {}  # title and text of a node
    arrows: list[tuple[str, str]] = []
    for line in map(str.strip, text.splitlines()):
        if match := re.fullmatch(r'(\w+)\["(.*)"\]', line):
            said[match[1]] = re.sub(r"</?b>", "", match[2]).split("<br>")
        elif "-->" in line:
            arrows += pairwise(line.split(" --> "))
    layer = dict.fromkeys(said, 0)
    for _ in said:
        for above, below in arrows:
            layer[below] = max(layer[below], layer[above] + 1)
    width = LETTER * max(len(words) for lines in said.values() for words in lines) + MARGIN
    taken: Counter[int] = Counter()
    place = {}
    for name in said:
        place[name] = (taken[layer[name]] * (width + MARGIN) + 2, layer[name] * (ROW + GAP) + 2)
        taken[layer[name]] += 1
    mark = f"arrow-{zlib.crc32(text.encode())}"  # a page may hold several
    high = max(y for _, y in place.values()) + ROW + 2
    wide = max(x for x, _ in place.values()) + width + 2
    parts = []
    for above, below in arrows:
        (x, y), (to_x, to_y) = place[above], place[below]
        line = f"M{x + width / 2} {y + ROW}L{to_x + width / 2} {to_y - 1}"
        parts.append(f'<path d="{line}" marker-end="url(#{mark})"/>')
    for name, (x, y) in place.items():
        title, *more = said[name]
        parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{ROW}" rx="4"/>')
        rows = [(18 if more else 28, title, ' class="title"'), *((36, words, "") for words in more)]
        parts += [
            f'<text x="{x + width / 2}" y="{y + up}"{kind}>{escape(words)}</text>'
            for up, words, kind in rows
        ]
    words = "; ".join(f"{said[above][0]} to {said[below][0]}" for above, below in arrows)
    arrow = (
        f'<marker id="{mark}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto">'
    )
    return (
        '<div class="flowchart" tabindex="0" role="group" aria-label="Diagram">'
        f'<svg viewBox="0 0 {wide} {high}" width="{wide}" role="img" aria-label="{escape(words)}">'
        f'<defs>{arrow}<path d="M0 0L8 4L0 8z"/></marker></defs>{"".join(parts)}</svg></div>'
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the drawing of blocks that are called ``mermaid``."""
    app.add_directive("mermaid", Flowchart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
