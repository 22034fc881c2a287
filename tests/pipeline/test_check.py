"""What differs from what was written is found along the way from the page to the images, and made anew."""

from __future__ import annotations

import base64
import itertools
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from configs import config

from mdpu.errors import UserError
from mdpu.pipeline.cache import RunStore
from mdpu.pipeline.check import (
    CHANGED,
    EDITED,
    MISSING,
    STALE,
    UNRECORDED,
    UNSEALED,
    Finding,
    bring_to_present,
    check_results,
    made_by_rules,
    mend,
    unrecorded,
)
from mdpu.pipeline.files import accept, read_json, write_json, write_table, write_text
from mdpu.pipeline.plan import Plan, Run, run_columns
from mdpu.pipeline.seals import recording, seal_path

RUNS = [Run("mnist", "base", 2, 100, "0.4", method, "logistic", seed) for method in ("abs", "ure") for seed in (1, 2)]


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


def test_all_is_compared_and_found_as_it_was_written(chain):
    assert check_results(Path("results/x")) == (4, [])


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


def test_what_has_no_seal_is_named_and_left(chain):
    Path("results/x/notes.txt").write_text("mine")
    assert found() == [Finding(Path("results/x/notes.txt"), UNSEALED)]
    plan = SimpleNamespace(runs=[], layout=SimpleNamespace(store=Path("results/x/runs")))
    assert mend(plan, found(), chain.values()) == []
    assert Path("results/x/notes.txt").exists()


@pytest.mark.parametrize("name", ["images", "histories", "table", "page"])
def test_what_lost_its_seal_is_named_and_made_anew_if_a_rule_made_it(chain, name):
    seal_path(chain[name]).unlink()
    assert found() == [Finding(chain[name], UNSEALED)]
    plan = SimpleNamespace(runs=[], layout=SimpleNamespace(store=Path("results/x/runs")))
    assert mend(plan, found(), chain.values()) == [f"{chain[name]} has lost its seal: it is made anew"]
    assert not chain[name].exists()


def test_a_damaged_seal_is_found(chain):
    seal = seal_path(chain["table"])
    seal.write_text(seal.read_text().replace("histories", "histoires"))
    assert found() == [Finding(chain["table"], CHANGED)]


def test_logs_and_temporary_files_are_no_results(chain):
    for name in ("logs/a.log", "benchmarks/a.tsv", "checkpoints/a.pt", ".page.host-1.json"):
        Path("results/x", name).parent.mkdir(exist_ok=True)
        Path("results/x", name).write_text("")
    assert found() == []


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no folder of results"):
        check_results(tmp_path / "x")


# -- making anew ----------------------------------------------------------------------------------


def history(run):
    return pd.DataFrame({**run_columns(run), "epoch": [1, 2], "risk": [0.1 * run.seed, float("nan")]})


@pytest.fixture
def plan(tmp_path):
    """A plan of one cohort that has run: finished runs, and histories with their provenance."""
    store, path = RunStore(tmp_path / "runs"), tmp_path / "histories" / "a.parquet"
    origin = {"commit": "abc", "device": "cpu"}
    kept = [store.save(run, history(run), f"print of {run.name}", origin) for run in RUNS]
    write_table(pd.concat(kept, ignore_index=True), path)
    facts = {
        "trained": [{**origin, "runs": [run.name for run in RUNS]}],
        "fingerprints": {run.name: f"print of {run.name}" for run in RUNS},
    }
    write_json(path.with_suffix(".json"), facts)
    layout = SimpleNamespace(store=store.folder, history=lambda name: path)
    return SimpleNamespace(
        runs=RUNS, layout=layout, store=store, cohort_of=lambda run: SimpleNamespace(name="a", runs=tuple(RUNS))
    )


def test_what_is_broken_goes_with_its_seal(chain, plan):
    chain["table"].write_text("broken")
    assert mend(plan, found(), []) == [f"{chain['table']} was not what was written: it is made anew"]
    assert not chain["table"].exists()
    assert not seal_path(chain["table"]).exists()


def record(folder, output, content='{"rule": "train"}', longest=254):
    """Record an output as Snakemake does: by its path in Base64, in pieces that fit into a file's name."""
    name = base64.urlsafe_b64encode(str(output).encode()).decode()
    *folders, last = [name[start : start + longest] for start in range(0, len(name), longest)]
    path = folder.joinpath(*(f"@{piece}" for piece in folders), last)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.mark.parametrize("longest", [254, 10])
