"""Files that no list holds: what went in is what the account says, or a sentence says what to
do.
"""

import csv
import gzip
import importlib.util
import io
import os
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from PIL import Image

from mdpu.errors import UserError
from mdpu.own.group_names import NO_GROUP
from mdpu.own.groups import read_groups
from mdpu.own.pictures import PICTURES, UNREAD
from mdpu.own.values import GAPS

TRIES = settings(
    max_examples=int(os.environ.get("MDPU_TRIES", "60")), deadline=None, derandomize=True
)
TRIES = settings(TRIES, suppress_health_check=[*HealthCheck])
LETTERS = "abcXYZ019 äßéﬁ-_.,;|'\"/#%?\u00a0ñ日"
PARENTS = (
    "",
    "one",
    "two",
    "two/deep",
    "Unlabelled",
    "unlabeled/x",
    ".hidden",
    "@eaDir",
    "one/.cache",
)
WORDS = st.text(LETTERS, min_size=1, max_size=6).filter(lambda text: text.strip(" \u00a0"))
SIGNS = {".": ",", ",": "."}


def is_name(text):
    return _plain(text).casefold() not in {*NO_GROUP, *GAPS}


def _plain(text):
    return unicodedata.normalize("NFC", text.strip())


@st.composite
def tables(draw):
    """A table as a list of columns with their true values and texts, its groups, and how it is
    written.
    """
    names = draw(st.lists(WORDS.filter(is_name), min_size=2, max_size=5, unique_by=_plain))
    sizes = [draw(st.integers(1, 3)) for _ in names]
    teams = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
    teams += [""] * draw(st.integers(1, 5))
    blanks = draw(st.booleans())
    if blanks:
        teams = [name and name + " " * (row % 2) for row, name in enumerate(teams)]
    decimal = draw(st.sampled_from([".", ","]))
    others = st.lists(
        WORDS.filter(lambda text: _plain(text) != "team"), min_size=1, max_size=4, unique_by=_plain
    )
    columns = {}
    for name in draw(others):
        kind = draw(st.sampled_from(sorted(WRITERS)))
        columns[name.strip()] = (kind, *WRITERS[kind](draw, len(teams), decimal))
    return {
        "teams": teams,
        "columns": columns,
        "decimal": decimal,
        "sep": draw(st.sampled_from([",", ";", "\t", "|"])),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "cp437"])),
        "suffix": draw(st.sampled_from([".csv", ".txt", ".tsv", ".csv.gz", ".CSV"])),
        "end": draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        "above": draw(st.sampled_from([[], ["# LabThing 3"], ["Measured in May"]])),
        "blank": draw(st.booleans()),
        "place": draw(st.integers(0, len(columns))),  # of the column of groups
        "trailing": draw(st.booleans()),  # a separator at the end of each line
        "units": draw(st.booleans()),
    }


def _numbers(draw, count, decimal):
    values = draw(st.lists(st.integers(-99999, 99999), min_size=count, max_size=count))
    values = [value / 100 for value in values]
    return values, [str(value).replace(".", decimal) for value in values]


def _integers(draw, count, decimal):
    values = draw(st.lists(st.integers(-2000, 10**7), min_size=count, max_size=count))
    return [float(value) for value in values], [str(value) for value in values]


def _thousands(draw, count, decimal):
    values = draw(st.lists(st.integers(-(10**9), 10**9), min_size=count, max_size=count))
    values = [value / 100 for value in values]
    swap = {".": decimal, ",": SIGNS[decimal]}
    return values, [
        "".join(swap.get(letter, letter) for letter in f"{value:,.2f}") for value in values
    ]


def _shares(draw, count, decimal):
    values = draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count))
    return [value / 10 / 100 for value in values], [
        f"{value / 10}%".replace(".", decimal) for value in values
    ]


