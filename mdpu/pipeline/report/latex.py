"""Tables of strings as LaTeX, for booktabs, siunitx and adjustbox."""

from __future__ import annotations

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

    forms = [
        "" if place < names else _number_format([row[place] for row in rows])
        for place in range(len(header))
    ]
    shown = [
        [
            "" if _repeats(rows, line, place, names) else _cell(cell, forms[place])
            for place, cell in enumerate(row)
        ]
        for line, row in enumerate(rows)
    ]
    titles = [escape(text) for text in header]
    heads = (
        pd.MultiIndex.from_arrays([[escape(text) for text in over], titles])
        if over
        else pd.Index(titles)
    )
    styler = pd.DataFrame(shown, columns=heads, dtype=object).style.hide(axis="index")
    columns = [
        f"S[table-format={form}]" if form else "l" if place < names else "r"
        for place, form in enumerate(forms)
    ]
    body = styler.to_latex(
        column_format="".join(columns), hrules=True, siunitx=True, multicol_align="c"
    )
    numbers = [
        NUMBER.fullmatch(cell)
        for row in rows
        for cell, form in zip(row, forms, strict=True)
        if form
    ]
    facts = [
        sentence
        for sentence, group in ((UNCERTAIN, "deviation"), (DIVERGED, "diverged"))
        if any(number and number[group] for number in numbers)
    ]
    return latex_float(name, title, body, " ".join([note, *facts]).strip())


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
    return (
        f"{numbered[2].upper()}{numbered[3]} ({numbered[1]} of the paper){numbered[4]}"
        if numbered
        else title
    )


def escape(text: str) -> str:
    """Return text as LaTeX prints it."""
    return text.translate(_ESCAPED)


def _repeats(rows: Sequence[Sequence[str]], line: int, place: int, names: int) -> bool:
    """Return whether a column names the row, and does so as in the row above, like all columns
    before it.
    """
    return place < names and line > 0 and rows[line][: place + 1] == rows[line - 1][: place + 1]


def _number_format(cells: Sequence[str]) -> str:
    """Return siunitx's format of a column of numbers, such as ``+2.2(2)``, or an empty string if it
    holds others.

    Words without digits may stand between the numbers.
    """
    matches = [NUMBER.fullmatch(cell) for cell in cells]
    numbers = [number for number in matches if number]
    words = [cell for cell, number in zip(cells, matches, strict=True) if not number]
    if not numbers or re.search(r"\d", "".join(words)):
        return ""
    sign = "+" if any(number["sign"] for number in numbers) else ""
    whole = max(len(number["whole"].replace(",", "")) for number in numbers)
    decimals = max(len(number["decimals"] or "") for number in numbers)
    deviations = [
        number["deviation"].replace(".", "").lstrip("0")
        for number in numbers
        if number["deviation"]
    ]
    uncertain = f"({max(map(len, deviations)) or 1})" if deviations else ""
    return f"{sign}{whole}.{decimals}{uncertain}" if decimals else f"{sign}{whole}"


def _cell(text: str, form: str) -> str:
    """Return a cell of a column: a number as siunitx reads it, or text, in braces among numbers."""
    bold = r"\bfseries " if isinstance(text, Best) else ""
    number = NUMBER.fullmatch(text) if form else None
    if number is None:
        return bold + (f"{{{escape(text)}}}" if form else escape(text))
    value = re.sub(r" \(.*", "", text).replace(",", "").replace("±", r"\pm")
    return (
        bold
        + value
        + (rf"{{\rlap{{\textsuperscript{{{number['diverged']}}}}}}}" if number["diverged"] else "")
    )
