"""Tables of strings as LaTeX, for booktabs, siunitx and adjustbox."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

PACKAGES = "% needs \\usepackage{booktabs,siunitx,adjustbox}\n"
NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[\d,]+)(?:\.(?P<decimals>\d+))?"
    r"(?: ± (?P<deviation>[\d.]+))?(?: \((?P<diverged>\d+) diverged\))?"
)
# Commas between thousands, bold numbers, and a superscript that takes no room.
SETUP = (
    r"\sisetup{group-separator={,},group-minimum-digits=4,text-series-to-math,reset-text-series=false,"
    r"table-align-text-after=false}"
)
UNCERTAIN = "Digits in brackets are the deviation in units of the last place."
DIVERGED = "A superscript counts the trials that diverged, which are left out."
_ESCAPED = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "[": "{[}",
        "*": "{*}",
    }
    | {"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$"}
)


class Best(str):
    """A cell in bold."""


def latex_rows(
    name: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    names: int = 1,
    over: Sequence[str] | None = None,
    note: str = "",
) -> str:
    """Return rows of strings as a table with the label ``tab:name``.

    The first `names` columns name a row, and show a value where it changes. A column of numbers,
    which may have thousands commas, a deviation behind ± and a number of diverged trials in
    brackets, becomes one of siunitx. Neighbours with the same text in `over` stand below one
    heading; `note` is a sentence below the table.
    """
    import pandas as pd

    forms = [""] * names
    columns = ["l"] * names
    for place in range(names, len(header)):
        form = _number_format([row[place] for row in rows])
        forms.append(form)
        columns.append(f"S[table-format={form}]" if form else "r")
    shown = []
    for line, row in enumerate(rows):
        cells = [_cell(text, form) for text, form in zip(row, forms, strict=True)]
        for place in range(_repeated(rows, line, names)):
            cells[place] = ""
        shown.append(cells)

    titles = [escape(text) for text in header]
    heads = pd.Index(titles)
    if over:
        heads = pd.MultiIndex.from_arrays([[escape(text) for text in over], titles])
    styler = pd.DataFrame(shown, columns=heads, dtype=object).style.hide(axis="index")
    body = styler.to_latex(
        column_format="".join(columns), hrules=True, siunitx=True, multicol_align="c"
    )
    return latex_float(name, title, body, " ".join([note, *_number_notes(rows, forms)]).strip())


def _number_notes(rows: Sequence[Sequence[str]], forms: Sequence[str]) -> list[str]:
    """Return sentences on how the numbers of a table are printed, if it has such numbers."""
    groups: set[str] = set()
    for row in rows:
        for text, form in zip(row, forms, strict=True):
            number = NUMBER.fullmatch(text) if form else None
            if number:
                groups.update(name for name, value in number.groupdict().items() if value)
    notes = []
    if "deviation" in groups:
        notes.append(UNCERTAIN)
    if "diverged" in groups:
        notes.append(DIVERGED)
    return notes


def latex_float(name: str, title: str, body: str, note: str = "") -> str:
    """Return a ``tabular`` as a table with caption and label, shrunk to the page where it is too
    wide or too high.
    """
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(_caption(title))}}}",
        rf"\label{{tab:{name}}}",
        SETUP,
        r"\begin{adjustbox}{max width=\linewidth,max totalheight=0.8\textheight}",
        body.strip(),
        r"\end{adjustbox}",
        *([rf"\par\smallskip\footnotesize {escape(note)}"] if note else []),
        r"\end{table*}",
    ]
    return PACKAGES + "\n".join(lines) + "\n"


def _caption(title: str) -> str:
    """Return the caption of a table, which LaTeX numbers itself: the paper's number goes behind its
    title.
    """
    title = " ".join(title.split())
    numbered = re.fullmatch(r"(Table [IVX]+): (\w)([^.]*)(.*)", title)
    if numbered is None:
        return title
    number, initial, name, rest = numbered.groups()
    return f"{initial.upper()}{name} ({number} of the paper){rest}"


def escape(text: str) -> str:
    """Return text as LaTeX prints it."""
    return text.translate(_ESCAPED)


def _repeated(rows: Sequence[Sequence[str]], line: int, names: int) -> int:
    """Return how many of the columns that name a row are the same as in the row above, from the
    first on.
    """
    if line == 0:
        return 0
    pairs = zip(rows[line][:names], rows[line - 1], strict=False)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)
    return len(list(same))


def _number_format(cells: Sequence[str]) -> str:
    """Return siunitx's format of a column of numbers, such as ``+2.2(2)``, or an empty string if it
    holds others.

    Words without digits may stand between the numbers.
    """
    numbers = [number for number in map(NUMBER.fullmatch, cells) if number]
    words = [cell for cell in cells if not NUMBER.fullmatch(cell)]
    if not numbers or re.search(r"\d", "".join(words)):
        return ""
    sign = "+" if any(number["sign"] for number in numbers) else ""
    whole = max(len(number["whole"].replace(",", "")) for number in numbers)
    decimals = max(len(number["decimals"] or "") for number in numbers)
    if not decimals:
        return f"{sign}{whole}"
    deviations = [number["deviation"] for number in numbers if number["deviation"]]
    digits = [len(deviation.replace(".", "").lstrip("0")) for deviation in deviations]
    uncertain = f"({max(digits) or 1})" if digits else ""
    return f"{sign}{whole}.{decimals}{uncertain}"


def _cell(text: str, form: str) -> str:
    """Return a cell of a column: a number as siunitx reads it, or text, in braces among numbers."""
    cell = escape(text)
    number = NUMBER.fullmatch(text) if form else None
    if number:
        cell = re.sub(r" \(.*", "", text).replace(",", "").replace("±", r"\pm")
        if number["diverged"]:
            cell += rf"{{\rlap{{\textsuperscript{{{number['diverged']}}}}}}}"
    elif form:
        cell = f"{{{cell}}}"
    return rf"\bfseries {cell}" if isinstance(text, Best) else cell