def _marked(draw, count, decimal):
    values, texts = _numbers(draw, count, decimal)
    mark = draw(st.sampled_from(["?", "NA", "-", "n.a.", "#DIV/0!", ""]))
    return [np.nan, *values[1:]], [mark, *texts[1:]]


def _dates(draw, count, decimal):
    days = draw(st.lists(st.dates(), min_size=count, max_size=count))
    return [np.datetime64(day) for day in days], [
        f"{day.year:04}-{day.month:02}-{day.day:02}" for day in days
    ]


def _money(draw, count, decimal):
    values, texts = _thousands(draw, count, decimal)
    sign = draw(st.sampled_from(["€", "$", "£", "CHF"]))
    is_before = draw(st.booleans())
    return values, [f"{sign} {text}" if is_before else f"{text} {sign}" for text in texts]


def _slashed(draw, count, decimal):
    days = draw(st.lists(st.dates(), min_size=count, max_size=count))
    return [np.datetime64(day) for day in days], [
        f"{day.day:02}/{day.month}/{day.year:04}" for day in days
    ]


def _texts(draw, count, decimal):
    words = st.text("abcdefg ;,|\t\"'\nä", min_size=1, max_size=8).map(lambda text: f"v{text}v")
    values = draw(st.lists(words, min_size=count, max_size=count))
    return values, values


WRITERS = {
    "number": _numbers,
    "integer": _integers,
    "thousands": _thousands,
    "share": _shares,
    "marked": _marked,
    "date": _dates,
    "slashed": _slashed,
    "money": _money,
    "text": _texts,
}


def has_units(table):
    """Return whether a row of units can be told: two columns or more hold numbers."""
    return sum(kind != "text" for kind, _, _ in table["columns"].values()) > 1


def write_delimited(table, folder):
    """Write a table as its description says; return its file."""
    stream = io.StringIO(newline="")
    for line in table["above"]:
        stream.write(line + table["end"])
    writer = csv.writer(
        stream, delimiter=table["sep"], lineterminator=table["end"], quoting=table["quoting"]
    )
    held = [[name, *texts] for name, (_, _, texts) in table["columns"].items()]
    held.insert(table["place"], ["team", *table["teams"]])
    if table["trailing"]:
        held.append([""] * len(held[0]))
    header, *rows = zip(*held, strict=True)
    writer.writerow(header)
    if table["blank"]:
        stream.write(table["end"])
    if table["units"] and has_units(table):
        writer.writerow(["cm" if name in table["columns"] else "" for name in header])
    writer.writerows(rows)
    data = stream.getvalue().encode(table["encoding"], errors="replace")
    path = folder / f"own{table['suffix']}"
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def check(data, table, encodable=True, tolerance=0, hides_units=False):
    """Hold the account, the rows and the groups against what was written.

    Where a wrong encoding hides what numbers are, a row of units may be taken for one of values.
    """
    account = data.account
    assert account.rows == len(data.rows) == len(data.groups)
    more = account.rows - len(table["teams"])
    assert more == 0 or (more == 1 and hides_units)
    counts = Counter(_plain(name) for name in table["teams"] if name)
    if encodable:
        assert account.groups == len(counts) == len(data.names)
        assert Counter(data.report.sizes) == Counter(counts.values())
        assert [*data.rows] == [*table["columns"]]
        assert account.names_written == len({name for name in table["teams"] if name})
    assert len(account.columns) == len(table["columns"]) + 1
    if not encodable:
        return
    for name, (kind, values, _) in table["columns"].items():
        column = data.rows[name]
        if kind == "text":
            assert column.tolist() == [value.strip() for value in values]
        elif kind in ("date", "slashed"):
            assert (column.to_numpy().astype("M8[D]") == np.array(values, "M8[D]")).all()
        else:
            numbers = column.to_numpy(np.float64)
            wanted = np.array(values, float)
            assert np.allclose(numbers, wanted, rtol=tolerance, atol=0, equal_nan=True), name


