"""The numbers that the documents print are those of results/reference, and these agree with one another."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from mdpu.evaluate.published import published_cells
from mdpu.experiment import AXES, CELL

REPOSITORY = Path(__file__).resolve().parent.parent
REFERENCE = REPOSITORY / "results" / "reference"
SMALLER = {"mnist": 10_000, "fashion-mnist": 10_000, "emnist-letters": 7_000, "emnist-letters-a-i": 7_000}
SIZES = {"pairs": 2, "triples": 3}
PRIORS = ("0.4", "0.5", "0.6")
LOSSES = ("logistic", "squared", "hinge", "ramp")
TOLD = {
    "0.30": "prior-minus-20",
    "0.40": "prior-minus-10",
    "0.45": "prior-minus-05",
    "0.50": "base",
    "0.55": "prior-plus-05",
    "0.60": "prior-plus-10",
    "0.70": "prior-plus-20",
}


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"prior": str})


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """Mean and deviation over the trials of every cell of the reference."""
    runs = pd.concat([read(path) for path in sorted(REFERENCE.glob("*/runs.csv"))])
    assert not runs.duplicated(list(AXES)).any()
    return runs.groupby(list(CELL))["accuracy"].agg(["mean", "std"])


def ours(cells, dataset, size, prior, method, loss="logistic", variant="base"):
    key = {"dataset": dataset, "variant": variant, "tuple_size": SIZES[size], "n": SMALLER[dataset]}
    return cells.loc[tuple({**key, "prior": prior, "method": method, "loss": loss}[axis] for axis in CELL)]


def theirs(dataset, size, prior, method):
    cells = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    stated = dataset.removesuffix("-a-i")
    cell = cells.loc[stated, SIZES[size], SMALLER[dataset], prior, method]
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


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (("pairs, 0.4", "0.6"), [("mnist", size, prior) for size in SIZES for prior in PRIORS]),
        (
            ("Fashion-MNIST, pairs",),
            [
                (dataset, size, "0.5")
                for dataset in ("fashion-mnist", "emnist-letters", "emnist-letters-a-i")
                for size in SIZES
            ],
        ),
    ],
    ids=["MNIST", "other datasets"],
)
def test_the_tables_of_methods(cells, header, columns):
    method = None
    for name, *values in table("docs/findings.md", *header):
        method = method if name == "paper" else name.strip("`")
        for column, text in zip(columns, values, strict=True):
            expected = theirs(*column, method) if name == "paper" else ours(cells, *column, method)
            assert_says(text, *expected, (method, column))


def test_the_table_of_losses(cells):
    for size, method, *values in table("docs/findings.md", *LOSSES):
        for loss, text in zip(LOSSES, values, strict=True):
            assert_says(text, *ours(cells, "mnist", size, "0.5", method.strip("`"), loss), (size, method, loss))


def test_the_table_of_told_priors(cells):
    for size, method, *values in table("docs/findings.md", "told pi_+"):
        for variant, text in zip(TOLD.values(), values, strict=True):
            where = size, method, variant
            assert_says(text, *ours(cells, "mnist", size, "0.5", method.strip("`"), variant=variant), where)


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in REFERENCE.glob("*/comparison.csv")))
def test_comparisons_are_of_the_runs_beside_them_and_of_the_published_cells(cells, folder):
    published = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    for row in read(REFERENCE / folder / "comparison.csv").to_dict("records"):
        key = {**row, "variant": "base", "loss": "logistic"}
        mean, std = cells.loc[tuple(key[axis] for axis in CELL)]
        assert row["mean"] == pytest.approx(mean, abs=1e-3), row
        assert row["std"] == pytest.approx(std, abs=1e-3, nan_ok=True), row
        cell = published.loc[row["published_dataset"], row["tuple_size"], row["n"], row["prior"], row["method"]]
        assert (row["published_mean"], row["published_std"]) == (cell["published_mean"], cell["published_std"]), row
        assert row["difference"] == pytest.approx(row["mean"] - row["published_mean"], abs=1e-3), row
