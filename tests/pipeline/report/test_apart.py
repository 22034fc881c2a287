"""The shipped runs of another configuration on the page, and drawings in addresses."""

from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.apart import read_apart
from mdpu.pipeline.report.html import figure
from mdpu.pipeline.report.page import environment

SHIPPED = REPOSITORY / "results/reference"


@pytest.mark.slow
def test_what_is_shown_apart_are_the_shipped_tables_and_figures():
    apart = read_apart(Plan(load_config([REPOSITORY / "config/reference.yaml"])))
    kept = read_csv(SHIPPED / "own-split/comparison.csv")
    run = apart.comparison[apart.comparison["verdict"] != "not run"].reset_index(drop=True)
    columns = ["cell", "reading", "mean", "published_mean", "verdict"]
    pd.testing.assert_frame_equal(run[columns], kept[columns], check_dtype=False)
    names = [section["name"] for section in apart.sections()]
    assert names[:4] == [f"own-split-table{number}" for number in (2, 3, 4, 5)]
    assert {"own-split-own-cifar-10", "own-split-own-svhn"} < {*names}
    assert names[-2:] == ["own-split-figure3", "own-split-figure4"]


def test_a_plan_without_another_configuration_shows_nothing_apart():
    assert read_apart(Plan(load_config())) is None


def text_of(element):
    """Return the text of an element without blanks, which matplotlib has between parts that it places itself."""
    return "".join("".join(element.itertext()).split())


@pytest.mark.parametrize("svg", sorted(SHIPPED.glob("figures/*.svg")), ids=lambda path: path.stem)
def test_a_drawing_in_an_address_is_the_drawing(svg):
    """It has the same texts and as many shapes; coordinates are rounded, and no more than half is left of curves."""
    shown = figure(svg)
    kind, _, address = environment().from_string("{{ image }}").render(image=shown["image"]).partition(",")
    assert kind == "data:image/svg+xml" and not {*' "<>#&'} & {*address}
    before, after = (ElementTree.fromstring(text) for text in (svg.read_bytes(), unquote(address)))
    for tag in ("text", "path", "use", "image"):
        own, new = (tree.iter(f"{{http://www.w3.org/2000/svg}}{tag}") for tree in (before, after))
        assert [*map(text_of, own)] == [*map(text_of, new)]
    assert len(address) < svg.stat().st_size
