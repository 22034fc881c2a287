"""Parts that sections of the report share: files as addresses, downloads, and a figure with its caption."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from mdpu.errors import UserError
from mdpu.methods import load_method
from mdpu.pipeline.evaluate.collect import cells_of
from mdpu.pipeline.evaluate.published import missing_datasets
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import CELL, Experiment, Plan, Run

FORMATS = {".csv": "CSV", ".tex": "LaTeX"}
BESIDE = "LaTeX, with the paper’s"  # a table with the paper's numbers beside ours
WITH_PAPER = "-paper.tex"  # how the name of a LaTeX table ends that has the paper's numbers beside ours
SAFE = "!$'()*+,;=:@/?"  # beside letters, digits and -._~ in the address of a drawing
PAGE_SCALE = 1.35  # text of 8 pt becomes as large as the page's small print
# Colours of figures, which are drawn for paper, that a dark page replaces; the colours of methods and photographs stay.
DARK = {
    "#ffffff": "#14181d",  # as in report/tokens.css
    "#000000": "#ebebeb",
    "#333333": "#cccccc",
    "#404040": "#bfbfbf",
    "#f0f0f0": "#262626",
}


def data_url(kind: str, path: Path) -> str:
    """Return a file of a media type, such as ``image/png``, as an address that holds the file itself."""
    return f"data:{kind};base64,{base64.b64encode(contents(path)).decode()}"


def contents(path: Path) -> bytes:
    """Return what a file of the results holds; raise `UserError` if it is missing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} could not be read ({error.strerror}); run the workflow") from None


def figure(path: Path) -> dict[str, Any]:
    """Return an SVG figure for the template; raise `UserError` if it is missing.

    ``image`` is its address, drawn for light and dark pages, and ``width`` how wide a page shows it, in pixels: larger
    than in a paper, all figures by one factor.
    """
    drawing = contents(path)
    width = re.search(rb'<svg[^>]* width="([\d.]+)pt"', drawing)
    assert width is not None
    text = for_both_schemes(slim(drawing)).decode().replace("'", "&#39;").replace('"', "'")
    address = Markup(f"data:image/svg+xml,{quote(text, safe=SAFE)}")  # a third shorter than in base 64
    return {"image": address, "width": round(PAGE_SCALE * float(width[1]) / 0.75)}  # a pixel is 0.75 pt


def slim(svg: bytes) -> bytes:
    """Return an SVG drawing of matplotlib's with one decimal of a point, and without what nobody sees."""
    svg = re.sub(rb"<metadata>.*?</metadata>|<!--.*?-->|<!DOCTYPE.*?>", b"", svg, flags=re.DOTALL)
    svg = re.sub(rb' id="(?![mp][0-9a-f]{10}|image)[^"]*"', b"", svg)  # nothing refers to other ids
    number, place = re.compile(rb"\d+\.\d\d+"), re.compile(rb' (?:d|x|y)="[^"]*"')
    svg = place.sub(lambda own: number.sub(lambda found: b"%.1f" % float(found[0]), own[0]), svg)
    svg = re.sub(rb' d="([^"]*)"', lambda own: b' d="%s"' % _short_path(own[1]), svg)
    svg = re.sub(rb'style="[^"]*"', lambda own: re.sub(rb"(?<=[:;,]) |'", b"", own[0]), svg)
    svg = re.sub(rb' transform="rotate\(-0 [^"]*"', b"", svg)
    return re.sub(rb"\s*\n\s*", b" ", re.sub(rb">\s+<", b"><", svg))


def _short_path(path: bytes) -> bytes:
    """Return an SVG path with as few letters as it needs: after a move, a pair of numbers is a line."""
    path = re.sub(rb"\s*([A-Za-z])\s*", rb"\1", path.strip())
    path = path.replace(b"L", b" ") if not re.search(rb"[^MLz\d.\s-]", path) else path
    return re.sub(rb"\s+", b",", path)


def for_both_schemes(svg: bytes) -> bytes:
    """Return an SVG drawing of matplotlib's with the colours of `DARK` where its reader prefers a dark page.

    An image follows the colour scheme of the page around it.
    """
    rules = "svg { fill: #e4e8ec }" + "".join(
        f' [style*="{part}:{colour}"] {{ {part}: {dark} !important }}'
        for colour, dark in DARK.items()
        for part in ("fill", "stroke")
    )
    start, end, rest = svg.rpartition(b"</svg>")
    return start + f"<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>".encode() + end + rest


def downloads(files: Iterable[Path]) -> list[dict[str, str]]:
    """Return tables among files of the results for the template: name, what a reader calls the format, and text.

    The page holds them itself, so that a report that is passed on keeps its downloads. It shows figures, and their
    files lie beside it.
    """
    return [
        {
            "file": file.name,
            "format": BESIDE if file.name.endswith(WITH_PAPER) else FORMATS[file.suffix],
            "text": contents(file).decode(),
        }
        for file in files
        if file.suffix in FORMATS
    ]


def seen(plan: Plan, experiment: Experiment, described: pd.DataFrame | None = None) -> str:
    """Return what a figure of runs shows, for those who do not see it: range, and each method's mean accuracy."""
    if not experiment.runs:
        return experiment.title
    keys = pd.DataFrame(experiment.runs).drop(columns="seed").drop_duplicates()
    cells = cells_of(experiment.runs, read_csv(plan.layout.runs) if described is None else described)
    shown = keys.merge(cells, on=list(CELL)).dropna(subset="mean")
    if shown.empty:
        return f"{experiment.title}. Every trial diverged."
    means = shown.groupby("method", sort=False)["mean"].mean().sort_values(ascending=False)
    each = ", ".join(f"{load_method(str(method)).title} {mean:.1f} %" for method, mean in means.items())
    datasets = ", ".join(plan.titles(run.dataset for run in experiment.runs).values())
    return (
        f"{experiment.title}. {len(shown)} cells of {datasets}, with mean accuracies from {shown['mean'].min():.1f} to "
        f"{shown['mean'].max():.1f} %. Mean over the cells, by method: {each}."
    )


def figure_section(
    plan: Plan, experiment: Experiment, caption: str, svg: Path, described: pd.DataFrame | None = None
) -> dict[str, Any]:
    """Return a figure for the template: name, title, caption, image, what it shows in words, and its trials.

    `described` are the plan's own runs unless given.
    """
    return {
        "template": "sections/figure.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "caption": caption,
        "trials": trials_of(experiment.runs),
        "not_run": list(missing_datasets(plan, experiment).values()),
        "seen": seen(plan, experiment, described),
        **figure(svg),
    }


def number_of_trials(counts: Collection[int]) -> str:
    """Return numbers of trials in words: ``3 trials``, or ``3 to 5 trials``."""
    least, most = min(counts), max(counts)
    return f"{least} to {most} trials" if least < most else f"{most} trial{'s' if most > 1 else ''}"


def trials_of(runs: Sequence[Run]) -> str:
    """Return in words how many trials the cells of some runs have; nothing if there are no runs."""
    counts = Counter(run.cell for run in runs).values()
    return number_of_trials(counts) if counts else ""
