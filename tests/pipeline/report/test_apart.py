"""The shipped runs of another configuration on the page, and drawings in addresses."""

from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config, merge
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.plan import AXES, Plan
from mdpu.pipeline.report.apart import apart_plan, read_apart
from mdpu.pipeline.report.html import figure
from mdpu.pipeline.report.page import apart_part, environment

SHIPPED = REPOSITORY / "results/reference"


@pytest.mark.slow
def test_what_is_shown_apart_are_the_shipped_tables_and_figures():
    apart = read_apart(Plan(load_config([REPOSITORY / "config/reference.yaml"])))
    kept = read_csv(SHIPPED / "own-split/comparison.csv")
    run = apart.comparison[apart.comparison["verdict"] != "not run"].reset_index(drop=True)
    columns = ["cell", "reading", "mean", "published_mean", "verdict"]
    pd.testing.assert_frame_equal(run[columns], kept[columns], check_dtype=False)
    sections = {section["name"].removeprefix("own-split-"): section for section in apart.sections()}
    shown = [
        "table2",
        "table3",
        "table4",
        "table5",
        "figure3",
        "figure4",
        "own-svhn",
        "own-svhn-resnet",
    ]
    cifar = ["own-cifar-10", "own-cifar-10-triples", "own-cifar-10-curves"]
    assert list(sections) == [*shown, *cifar, "forecasts"]
    beside = {name for name, section in sections.items() if section.get("elsewhere")}
    assert beside == {"own-cifar-10", "own-cifar-10-triples"}
    told = sections["forecasts"]
    runs = apart.runs.query("dataset == 'own-cifar-10'")
    assert {row["cell"] for row in told["rows"]} == {
        name.rpartition("/")[0] for name in runs["run"]
    }
    for place, score in enumerate(told["scores"]):
        cells = [row["told"][place] for row in told["rows"]]
        assert {cell["reading"] for cell in cells} == {score["reading"]}
        assert score["inside"] == sum(
            cell["low"] <= cell["accuracy"] <= cell["high"] for cell in cells
        )
        assert score["above"] == sum(cell["accuracy"] > cell["forecast"] for cell in cells)
    last_ten = {row["cell"]: row["told"][1]["accuracy"] for row in told["rows"]}
    shipped = {
        name.rpartition("/")[0]: value
        for name, value in runs[["run", "accuracy"]].itertuples(index=False)
    }
    assert last_ten == pytest.approx(shipped)


def test_a_plan_without_another_configuration_shows_nothing_apart():
    assert read_apart(Plan(load_config())) is None


@pytest.mark.parametrize(
    "changes", [{"shipped": None}, {"protocol": {"training": {"epochs": 50}}}, {"apart": "laws"}]
)
def test_what_is_shown_apart_does_not_depend_on_how_the_page_s_own_runs_are_trained(changes):
    reference = load_config([REPOSITORY / "config/reference.yaml"])
    plan = apart_plan(Plan(merge(reference, changes)))
    assert plan.config["name"] == changes.get("apart", "own-split")
    assert plan.cells and not any(map(plan.to_train, plan.cells))


@pytest.mark.slow
def test_a_cell_that_the_page_has_itself_is_not_shown_apart_too():
    """Laws have comparisons of their own with cells of Tables II to V."""
    reference = load_config([REPOSITORY / "config/reference.yaml"])
    plan = Plan(merge(reference, {"apart": "laws"}))
    apart = read_apart(plan)
    assert apart.plan.cells.keys() & plan.cells.keys()
    part = apart_part(apart, plan)
    names = set(part.runs["run"].str.rpartition("/")[0])
    assert names == apart.plan.cells.keys() - plan.cells.keys()
    assert not set(part.comparison["cell"]) & plan.cells.keys()
    assert len(part.metrics.groupby(list(AXES))) == len(part.runs)


def test_only_a_configuration_whose_runs_are_shipped_is_shown_apart():
    plan = Plan(merge(load_config(), {"apart": "quick"}))
    with pytest.raises(UserError, match="config key apart"):
        apart_plan(plan)


def text_of(element):
    """Return the text of an element without blanks, which matplotlib has between parts that it
    places itself.
    """
    return "".join("".join(element.itertext()).split())


@pytest.mark.parametrize("svg", sorted(SHIPPED.glob("figures/*.svg")), ids=lambda path: path.stem)
def test_a_drawing_in_an_address_is_the_drawing(svg):
    """It has the same texts and as many shapes; coordinates are rounded, and no more than half is
    left of curves.
    """
    shown = figure(svg)
    kind, _, address = (
        environment().from_string("{{ image }}").render(image=shown["image"]).partition(",")
    )
    assert kind == "data:image/svg+xml" and not {*' "<>#&'} & {*address}
    before, after = (ElementTree.fromstring(text) for text in (svg.read_bytes(), unquote(address)))
    for tag in ("text", "path", "use", "image"):
        own, new = (tree.iter(f"{{http://www.w3.org/2000/svg}}{tag}") for tree in (before, after))
        assert [*map(text_of, own)] == [*map(text_of, new)]
    assert len(address) < svg.stat().st_size
