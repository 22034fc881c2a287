"""What differs from what was written is found along the way from the page to the images, and made anew."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from configs import config

from mdpu.pipeline.cache import Cache, Finished
from mdpu.pipeline.check import (
    BROKEN,
    CHANGED,
    EDITED,
    MISSING,
    ODD,
    STALE,
    UNSEALED,
    Finding,
    check_results,
    made_otherwise,
    repair,
)
from mdpu.pipeline.files import accept, read_json, recording, seal_path, write_json, write_text
from mdpu.pipeline.plan import Plan


@pytest.fixture
def chain(tmp_path, monkeypatch):
    """A page made from a table, made from histories, made from images outside of the results; by name."""
    monkeypatch.chdir(tmp_path)
    names = ["results/datasets/a.json", "results/x/histories/a.json", "results/x/table.json", "results/x/page.json"]
    paths = [Path(name) for name in names]
    write_json(paths[0], "images")
    for source, path in itertools.pairwise(paths):
        with recording():
            write_json(path, f"from {read_json(source)}")
    return dict(zip(("images", "histories", "table", "page"), paths, strict=True))


def found():
    return check_results(Path("results/x"))[1]


@pytest.mark.parametrize("name", ["images", "histories", "table", "page"])
@pytest.mark.parametrize("keep_time", [False, True])
def test_a_change_is_found_where_it_was_made_and_nowhere_else(chain, name, keep_time):
    path, times = chain[name], chain[name].stat()
    path.write_text('"edited"')
    if keep_time:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert found() == [Finding(path, CHANGED)]
    path.unlink()
    assert found() == [Finding(path, MISSING)]


def test_what_was_made_from_another_version_is_found(chain):
    write_json(chain["histories"], "another")
    assert found() == [Finding(chain["table"], STALE, chain["histories"])]


def test_an_edit_on_purpose_is_named_and_makes_stale_what_was_made_before_it(chain):
    chain["table"].write_text('"mine"')
    accept(chain["table"])
    assert found() == [Finding(chain["page"], STALE, chain["table"]), Finding(chain["table"], EDITED)]


def test_logs_and_temporary_files_are_no_results(chain):
    for name in ("logs/a.log", "benchmarks/a.tsv", "checkpoints/a.pt", ".page.host-1.json"):
        Path("results/x", name).parent.mkdir(exist_ok=True)
        Path("results/x", name).write_text("")
    assert found() == []


# -- making anew ----------------------------------------------------------------------------------


@pytest.fixture
def plan(chain):
    """A plan whose results the chain is; it has no splits."""
    layout = SimpleNamespace(results=Path("results/x"), images=lambda name: chain["images"].with_name(f"{name}.npz"))
    return SimpleNamespace(splits=[], datasets=["a"], layout=layout)


@pytest.mark.parametrize("what", ["broken", "sealed no more"])
def test_what_a_rule_made_and_is_not_whole_goes_with_its_seal(chain, plan, what):
    path = chain["table"]
    if what == "broken":
        path.write_text("broken")
    else:
        seal_path(path).unlink()
    (line,) = repair(plan, chain.values())
    assert line.startswith(f"{path} has ")
    assert line.endswith("it is made anew")
    assert not path.exists()
    assert not seal_path(path).exists()


def test_images_to_which_no_seal_leads_are_made_anew(chain, plan):
    """As where all seals are broken, or where a new selection finds the images of others broken."""
    for path in (*chain.values(), *map(seal_path, chain.values())):
        path.write_text("broken")
    repair(plan, chain.values())
    assert not any(path.exists() for path in chain.values())


def test_what_no_rule_made_is_named_and_left(chain, plan):
    Path("results/x/notes.txt").write_text("mine")
    accept(chain["page"])
    assert Finding(Path("results/x/notes.txt"), UNSEALED) in found()
    assert repair(plan, chain.values()) == []
    assert Path("results/x/notes.txt").exists()


def test_an_odd_file_hides_no_other(chain, plan):
    """A pipe in the place of a file, or a folder in that of a seal, is named beside all else that is wrong."""
    chain["table"].unlink()
    os.mkfifo(chain["table"])
    seal_path(chain["page"]).unlink()
    seal_path(chain["page"]).mkdir()
    chain["images"].write_text("broken")
    assert {finding.path: finding.what for finding in found()} == {
        chain["images"]: CHANGED,
        chain["table"]: ODD,
        chain["page"]: ODD,
    }


def test_a_finished_run_that_is_not_what_was_written_is_named_and_deleted(chain, plan):
    drawn = pd.DataFrame({"epoch": [1, 2], "accuracy": [0.5, 0.6]})
    recipe = {"method": "ure", "trial": "x", "settings": {"epochs": 2}}
    run = Finished.of(recipe, drawn, origin={}, split="", diagnostics={})
    cache = Cache(Path("results/cache"))
    cache.save(run)
    write_json(Path("results/x/trained/a.json"), {"runs": {"name": run.fingerprint}})
    assert found() == []
    path = cache.path(run.fingerprint)
    path.write_bytes(path.read_bytes()[:-40])
    assert found() == [Finding(path, BROKEN)]
    assert len(repair(plan, [])) == 1
    assert found() == [Finding(path, MISSING)]
    assert len(repair(plan, [])) == 1


def test_a_split_that_was_drawn_with_other_settings_is_made_anew(tmp_path):
    """As after a cluster's job that ended while nobody watched, and an edit of the protocol since."""
    plan = Plan(config(datasets=["flat"], results_dir=str(tmp_path / "results")))
    first, second = plan.splits[:2]
    for split, drawing in ((first, plan.drawing(first)), (second, {**plan.drawing(second), "overlap": False})):
        write_text(plan.layout.split(split), "drawn")
        write_json(plan.layout.split(split).with_suffix(".json"), {"drawing": drawing})
    assert {finding.path.with_suffix("") for finding in made_otherwise(plan)} == {
        plan.layout.split(second).with_suffix("")
    }
    assert len(repair(plan, [])) == 2
    assert plan.layout.split(first).exists()
    assert not plan.layout.split(second).exists()
