"""Markdown with filled paragraphs."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120
ITEM = re.compile(r"\s*(?:- |\d+\. )")
FENCES = ("```", "$$")
FORMULA = re.compile(r"\$[^$]+\$")
TIED = "\N{NO-BREAK SPACE}"


def reflow(text: str) -> str:
    """Return Markdown with filled paragraphs and list items; tables, headings, code and formulas stay as they are."""
    lines: list[str] = []
    paragraph: list[str] = []
    fence = ""

    def fill() -> None:
        lines.extend(_filled(paragraph) if paragraph else [])
        paragraph.clear()

    for line in text.strip().splitlines():
        if fence:
            lines.append(line)
            fence = "" if line == fence else fence
        elif not line.strip() or line.startswith(("|", "#", "<!--", "![", *FENCES)):
            fill()
            lines.append(line)
            fence = next((mark for mark in FENCES if line.startswith(mark)), "")
        else:
            if ITEM.match(line):
                fill()
            paragraph.append(line)
    fill()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _filled(paragraph: list[str]) -> list[str]:
    text = "\n".join(paragraph)
    marker = re.match(r"\s*(?:- |\d+\. )?", text)
    assert marker is not None
    words = FORMULA.sub(lambda formula: formula[0].replace(" ", TIED), " ".join(text[marker.end() :].split()))
    lines = textwrap.wrap(
        words,
        WIDTH,
        initial_indent=marker[0],
        subsequent_indent=" " * len(marker[0]),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(TIED, " ") for line in lines]
