"""What a run has come to: verdicts, what differs from the last time, and where the report is."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline.files import check, recording, write_text
from mdpu.pipeline.outcome import (
    _since,
    _verification,
    compare_results,
    compare_shipped,
    describe_difference,
    is_current,
)

KEY = {
    "dataset": "mnist",
    "variant": "base",
    "tuple_size": 2,
    "law": "dominant",
    "n": 30,
    "method": "abs",
    "loss": "logistic",
}


def cell(prior):
    return f"mnist/base/m2/n30/prior{prior}/abs/logistic"


@pytest.fixture
def results(tmp_path):
    """Write a folder of results from means and verdicts by prior, and return it."""

    def write(name, means, verdicts=()):
        folder = tmp_path / name
        folder.mkdir()
        rows = [{**KEY, "prior": prior, "mean": mean} for prior, mean in means.items()]
        pd.DataFrame(rows).to_csv(folder / "summary.csv", index=False)
        if verdicts:
            table = [{"cell": cell(prior), "verdict": verdict} for prior, verdict in verdicts.items()]
            pd.DataFrame(table).to_csv(folder / "comparison.csv", index=False)
        return folder

    return write


def test_flips_moves_and_news_are_counted(results):
    before = results("a", {0.4: 90.0, 0.5: 80.0, 0.7: 60.0}, {0.4: "close", 0.5: "differs", 0.6: "not run"})
    after = results("b", {0.4: 90.0, 0.5: 81.5, 0.6: 70.0}, {0.4: "close", 0.5: "reproduced", 0.6: "close"})
    difference = compare_results(before, after)
    assert difference.flips == {("differs", "reproduced"): [cell(0.5)]}
    assert (difference.new, difference.gone, difference.same) == (1, 1, 1)
    assert difference.moved.to_dict() == {cell(0.5): 1.5}
    assert str(difference) == (
        "1 verdict changed (1 from differs to reproduced), 1 number moved, by at most 1.50 points, "
        "1 number new, 1 number gone"
    )
    assert describe_difference(before, after)[1:] == [
        "differs -> reproduced:",
        f"  {cell(0.5)}",
        "moved:",
        f"  {cell(0.5)} by 1.50 points",
    ]


def test_equal_results_do_not_differ(results):
    same = results("a", {0.4: 90.0, 0.5: float("nan")})
    difference = compare_results(same, same)
    assert str(difference) == "nothing changed"
    assert difference.same == 2


@pytest.mark.parametrize("keep", [10, 60, 100])
def test_what_the_last_report_said_is_compared_unless_it_is_broken(results, keep):
    here = results("a", {0.4: 90.0, 0.5: 80.0})
    kept = here / "reported"
    assert _since(here, kept) == "this is the first report here"
    assert _since(here, kept).endswith(" UTC: nothing changed")
    content = (kept / "summary.csv").read_bytes()
    (kept / "summary.csv").write_bytes(content[: len(content) * keep // 100])
    assert _since(here, kept).endswith(" UTC: nothing changed") == (keep == 100)
    assert (kept / "summary.csv").read_bytes() == content


def test_rows_and_page_that_are_shipped_are_compared_up_to_rounding_and_time(tmp_path):
    runs = [{**KEY, "prior": 0.5, "seed": seed, "accuracy": 80 + seed / 7} for seed in (1, 2, 3)]
    pd.DataFrame(runs).to_csv(tmp_path / "runs.csv", index=False)
    made = "<code>results/a/config/0f1e.yaml</code>\n<p class=a data-varies>Made on <b>Monday</b>\nat 7.</p>"
    (tmp_path / "report.html").write_text(f"<p>80.2</p>{made}")
    shipped = tmp_path / "reference"
    shipped.mkdir()
    rows = pd.DataFrame(runs[:2])
    rows.drop(columns="law").round(3).to_csv(shipped / "runs.csv", index=False)  # as they were before other laws
    with pytest.raises(UserError, match=r"reference/report\.html could not be read"):
        compare_shipped(tmp_path, shipped)
    made = made.replace("0f1e", "2d3c").replace("<b>Monday</b>\nat 7", "Tuesday")
    (shipped / "report.html").write_text(f"<p>80.2</p>{made}")
    said, same = compare_shipped(tmp_path, shipped)
    assert said.startswith("2 of 2 shipped rows of these runs are the same to the third decimal; ")
    assert (said.endswith("; the page is the shipped one, but for when it was made"), same) == (True, True)
    rows.assign(accuracy=[80.143, 80.3]).to_csv(shipped / "runs.csv", index=False)
    (shipped / "report.html").write_text(f"<p>80.3</p>{made}")
    said, same = compare_shipped(tmp_path, shipped)
    assert "the third decimal; 1 differ; the page is another than the shipped one" in said
    assert not same


def test_cells_outside_their_tolerance_are_listed(tmp_path):
    cells = [{**KEY, "prior": "0.5", "mean": mean, "mean_expected": 81.547, "tolerance": 1.9} for mean in (76.9, None)]
    facts = {"confirmed": False, "within": 16, "cells": 18, "not_run": 0, "outside": cells}
    (tmp_path / "verification.json").write_text(json.dumps(facts))
    lines, confirmed = _verification(tmp_path / "verification.json")
    assert not confirmed
    assert lines == [
        "expected numbers NOT confirmed: 16 of 18 cells within tolerance",
        f"  {cell(0.5)}: 76.90 % instead of 81.55 ± 1.90 %",
        f"  {cell(0.5)}: no number instead of 81.55 ± 1.90 %",
    ]


# Keys of a crate that its contexts define: RO-Crate 1.1 all but `sha256`, which is a term of Workflow Run Crate. A
# validator refuses other keys. Look a new one up in https://w3id.org/ro/crate/1.1/context before it is added here.
DEFINED = (
    "@id @type about actionStatus agent author conformsTo contentSize creator datePublished description encodingFormat "
    "endTime hasPart instrument license mainEntity mentions name object position programmingLanguage propertyID "
    "publisher result sha256 softwareVersion step unitText url value version workExample"
)
CONTEXTS = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]


def walk(crate, number):
    """Return entities of a crate, and the runs, splits and training commits of a number, from its metadata alone."""
    entities = {entity["@id"]: entity for entity in crate["@graph"]}

    def many(value):
        return value if isinstance(value, list) else [value]

    def makers(identifier):
        return [
            entity
            for entity in entities.values()
            if entity["@type"] == "CreateAction" and {"@id": identifier} in many(entity["result"])
        ]

    (summarized,) = makers(f"#{number}")
    runs, splits, commits = [], [], []
    for run in many(summarized["object"]):
        runs.append(entities[run["@id"]])
        (trained,) = makers(run["@id"])
        splits += [part["@id"] for part in many(trained["object"]) if part["@id"].startswith("splits/")]
        commits.append(entities[trained["instrument"]["@id"]]["softwareVersion"])
    return entities, runs, splits, commits


def test_a_crate_leads_from_a_number_to_runs_splits_and_commit(finished, tmp_path, monkeypatch):
    pytest.importorskip("rocrate")
    import zipfile

    from mdpu.pipeline.config import load_config
    from mdpu.pipeline.crate import write_crate
    from mdpu.pipeline.plan import Plan

    monkeypatch.chdir(finished.folder)
    plan = Plan(load_config([finished.folder / "config.yaml", finished.folder / "config" / "tiny.yaml"]))
    write_crate(plan, tmp_path / "tiny.crate.zip")
    with zipfile.ZipFile(tmp_path / "tiny.crate.zip") as archive:
        crate = json.loads(archive.read("ro-crate-metadata.json"))
        held = set(archive.namelist())
    number = "digits/base/m2/n60/prior0.5/abs/logistic"
    entities, runs, splits, commits = walk(crate, number)
    summary = pd.read_csv(finished.results / "summary.csv", dtype={"prior": str})
    mean = summary.query("tuple_size == 2 and prior == '0.5' and method == 'abs'")["mean"].item()
    assert entities[f"#{number}"]["value"] == pytest.approx(mean)
    assert sum(run["value"] for run in runs) / len(runs) == pytest.approx(mean)
    assert [run["name"] for run in runs] == [f"{number}/seed{seed}" for seed in (1, 2)]
    assert sorted(splits) == [f"splits/digits/base/m2/prior0.5/n60/seed{seed}.npz" for seed in (1, 2)]
    (manifest,) = (finished.results / "trained/digits/base/m2").glob("n60.*.json")
    facts = json.loads(manifest.read_text())
    assert set(commits) == {facts["trained"][0]["commit"]}
    assert all(len(entities[split]["sha256"]) == 64 for split in splits)
    assert crate["@context"] == CONTEXTS
    assert " ".join(sorted({key for entity in crate["@graph"] for key in entity})) == DEFINED
    assert {"report.html", "metrics.parquet", "workflow/Snakefile", *splits} <= held
    assert not [name for name in held if name.startswith(("runs/", "logs/", "checkpoints/")) or name.endswith(".seal")]


def test_a_page_is_current_as_long_as_the_results_that_it_shows_are(tmp_path):
    """A file of the clone may change, or be elsewhere after a move."""
    page, result, of_clone = (tmp_path / name for name in ("report.html", "table.csv", "versions.json"))
    of_clone.write_text("[]")
    write_text(result, "80")
    with recording():
        check(result), check(of_clone)
        write_text(page, "80")
    for change in (lambda: of_clone.write_text("[1]"), of_clone.unlink):
        change()
        assert is_current(page)
    write_text(result, "81")
    assert not is_current(page)
