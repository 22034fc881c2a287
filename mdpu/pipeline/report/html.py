"""What every page is made of: its templates and style, words, and figures as addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from mdpu.errors import UserError
from mdpu.pipeline.files import resource

TEMPLATES = resource("report")
STYLE = ("tokens.css", "style.css", "print.css")
SAFE = "!$'()*+,;=:@/?"  # beside letters, digits and -._~ in the address of a drawing
PAGE_SCALE = 1.35  # text of 8 pt becomes as large as the page's small print
# Colours of figures, which are drawn for paper, that a dark page replaces; the colours of methods
# and photographs stay.
DARK = {
    "#ffffff": "#14181d",  # as in report/tokens.css
    "#000000": "#ebebeb",
    "#333333": "#cccccc",
    "#404040": "#bfbfbf",
    "#f0f0f0": "#262626",
}


def read_templates(names: Iterable[str]) -> str:
    """Return the text of files of the templates, such as `STYLE`, one after the other."""
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def environment() -> Environment:
    """Return what renders the templates: text is escaped, and an unknown variable is an error."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"points": points, "typeset": typeset}
    return templates


def points(value: float | None) -> str:
    """Return a number of percent or points with two decimals, a dash if it is missing."""
    return "–" if value is None or pd.isna(value) else f"{value:.2f}"


def typeset(text: object) -> Markup:
    """Return words as a page shows them: names between backticks as code, true minus signs, curved
    apostrophes.
    """
    words = str(escape(str(text).replace("'", "’")))
    words = re.sub(r"`([^`]+)`", r"<code>\1</code>", words)
    return Markup(re.sub(r"(?<![\w.])-(?=\d)", "−", words))


def contents(path: Path) -> bytes:
    """Return what a file of the results holds; raise `UserError` if it is missing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} could not be read ({error.strerror}); run the workflow") from None


def figure(path: Path) -> dict[str, Any]:
    """Return an SVG figure for the template; raise `UserError` if it is missing.

    ``image`` is its address, drawn for light and dark pages, and ``width`` how wide a page shows
    it, in pixels: larger than in a paper, all figures by one factor.
    """
    drawing = contents(path)
    width = re.search(rb'<svg[^>]* width="([\d.]+)pt"', drawing)
    assert width is not None
    text = for_both_schemes(slim(drawing)).decode().replace("'", "&#39;").replace('"', "'")
    # a third shorter than in base 64
    address = Markup(f"data:image/svg+xml,{quote(text, safe=SAFE)}")
    # a pixel is 0.75 pt
    return {"image": address, "width": round(PAGE_SCALE * float(width[1]) / 0.75)}


def slim(svg: bytes) -> bytes:
    """Return an SVG drawing of matplotlib's with one decimal of a point, and without what nobody
    sees.
    """
    svg = re.sub(rb"<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE.*?>", b"", svg, flags=re.DOTALL)
    svg = re.sub(rb' id="(?![mp][0-9a-f]{10}|image)[^"]*"', b"", svg)  # nothing refers to other ids
    svg = re.sub(rb' (?:d|x|y)="[^"]*"', lambda match: _one_decimal(match[0]), svg)
    svg = re.sub(rb' d="([^"]*)"', lambda match: b' d="%s"' % _short_path(match[1]), svg)
    svg = re.sub(rb'style="[^"]*"', lambda match: re.sub(rb"(?<=[:;,]) |'", b"", match[0]), svg)
    svg = re.sub(rb' transform="rotate\(-0 [^"]*"', b"", svg)
    svg = re.sub(rb">\s+<", b"><", svg)
    return re.sub(rb"\s*\n\s*", b" ", svg)


def _one_decimal(text: bytes) -> bytes:
    """Return a text whose numbers have no more than one decimal."""
    return re.sub(rb"\d+\.\d\d+", lambda match: b"%.1f" % float(match[0]), text)


def _short_path(path: bytes) -> bytes:
    """Return an SVG path with as few letters as it needs: after a move, a pair of numbers is a
    line.
    """
    path = re.sub(rb"\s*([A-Za-z])\s*", rb"\1", path.strip())
    has_curves = re.search(rb"[^MLz\d.\s-]", path)
    if not has_curves:
        path = path.replace(b"L", b" ")
    return re.sub(rb"\s+", b",", path)


def for_both_schemes(svg: bytes) -> bytes:
    """Return an SVG drawing of matplotlib's with the colours of `DARK` where its reader prefers a
    dark page.

    An image follows the colour scheme of the page around it.
    """
    rules = ["svg { fill: #e4e8ec }"]
    for colour, dark in DARK.items():
        for part in ("fill", "stroke"):
            rules.append(f'[style*="{part}:{colour}"] {{ {part}: {dark} !important }}')
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    start, end, rest = svg.rpartition(b"</svg>")
    return start + style.encode() + end + rest
