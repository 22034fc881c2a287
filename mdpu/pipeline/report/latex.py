"""Tables as LaTeX, for booktabs and siunitx: in pieces that fit one or two columns of a paper, with labels."""

from __future__ import annotations

import itertools
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

# Points. A column of an article in two columns has 229.5, the text of one in one column 345.
COLUMN, TEXT = 226.0, 345.0
SEPARATION = 2.5  # on each side of a column
WIDEST = 120.0  # a column of text that needs more is broken into lines
LINES = 42  # of one table; a page has room for 50 and a caption
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


class Best(str):
    """A cell in bold."""


def latex_tables(
    name: str,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: int = 1,
    groups: int = 0,
    over: Sequence[str] | None = None,
    note: str = "",
) -> str:
    """Return a table of strings as one or more tables of LaTeX.

    Each fits the text of an article in one column, and a column of one in two columns, or both if it is a ``table*``.
    What is too wide or too high becomes several tables.

    Parameters
    ----------
    name : str
        Of the label: ``tab:name``, or ``tab:name-1`` and so on.
    title : str
        Caption.
    header : sequence of str
        Titles of the columns.
    rows : sequence of sequence of str
        Cells, bold if they are `Best`. A column of numbers becomes one of siunitx. They may have thousands
        commas, a deviation behind ± and a number of diverged trials in brackets; words may stand between them.
    names : int
        How many columns name a row, those of `groups` included; each piece repeats them.
    groups : int
        How many of these become lines of their own, where their value changes.
    over : sequence of str, optional
        What stands above each column. Neighbours below one heading stay together.
    note : str
        A sentence below the table.

    Returns
    -------
    str
        For a document that loads booktabs and siunitx (version 3).
    """
    heads = ["" for _ in header] if over is None else over
    fixed = list(range(groups, names))
    pieces = [
        ([*fixed, *columns], part)
        for columns in _columns(header, heads, rows, names, fixed)
        for part in _parts(rows, groups)
    ]
    tables = []
    for place, (columns, part) in enumerate(pieces, 1):
        several = len(pieces) > 1
        label = f"{name}-{place}" if several else name
        caption = f"{title} (part {place} of {len(pieces)})" if several else title
        tables.append(_table(label, caption, header, heads, part, columns, names, groups, note))
    return "% needs \\usepackage{booktabs,siunitx}\n" + "\n".join(tables)


def latex_float(
    label: str, title: str, columns: str, lines: Sequence[str], wide: bool, note: str = "", setup: str = ""
) -> str:
    """Return lines of LaTeX as a table with caption and label; a `wide` one spans the columns of a page.

    `setup` is what the table alone sets.
    """
    environment = "table*" if wide else "table"
    below = [rf"\par\smallskip {escape(note)}"] if note else []
    return "\n".join(
        [
            rf"\begin{{{environment}}}",
            r"\centering\sloppy",
            latex_caption(title),
            rf"\label{{tab:{label}}}",
            rf"\footnotesize\setlength{{\tabcolsep}}{{{SEPARATION}pt}}",
            *([setup] if setup else []),
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            *below,
            rf"\end{{{environment}}}",
            "",
        ]
    )


def latex_caption(title: str) -> str:
    """Return the caption of a table, which LaTeX numbers itself: the paper's number goes behind its title."""
    numbered = re.fullmatch(r"(Table [IVX]+): (\w)([^.]*)(.*)", title, re.DOTALL)
    if numbered:
        title = f"{numbered[2].upper()}{numbered[3]} ({numbered[1]} of the paper){numbered[4]}"
    return rf"\caption{{{escape(' '.join(title.split()))}}}"


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # behind the end of a row it would begin an option
    "*": "{*}",  # likewise
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
}
_ACCENTS = dict(
    zip("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327", "`'^~=u.\"rHvc", strict=True)
)


def escape(text: str) -> str:
    """Return text as LaTeX prints it with any engine and font; a character that it lacks becomes its code point."""
    return "".join(map(_escaped, unicodedata.normalize("NFC", text)))


def _escaped(character: str) -> str:
    if character in _LATEX:
        return _LATEX[character]
    if " " <= character <= "~":
        return character
    parts = unicodedata.normalize("NFD", character)
    if len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS:
        return f"\\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"(U+{ord(character):04X})"


