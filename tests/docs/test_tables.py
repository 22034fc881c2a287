"""The tables of the documents are what docs/tables.py makes of results/reference."""

from __future__ import annotations

import re
import sys

import pytest

from mdpu.pipeline.files import REPOSITORY


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(REPOSITORY / "docs"))
    import tables

    yield tables
    sys.path.remove(str(REPOSITORY / "docs"))


def test_the_documents_have_the_tables_of_the_rows(script):
    """If not, run `python docs/tables.py`."""
    made, used = script.tables(), set()
    for name in script.DOCUMENTS:
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        used |= set(re.findall(r"<!-- table: ([a-z0-9-]+) -->", text))
        assert script.written(text, made) == text, name
    assert used == made.keys()


def test_a_number_comes_from_its_row(script):
    """Other rows, other numbers."""
    moved = {key: (mean - 17.7, deviation) for key, (mean, deviation) in script.cells().items()}
    axes = {"tuple_size": 2, "prior": "0.5", "method": "relu"}
    assert script.shown(script.cells(), axes) == "84.6 ± 2.0"
    assert script.shown(moved, axes) == "66.9 ± 2.0"
    assert script.shown(script.cells(), {**axes, "source": "paper"}) == "89.0 ± 0.6"