def test_what_snakemake_has_no_record_of_is_made_anew(tmp_path, longest):
    plan = Plan(config(datasets=["flat"], results_dir=str(tmp_path / "results")))
    first, second = map(plan.layout.history, plan.cohorts)
    labels, split = plan.layout.labels("flat"), plan.layout.split(plan.splits[0])
    for path in (labels, split, first, second):
        write_text(path, "made")
    own = plan.layout.results / "prior.json"  # of the user's own, which no rule can make anew
    write_text(own, "{}")
    records = tmp_path / "metadata"
    record(records, labels, longest=longest)
    record(records, first, longest=longest)
    record(records, second, content='{"rule": "tr')  # cut short
    made = made_by_rules(records)
    assert made == {labels, first}
    assert unrecorded(plan, made) == [Finding(split, UNRECORDED), Finding(second, UNRECORDED)]
    assert mend(plan, unrecorded(plan, made), made) == [
        f"{path} was made while nothing recorded its settings: it is made anew" for path in sorted((split, second))
    ]
    assert [path.exists() for path in (labels, split, first, second, own)] == [True, False, True, False, True]
    assert unrecorded(plan, made) == []


def test_what_a_clock_that_was_ahead_dated_gets_the_present_time_and_nothing_else_changes(chain):
    day = 86400
    past = time.time() - day
    for path in chain.values():
        os.utime(path, (past, past))
    os.utime(chain["table"], (past + 2 * day, past + 2 * day))
    assert bring_to_present(Path("results")) == [chain["table"]]
    assert past + day <= chain["table"].stat().st_mtime <= time.time()
    assert chain["images"].stat().st_mtime == pytest.approx(past)
    assert found() == []
    assert bring_to_present(Path("results")) == []


def test_a_lost_run_is_put_back_bit_for_bit(plan):
    path = plan.store.path(RUNS[1])
    before = path.read_bytes()
    path.write_bytes(b"broken")
    (line,) = mend(plan, [Finding(path, CHANGED)], [])
    assert line.endswith("it is put back from its cohort's histories")
    assert path.read_bytes() == before
    assert plan.store.load(RUNS[1], f"print of {RUNS[1].name}") is not None


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
def test_a_run_whose_histories_are_broken_too_is_trained_again_in_its_company(plan, suffix):
    histories = plan.layout.history("a")
    histories.with_suffix(suffix).write_bytes(b"broken")
    path = plan.store.path(RUNS[0])
    path.unlink()
    mend(plan, [Finding(path, MISSING), Finding(histories.with_suffix(suffix), CHANGED)], [])
    # Of its split, hence of its minibatches, is the other method's run of the same seed.
    gone = [run for run in RUNS if not plan.store.path(run).exists()]
    assert gone == [run for run in RUNS if run.split == RUNS[0].split]
    assert len(gone) == 2
    assert not histories.exists()


@pytest.mark.parametrize("lost", ["histories", "provenance"])
def test_a_run_without_its_seal_whose_histories_are_lost_too_is_trained_again(plan, lost):
    path, histories = plan.store.path(RUNS[0]), plan.layout.history("a")
    seal_path(path).unlink()
    gone = histories if lost == "histories" else histories.with_suffix(".json")
    gone.unlink()
    lines = mend(plan, [Finding(gone, MISSING), Finding(path, UNSEALED)], [])
    assert f"{path} has lost its seal: it is made anew" in lines
    assert not path.exists()


def test_a_run_without_a_seal_that_whole_histories_do_not_name_is_kept(plan):
    """It was brought from elsewhere, among runs that were trained here."""
    path, provenance = plan.store.path(RUNS[0]), plan.layout.history("a").with_suffix(".json")
    facts = read_json(provenance)
    del facts["fingerprints"][RUNS[0].name]
    write_json(provenance, facts)
    seal_path(path).unlink()
    assert mend(plan, [Finding(path, UNSEALED)], []) == []
    assert path.exists()


@pytest.mark.parametrize("whole", [True, False])
def test_a_run_without_its_seal_is_sealed_from_its_histories_or_kept(plan, whole):
    path = plan.store.path(RUNS[0])
    before = path.read_bytes()
    seal_path(path).unlink()
    if not whole:
        plan.layout.history("a").unlink()
    lines = mend(plan, [Finding(path, UNSEALED)], [])
    assert lines == [f"{path} has lost its seal: it is put back from its cohort's histories"] * whole
    assert path.read_bytes() == before
    assert seal_path(path).exists() == whole