# -- pieces -------------------------------------------------------------------------------------------


def _columns(
    header: Sequence[str], over: Sequence[str], rows: Sequence[Sequence[str]], names: int, fixed: Sequence[int]
) -> list[list[int]]:
    """Return the columns behind the names, split so that each piece is narrow enough and all are about as wide."""
    blocks = [
        list(members)
        for _, members in itertools.groupby(range(names, len(header)), key=lambda place: over[place] or place)
    ]
    for count in range(1, len(blocks) + 1):
        size = -(-len(blocks) // count)
        split = [list(itertools.chain(*blocks[start : start + size])) for start in range(0, len(blocks), size)]
        if all(_total(header, rows, [*fixed, *columns]) <= TEXT for columns in split):
            break
    return split


def _total(header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int]) -> float:
    """Return how wide a table of these columns is, in points."""
    widths = [_width_of_column(header[place], [row[place] for row in rows]) for place in columns]
    return sum(widths) + 2 * SEPARATION * (len(columns) - 1)


def _width_of_column(title: str, cells: Sequence[str]) -> float:
    form = _number_format(cells)
    body = _width_of_number(form) if form else min(WIDEST, max(map(_width, cells), default=0.0))
    return max(body, *(_width(line) for line in _heading_lines(title, cells)))


def _width_of_number(form: str) -> float:
    """Return how wide a column of numbers of this format is; its digits are counted in the format."""
    return sum(
        4.25 * int(part) if part.isdigit() else {"+": 6.7, ".": 2.4}.get(part, 3.4)
        for part in re.findall(r"\d+|\D", form)
    )


def _width(text: str) -> float:
    """Return about how many points a text takes at 8 pt in Computer Modern."""
    return sum(
        6.0 if letter.isupper() or letter in "mwMW%" else 3.0 if letter in " .,:;()-il" else 4.2 for letter in text
    )


def _heading_lines(title: str, cells: Sequence[str]) -> list[str]:
    """Return the lines of a column's heading, which are broken where the column is narrower."""
    return textwrap.wrap(title, max([5, *map(len, cells)]), break_long_words=False) or [""]


