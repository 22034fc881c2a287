"""Equal trials of readings, and the file of verdicts, by the shipped runs of one dataset."""

import jsonschema
import numpy as np
import pytest

from mdpu.pipeline import trace
from mdpu.pipeline.config import load_config, merge
from mdpu.pipeline.evaluate.rejudge import reading_files, write_readings
from mdpu.pipeline.files import REPOSITORY, read_json
from mdpu.pipeline.plan import Plan


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readings")
    plan = Plan(merge(load_config(), {"datasets": ["mnist"], "experiments": ["table2"]}))
    files = [folder / name for name in ("readings.csv", "readings.json", "verdicts.json")]
    panel = write_readings(plan, reading_files(plan), *files)
    return panel, read_json(files[1]), read_json(files[2])


def test_readings_that_stand_beside_one_another_have_equal_trials(made):
    panel, facts, _ = made
    rows = [*facts["counts"], facts["best"], facts["literal"]]
    trials = {row["trials"] for row in rows if row}
    assert len(trials) == 1
    equal = panel.beside(panel.readings[:3])
    for counts in equal.counts.T:
        assert len(set(counts[counts > 0])) <= 1
    assert np.nanmax(equal.counts) <= panel.counts.max()


def test_the_verdicts_keep_their_schema_and_add_up(made):
    _, facts, verdicts = made
    jsonschema.validate(
        verdicts, read_json(REPOSITORY / "workflow" / "schemas" / "verdicts.schema.json")
    )
    for row in facts["counts"]:
        departure = row["reading"][row["choice"]]
        name = "protocol" if departure in ("last-ten", "with") else f"{row['choice']} {departure}"
        of_reading = [number for number in verdicts["numbers"] if number["reading"] == name]
        differing = [number for number in of_reading if number["verdict"] == "differs"]
        assert len(differing) == row["differs"]


def test_an_address_is_of_the_images_that_its_runs_are_of():
    """The letters are two datasets on the page, and a reading takes one of them."""
    shipped = read_json(REPOSITORY / "results" / "reference" / "verdicts.json")
    for row in shipped["numbers"]:
        cell = row["address"].removeprefix("#").rpartition("number=")[2]
        datasets = {run.partition("/")[0] for run in row["runs"]}
        assert datasets == {cell.partition("/")[0]}


def test_the_runs_of_a_verdict_can_be_traced(made):
    """A number under another reading, whose runs no experiment shows."""
    _, _, verdicts = made
    numbers = verdicts["numbers"]
    row = next(number for number in numbers if number["reading"] == "replacement without")
    assert (
        row["address"]
        == "#reading=training:replacement+without&number=mnist/base/m2/n10000/prior0.4/ure"
    )
    plan, (run,), _ = trace.find(row["runs"][0])
    assert plan.key(run) in plan.shipped
    assert len(row["runs"]) == row["trials"]
