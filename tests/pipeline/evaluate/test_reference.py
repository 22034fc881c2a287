"""The rows of results/reference agree with one another, and tables of the documents with the rows.

tests/docs/test_numbers.py compares the documents with what writes them; here their tables are read as a reader would.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import CELL

REFERENCE = REPOSITORY / "results" / "reference"
SMALLER = {"mnist": 10_000, "fashion-mnist": 10_000, "emnist-letters": 7_000, "emnist-letters-a-i": 7_000}
SIZES = {"pairs": 2, "triples": 3}
PRIORS = ("0.4", "0.5", "0.6")
COMPARED = [REFERENCE]


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"prior": str})


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """Mean and deviation over the trials of every cell."""
    return summarized(read(REFERENCE / "runs.csv"))


def summarized(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.groupby(list(CELL))["accuracy"].agg(["mean", "std"])


def ours(cells, dataset, size, prior, method, loss="logistic", variant="base", n=None):
    key = {"dataset": dataset, "variant": variant, "tuple_size": SIZES.get(size, size), "n": n or SMALLER[dataset]}
    return cells.loc[tuple({**key, "prior": prior, "method": method, "loss": loss}[axis] for axis in CELL)]


def theirs(dataset, size, prior, method, n=None):
    cells = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    stated = dataset.removesuffix("-a-i")
    cell = cells.loc[stated, SIZES[size], n or SMALLER[dataset], prior, method]
    return cell["published_mean"], cell["published_std"]


def table(document: str, *header: str) -> list[list[str]]:
    """Return the rows of the one Markdown table whose header has these words."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", (REPOSITORY / document).read_text(encoding="utf-8"), re.MULTILINE):
        first, _, *rows = block.splitlines()
        if all(word in first for word in header):
            found.append([[cell.strip() for cell in row.strip("|").split("|")] for row in rows])
    (rows,) = found
    return rows


def assert_says(text: str, mean: float, std: float, where: object) -> None:
    """Check that a document's number is this one, to the digits that it gives."""
    for said, value in zip(text.split(" ± "), (mean, std), strict=False):
        digits = len(said.partition(".")[2])
        assert abs(float(said) - value) <= 0.5001 * 10**-digits, where


def test_the_readmes_table(cells):
    rows = table("README.md", "accuracy in %", "ABS")
    for (name, prior, *own), (paper, _, *published) in zip(rows[::2], rows[1::2], strict=True):
        size, says = name.split(", ")
        assert (says, paper) == ("ours", "paper")
        for method, mine, printed in zip(("ure", "relu", "abs"), own, published, strict=True):
            assert_says(mine, *ours(cells, "mnist", size, prior, method), (size, prior, method))
            assert_says(printed, *theirs("mnist", size, prior, method), (size, prior, method))


BAGS_TITLES = {
    "MNIST": "mnist",
    "Fashion-MNIST": "fashion-mnist",
    "EMNIST-Letters": "emnist-letters",
    "EMNIST-Letters (A-I)": "emnist-letters-a-i",
}


@pytest.mark.parametrize(
    ("header", "columns", "n"),
    [
        *(
            ((f"| {title}, $n$ = {n:,} ",), [(dataset, size, prior) for size in SIZES for prior in PRIORS], n)
            for dataset, title, smaller, larger in (
                ("mnist", "MNIST", 10_000, 12_000),
                ("fashion-mnist", "Fashion-MNIST", 10_000, 12_000),
                ("emnist-letters", "EMNIST-Letters", 7_000, 8_000),
                ("emnist-letters-a-i", "EMNIST-Letters (A-I)", 7_000, 8_000),
            )
            for n in (smaller, larger)
        ),
        (
            ("Fashion-MNIST, pairs",),
            [
                (dataset, size, "0.5")
                for dataset in ("fashion-mnist", "emnist-letters", "emnist-letters-a-i")
                for size in SIZES
            ],
            None,
        ),
        *(
            ((f"| neighbours, {title} |",), [(dataset, size, prior) for size in SIZES for prior in PRIORS], None)
            for title, dataset in BAGS_TITLES.items()
        ),
    ],
    ids=[
        *(
            f"{name}, {size} n"
            for name in ("MNIST", "Fashion-MNIST", "letters", "A-I")
            for size in ("smaller", "larger")
        ),
        "at prior 0.5",
        *(f"neighbours, {title}" for title in BAGS_TITLES),
    ],
)
def test_the_tables_of_methods(cells, header, columns, n):
    method = None
    for name, *values in table("docs/explanation/findings.md", *header):
        method = method if name == "paper" else name.strip("`")
        for column, text in zip(columns, values, strict=True):
            expected = theirs(*column, method, n) if name == "paper" else ours(cells, *column, method, n=n)
            assert_says(text, *expected, (method, column))