def _parts(rows: Sequence[Sequence[str]], groups: int) -> list[list[Sequence[str]]]:
    """Return the rows in pieces of at most `LINES` lines, broken where the first group changes if that can be."""
    stretches: list[list[Sequence[str]]] = []
    for _, members in itertools.groupby(rows, key=lambda row: row[0] if groups else None):
        stretch = list(members)
        count = -(-_lines(stretch, groups) // LINES)
        size = -(-len(stretch) // count)
        stretches += [stretch[start : start + size] for start in range(0, len(stretch), size)]
    parts: list[list[Sequence[str]]] = [[]]
    for stretch in stretches:
        if parts[-1] and _lines([*parts[-1], *stretch], groups) > LINES:
            parts.append([])
        parts[-1] += stretch
    return parts


def _lines(rows: Sequence[Sequence[str]], groups: int) -> int:
    return sum(1 + len(list(_new_groups(rows, place, groups))) for place in range(len(rows)))


def _new_groups(rows: Sequence[Sequence[str]], place: int, groups: int) -> Iterator[tuple[int, str]]:
    """Yield level and title of the groups that begin at a row; a group begins anew below one that does."""
    row = rows[place]
    for level in range(groups):
        if row[level] and (place == 0 or row[: level + 1] != rows[place - 1][: level + 1]):
            yield level, row[level]


# -- one table ----------------------------------------------------------------------------------------


def _table(
    label: str,
    title: str,
    header: Sequence[str],
    over: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: Sequence[int],
    names: int,
    groups: int,
    note: str,
) -> str:
    """Return one table; arguments as for `latex_tables`, with the `columns` that it has."""
    formats = {place: _number_format([row[place] for row in rows]) for place in columns if place >= names - 1}
    lines, total = _heading(header, over, rows, columns, names, formats), _total(header, rows, columns)
    for place, row in enumerate(rows):
        for level, group in _new_groups(rows, place, groups):
            style = (r"\textbf", r"\textit")[level]
            lines += [r"\midrule"] if level == 0 else []
            side = "l" if 1.15 * _width(group) <= total else _paragraph(total)  # bold letters are wider
            lines.append(rf"\multicolumn{{{len(columns)}}}{{@{{}}{side}@{{}}}}{{{style}{{{escape(group)}}}}} \\")
        if place == 0 and not groups:
            lines.append(r"\midrule")
        lines.append(" & ".join(_cell(row[column], formats.get(column, "")) for column in columns) + r" \\")
    shown = [NUMBER.fullmatch(row[column]) for row in rows for column in columns if formats.get(column)]
    facts = [
        sentence
        for sentence, group in ((UNCERTAIN, "deviation"), (DIVERGED, "diverged"))
        if any(number and number[group] for number in shown)
    ]
    spec = "".join(
        _column_type(formats.get(column, ""), [row[column] for row in rows], column < names) for column in columns
    )
    return latex_float(
        label, title, spec, lines, total > COLUMN, " ".join([note, *facts]).strip(), SETUP if "S" in spec else ""
    )


def _heading(
    header: Sequence[str],
    over: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: Sequence[int],
    names: int,
    formats: dict[int, str],
) -> list[str]:
    """Return the head's lines: what stands above columns with a rule below it, if anything does, and their titles."""
    lines = []
    if any(over[column] for column in columns):
        spans, rules, edge = [], [], 1
        for text, members in itertools.groupby(columns, key=lambda column: over[column]):
            count = len(list(members))
            spans.append(rf"\multicolumn{{{count}}}{{c}}{{{escape(text)}}}" if text else " & ".join([""] * count))
            rules += [rf"\cmidrule(lr){{{edge}-{edge + count - 1}}}"] if text else []
            edge += count
        lines = [" & ".join(spans) + r" \\", "".join(rules)]
    titles = []
    for column in columns:
        parts = [escape(line) for line in _heading_lines(header[column], [row[column] for row in rows])]
        side = "c" if formats.get(column) else "l" if column < names else "r"
        stack = r" \\ ".join(parts)
        titles.append(f"{{{stack}}}" if len(parts) == 1 else rf"{{\shortstack[{side}]{{{stack}}}}}")
    return [*lines, " & ".join(titles) + r" \\"]


def _number_format(cells: Sequence[str]) -> str:
    """Return siunitx's format of a column of numbers, such as ``+2.2(2)``, or an empty string if it holds others.

    Words without digits may stand between the numbers.
    """
    found = [NUMBER.fullmatch(cell) for cell in cells]
    numbers = [number for number in found if number]
    words = [cell for cell, number in zip(cells, found, strict=True) if not number]
    if not numbers or any(character.isdigit() for word in words for character in word):
        return ""
    sign = "+" if any(number["sign"] for number in numbers) else ""
    whole = max(len(number["whole"].replace(",", "")) for number in numbers)
    decimals = max(len(number["decimals"] or "") for number in numbers)
    deviations = [number["deviation"].replace(".", "").lstrip("0") for number in numbers if number["deviation"]]
    uncertain = f"({max(map(len, deviations)) or 1})" if deviations else ""
    return f"{sign}{whole}.{decimals}{uncertain}" if decimals else f"{sign}{whole}"


def _column_type(form: str, cells: Sequence[str], is_name: bool) -> str:
    if form:
        return f"S[table-format={form}]"
    if max(map(_width, cells), default=0.0) > WIDEST:
        return _paragraph(WIDEST)
    return "l" if is_name else "r"


def _paragraph(width: float) -> str:
    return rf">{{\raggedright\arraybackslash}}p{{{width:.0f}pt}}"


def _cell(text: str, form: str) -> str:
    """Return a cell of a column: a number as siunitx reads it, or text, in braces among numbers."""
    bold = r"\bfseries " if isinstance(text, Best) else ""
    number = NUMBER.fullmatch(text) if form else None
    if number is None:
        return bold + (f"{{{escape(text)}}}" if form else escape(text))
    value = number["sign"] + number["whole"].replace(",", "")
    value += f".{number['decimals']}" if number["decimals"] else ""
    value += rf" \pm {number['deviation']}" if number["deviation"] else ""
    return bold + value + (rf"{{\rlap{{\textsuperscript{{{number['diverged']}}}}}}}" if number["diverged"] else "")
