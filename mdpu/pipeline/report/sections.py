"""Parts that sections of the report share: files as addresses, downloads, and a figure with its caption."""

from __future__ import annotations

import base64
import colorsys
import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.files import check, read_csv
from mdpu.pipeline.plan import CELL, Experiment, Plan, Run

MEDIA_TYPES = {".csv": "text/csv", ".pdf": "application/pdf", ".tex": "application/x-tex"}
FORMATS = {".csv": "CSV", ".pdf": "PDF", ".png": "PNG", ".svg": "SVG", ".tex": "LaTeX"}
BESIDE = "LaTeX, with the paper’s"  # a table with the paper's numbers beside ours
WITH_PAPER = "-paper.tex"  # how the name of a LaTeX table ends that has the paper's numbers beside ours
DARK_PAGE, DARK_INK = "#14181d", "#e4e8ec"  # as in report/tokens.css
PAGE_SCALE = 1.35  # text of 8 pt becomes as large as the page's small print
LEAST_CONTRAST = 3.0  # of a drawing's parts against the page (WCAG 2.2, 1.4.11)


def data_url(kind: str, path: Path) -> str:
    """Return a file as an address that holds the file itself; raise `UserError` if it is missing."""
    check(path)
    return embedded(kind, path.read_bytes())


def embedded(kind: str, content: bytes) -> str:
    """Return bytes of a media type, such as ``image/png``, as an address."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def figure(path: Path) -> dict[str, Any]:
    """Return an SVG figure for the template; raise `UserError` if it is missing.

    ``image`` is its address, drawn for light and dark pages, and ``width`` how wide a page shows it, in pixels: larger
    than in a paper, all figures by one factor.
    """
    check(path)
    drawing = path.read_bytes()
    width = re.search(rb'<svg[^>]* width="([\d.]+)pt"', drawing)
    assert width is not None
    address = embedded("image/svg+xml", for_both_schemes(drawing))
    return {"image": address, "width": round(PAGE_SCALE * float(width[1]) / 0.75)}  # a pixel is 0.75 pt


def for_both_schemes(svg: bytes) -> bytes:
    """Return an SVG drawing of matplotlib's with other colours where its reader prefers a dark page.

    Figures are drawn for paper. In the dark, what is near white or too dark to be seen changes its lightness, not its
    hue; the colours of methods and photographs stay. An image follows the colour scheme of the page around it.
    """
    used = sorted({colour.decode() for colour in re.findall(rb"(?:fill|stroke): (#[0-9a-f]{6})", svg)})
    rules = [f"svg {{ fill: {DARK_INK} }}"]
    for colour in used:
        if (twin := dark_twin(colour)) != colour:
            rules += [f'[style*="{part}: {colour}"] {{ {part}: {twin} !important }}' for part in ("fill", "stroke")]
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>".encode()
    start, end, rest = svg.rpartition(b"</svg>")
    return start + style + end + rest


def dark_twin(colour: str) -> str:
    """Return the colour, as ``#rrggbb``, that takes the place of `colour` on a dark page."""
    if colour == "#ffffff":
        return DARK_PAGE
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    if lightness < 0.9 and contrast(colour, DARK_PAGE) >= LEAST_CONTRAST:
        return colour
    lightness = min(0.92, max(0.15, 1 - lightness))
    if contrast(colour, "#ffffff") >= LEAST_CONTRAST:  # seen on paper; a pure blue is dark at any middle lightness
        while contrast(_colour(hue, lightness, saturation), DARK_PAGE) < LEAST_CONTRAST:
            lightness += 0.02
    return _colour(hue, lightness, saturation)


def _colour(hue: float, lightness: float, saturation: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, lightness, saturation))


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21, as WCAG defines it."""
    bright, dim = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def format_name(file: str | Path) -> str:
    """Return what a reader calls the format of a file."""
    return BESIDE if str(file).endswith(WITH_PAPER) else FORMATS[Path(file).suffix]


def downloads(results: Path, files: Sequence[str]) -> list[dict[str, str]]:
    """Return files of the results for the template: their name, what a reader calls the format, and an address.

    The address holds the file itself, so that a report that is passed on keeps its downloads. Two files of one format
    are told apart by their names. A page shows SVG drawings themselves, and does not hold them twice.
    """
    files = [file for file in files if not file.endswith(".svg")]
    formats = list(map(format_name, files))
    return [
        {
            "file": Path(file).name,
            "format": name if formats.count(name) == 1 else f"{name} {Path(file).stem}",
            "address": data_url(MEDIA_TYPES[Path(file).suffix], results / file),
        }
        for file, name in zip(files, formats, strict=True)
    ]


def seen(plan: Plan, experiment: Experiment) -> str:
    """Return what a figure of runs shows, for those who do not see it: range, and each method's mean accuracy."""
    if not experiment.runs:
        return experiment.title
    cells = pd.DataFrame(experiment.runs).drop(columns="seed").drop_duplicates()
    shown = cells.merge(read_csv(plan.layout.summary), on=list(CELL)).dropna(subset="mean")
    if shown.empty:
        return f"{experiment.title}. Every trial diverged."
    means = shown.groupby("method", sort=False)["mean"].mean().sort_values(ascending=False)
    each = ", ".join(f"{load_method(str(method)).title} {mean:.1f} %" for method, mean in means.items())
    datasets = ", ".join(plan.titles(run.dataset for run in experiment.runs).values())
    return (
        f"{experiment.title}. {len(shown)} cells of {datasets}, with mean accuracies from {shown['mean'].min():.1f} to "
        f"{shown['mean'].max():.1f} %. Mean over the cells, by method: {each}."
    )


def figure_section(plan: Plan, experiment: Experiment, caption: str) -> dict[str, Any]:
    """Return a figure for the template: name, title, caption, image, what it shows in words, and its trials."""
    return {
        "template": "sections/figure.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "caption": caption,
        "trials": trials_of(experiment.runs),
        "seen": seen(plan, experiment),
        **figure(plan.layout.figure(experiment.name)),
    }


def number_of_trials(counts: Collection[int]) -> str:
    """Return numbers of trials in words: ``3 trials``, or ``3 to 5 trials``."""
    least, most = min(counts), max(counts)
    return f"{least} to {most} trials" if least < most else f"{most} trial{'s' if most > 1 else ''}"


def trials_of(runs: Sequence[Run]) -> str:
    """Return in words how many trials the cells of some runs have; nothing if there are no runs."""
    counts = Counter(run.cell for run in runs).values()
    return number_of_trials(counts) if counts else ""


def rows_section(
    experiment: Experiment, caption: str, header: Sequence[str], names: int, rows: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return a table of strings for the template; the first `names` columns name the row."""
    return {
        "template": "sections/rows.html.j2",
        "name": experiment.name,
        "title": experiment.title,
        "caption": caption,
        "header": list(header),
        "names": names,
        "rows": [list(row) for row in rows],
    }