def best_of(cells: pd.DataFrame, dataset: str, size: str, prior: str, n: int) -> pd.Series:
    """Return mean and deviation of the best method that neither learns from bags nor is a control, in a row."""
    row = cells.xs(
        (dataset, "base", SIZES[size], n, prior, "logistic"), level=[axis for axis in CELL if axis != "method"]
    )
    rivals = [name for name in row.index if not (name.startswith("bag-") or load_method(name).control)]
    return row.loc[row.loc[rivals, "mean"].idxmax()]


def assert_row_of_bags(cells, title: str, kind: str, values: list[str]) -> None:
    """Check a row of a table of bags, whose title names a dataset and n."""
    dataset, n = BAGS_TITLES[title.partition(", $n$ = ")[0]], int(title.partition(" = ")[2].replace(",", ""))
    paper = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"]).sort_index()
    for (size, prior), text in zip([(size, prior) for size in SIZES for prior in PRIORS], values, strict=True):
        if kind == "paper's best":
            row = paper.loc[dataset.removesuffix("-a-i"), SIZES[size], n, prior]
            expected = row.loc[row["published_mean"].idxmax(), ["published_mean", "published_std"]]
        elif kind == "others' best":
            expected = best_of(cells, dataset, size, prior, n)
        else:
            expected = ours(cells, dataset, size, prior, kind.strip("`"), n=n)
        assert_says(text, *expected, (title, kind, size, prior))


def test_the_table_of_bags(cells):
    title, rows = "", table("docs/explanation/findings.md", "| Bags |")
    assert len(rows) == 32
    for name, kind, *values in rows:
        title = name or title
        assert_row_of_bags(cells, title, kind, values)


@pytest.mark.parametrize(
    ("header", "variants"),
    [
        ("| bags, told |", ("prior-minus-10", "base", "prior-plus-10")),
        ("| bags, broken |", ("base", "broken-05", "broken-10", "broken-20")),
    ],
)
def test_the_tables_of_bags_in_other_variants(cells, header, variants):
    rows = table("docs/explanation/findings.md", header)
    assert len(rows) >= 10
    for size, method, *values in rows:
        for variant, text in zip(variants, values, strict=True):
            where = size, method.strip("`"), variant
            assert_says(text, *ours(cells, "mnist", size, "0.5", where[1], variant=variant), where)


def test_the_table_of_bags_against_n(cells):
    rows = table("docs/explanation/findings.md", "| bags, $n$ |")
    assert len(rows) == 8
    for size, method, *values in rows:
        for n, text in zip(range(2_000, 14_000, 2_000), values, strict=True):
            assert_says(text, *ours(cells, "mnist", size, "0.5", method.strip("`"), n=n), (size, method, n))


@pytest.mark.parametrize("folder", COMPARED, ids=lambda folder: folder.name)
def test_comparisons_are_of_the_runs_beside_them_and_of_the_published_cells(folder):
    cells = summarized(read(folder / "runs.csv"))
    published = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    for row in read(folder / "comparison.csv").to_dict("records"):
        key = {**row, "variant": "base", "loss": "logistic"}
        mean, std = cells.loc[tuple(key[axis] for axis in CELL)]
        assert row["mean"] == pytest.approx(mean, abs=1e-3), row
        assert row["std"] == pytest.approx(std, abs=1e-3, nan_ok=True), row
        cell = published.loc[row["published_dataset"], row["tuple_size"], row["n"], row["prior"], row["method"]]
        assert (row["published_mean"], row["published_std"]) == (cell["published_mean"], cell["published_std"]), row
        assert row["difference"] == pytest.approx(row["mean"] - row["published_mean"], abs=1e-3), row


@pytest.mark.parametrize("folder", COMPARED, ids=lambda folder: folder.name)
def test_the_packed_runs_are_those_of_the_rows(folder):
    """A run's recipe knows neither its dataset's name nor its variant's, so a row is one of the runs of its trial."""
    packed = pd.read_parquet(folder / "finished.parquet", columns=["fingerprint", "epoch", "accuracy"])
    last = packed[packed["epoch"] > 90].groupby("fingerprint")["accuracy"].mean() * 100
    rows = read(folder / "runs.csv")["accuracy"]
    assert set(rows.dropna().round(4)) <= set(last.round(4))
    assert len(last) <= len(rows)