@TRIES
@given(tables())
def test_a_delimited_table_is_what_its_account_says_or_ends_in_a_sentence(table):
    with tempfile.TemporaryDirectory() as folder:
        path = write_delimited(table, Path(folder))
        whole = "".join(
            [
                *table["teams"],
                *table["columns"],
                *(text for own in table["columns"].values() for text in own[2]),
            ]
        )
        encodable = (
            whole.encode(table["encoding"], errors="replace").decode(table["encoding"]) == whole
        )
        guessed = table["encoding"] == "cp437"  # which nobody can tell from Windows-1252
        try:
            data = read_groups(path, "team")
        except UserError as error:
            event("refused")
            assert len(str(error).splitlines()) == 1
        else:
            event("read")
            misread = guessed and not whole.isascii()
            hides_units = misread and table["units"]
            check(data, table, encodable and not misread, hides_units=hides_units)
        encoding = table["encoding"]
        options = {
            "sep": table["sep"],
            "decimal": table["decimal"],
            "encoding": encoding,
            "dates": "day-first",
        }
        if encodable:  # else two names may have become one
            check(read_groups(path, "team", **options), table)


@TRIES
@given(
    tables(), st.sampled_from([".parquet", ".xlsx"]), st.sampled_from(["int64", "text", "float"])
)
def test_a_table_with_types_is_what_its_account_says(table, suffix, ids):
    if suffix == ".xlsx" and not importlib.util.find_spec("openpyxl"):
        return
    frame = pd.DataFrame({name: values for name, (_, values, _) in table["columns"].items()})
    if suffix == ".xlsx" and any(
        kind in ("date", "slashed") for kind, _, _ in table["columns"].values()
    ):
        return  # Excel has no dates before 1900
    teams = [name or None for name in table["teams"]]
    if ids != "text":
        known = {_plain(name): 10**15 + place for place, name in enumerate(filter(None, teams))}
        teams = [None if name is None else known[_plain(name)] for name in teams]
        table = table | {"teams": ["" if one is None else str(one) for one in teams]}
    kinds = {"int64": "Int64", "float": "float64", "text": object}
    frame["team"] = pd.Series(teams, dtype=kinds[ids])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"own{suffix}"
        frame.to_parquet(path) if suffix == ".parquet" else frame.to_excel(path, index=False)
        # which has 16 digits
        check(read_groups(path, "team"), table, tolerance=1e-15 * (suffix == ".xlsx"))


@TRIES
@given(
    st.lists(
        st.tuples(
            st.sampled_from(PARENTS),
            st.sampled_from([*PICTURES, *UNREAD, ".txt", ".PNG", ".JPG", ""]),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_folder_is_what_its_account_says_or_ends_in_a_sentence(files):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "photos"
        elsewhere = Path(place) / "elsewhere"
        elsewhere.mkdir()
        names = []
        for number, (parent, suffix, linked) in enumerate(files):
            path = folder / parent / f"{number}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            target = elsewhere / path.name if linked else path
            is_picture = suffix.lower() in PICTURES
            if is_picture:
                Image.new("RGB", (4, 4), (number, 0, 0)).save(target, format="PNG")
            else:
                target.write_bytes(b"no picture")
            if linked:
                path.symlink_to(target)
            hidden = any(part.startswith((".", "@")) for part in Path(parent).parts)
            if is_picture and not hidden:
                names.append(parent)
        groups = {name for name in names if name and not name.lower().startswith("unlabel")}
        try:
            data = read_groups(folder)
        except UserError as error:
            assert len(str(error).splitlines()) == 1
            heic = any(suffix in (".heic", ".heif") for _, suffix, _ in files)
            assert heic or not groups or len(names) == sum(name in groups for name in names)
        else:
            account = data.account
            assert (
                account.files_seen
                == len(files)
                == account.files_read + sum(account.passed_over.values())
            )
            assert account.rows == account.files_read == len(names) == len(data.rows)
            assert account.groups == len(groups) and {*data.names} == groups
