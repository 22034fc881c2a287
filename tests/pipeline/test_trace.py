"""From a number back to its runs, and the same runs again: on made-up runs, and on those of a
finished clone.
"""

import json
from pathlib import Path

import pandas as pd
import pytest

from mdpu.errors import UserError
from mdpu.pipeline import trace
from mdpu.pipeline.config import load_config, merge
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.job import asked, run_history
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import Stored, read_runs, shipped_keys, write_runs

RELU = "mnist/base/m2/n10000/prior0.5/relu"
TINY = "digits/base/m2/n60/prior0.5/abs"


def stored(plan: Plan, run, accuracy: float) -> Stored:
    """Return a run that has the same accuracy in every epoch."""
    epochs = pd.DataFrame({"epoch": range(1, 101), "objective": 0.1})
    rates = epochs.assign(true_positive_rate=accuracy, true_negative_rate=accuracy)
    history = run_history(False, rates, 0.5)
    facts = {
        "device": "cpu",
        "precision": "float32",
        "date": "2026-01-02T03:04:05+00:00",
        "commit": "abc",
    }
    return Stored.of(asked(plan.spec(run.cell), run.seed), history, **facts)


@pytest.fixture
def cell(tmp_path):
    """Three made-up trials of a cell of the paper, 87, 88 and 89 %, in the folder of results."""
    overlay = {
        "results_dir": str(tmp_path),
        "shipped": None,
        "datasets": ["mnist"],
        "experiments": ["table2"],
        "axes": {"seed": [1, 2, 3]},
    }
    plan = Plan(merge(load_config(), overlay))
    path = plan.layout.run_file(RELU)
    trials = {run: stored(plan, run, 0.86 + run.seed / 100) for run in plan.find_runs(RELU)}
    write_runs(path, trials.values())
    return trace.Cell(plan, {run: (trial, path) for run, trial in trials.items()})


def test_the_cell_is_judged_by_the_papers_number(cell):
    assert cell.trials().mean == pytest.approx(88)
    published = cell.comparison
    assert published["published_mean"] == pytest.approx(89.01, abs=0.5)
    assert published["difference"] == pytest.approx(88 - published["published_mean"])
    assert published["verdict"] in cell.verdict()


def test_finished_runs_are_found_by_key_and_missing_ones_are_named(cell):
    plan = cell.plan
    runs = list(cell.stored_runs)
    finished = trace.finished(plan, runs).stored_runs
    assert list(finished) == runs
    for run, (trial, _) in finished.items():
        assert trial.key == plan.key(run)

    others = [trial for run, (trial, _) in finished.items() if run.seed != 2]
    write_runs(plan.layout.run_file(RELU), others)
    assert len(trace.finished(plan, runs[:1]).stored_runs) == 2
    with pytest.raises(UserError, match="seed2"):
        trace.finished(plan, runs)


@pytest.mark.parametrize(
    ("seeds", "accuracies", "same"),
    [
        ([1], [0.875], True),
        ([1], [0.6], False),
        ([1], [float("nan")], False),
        ([1, 2, 3], [0.871, 0.881, 0.892], True),
        ([1, 2, 3], [0.771, 0.781, 0.792], False),
    ],
)
def test_new_runs_are_judged_by_the_trials_of_their_cell(
    cell, monkeypatch, capsys, seeds, accuracies, same
):
    runs = [run for run in cell.stored_runs if run.seed in seeds]
    new = {}
    for run, accuracy in zip(runs, accuracies, strict=True):
        new[run] = (stored(cell.plan, run, accuracy), Path("new"))
    monkeypatch.setattr(trace, "train_again", lambda plan, runs: new)

    assert trace.again(cell, runs) is same

    said = capsys.readouterr().out
    for run, accuracy in zip(runs, accuracies, strict=True):
        assert f"{run.name}: {86 + run.seed:.2f} % recorded, {100 * accuracy:.2f} % now" in said
    after = trace.Cell(cell.plan, {**cell.stored_runs, **new})
    assert f"before  {cell.verdict()}" in said
    assert f"after   {after.verdict()}" in said


@pytest.mark.parametrize("name", [RELU, f"{RELU}/seed3", f"/a/runs/b/results/runs/{RELU}.parquet"])
def test_names_of_cells_runs_and_files_are_found_in_the_configurations(name):
    plan, runs, _ = trace.find(name)
    assert plan.config["name"] == "paper-reference"
    assert {run.cell for run in runs} == {RELU}
    assert len(runs) == (1 if "seed" in name else 5)


@pytest.mark.parametrize(("accuracy", "same"), [(0.87, True), (0.88, True), (0.6, False)])
def test_a_trial_without_others_is_judged_by_the_wider_margin(cell, monkeypatch, accuracy, same):
    run, *_ = cell.stored_runs
    alone = trace.Cell(cell.plan, {run: cell.stored_runs[run]})
    again = stored(cell.plan, run, accuracy)
    new = {run: (again, Path("new"))}
    monkeypatch.setattr(trace, "train_again", lambda plan, runs: new)
    assert trace.again(alone, [run]) is same


def test_a_sample_of_nothing_does_not_verify_a_configuration():
    assert trace.verify(1, config=[Path("config/quick.yaml")]) is False
    with pytest.raises(UserError, match="number of runs"):
        trace.verify(-1)


def test_a_study_is_found_in_its_own_configuration():
    plan, (run, *_), _ = trace.find("mnist/base/m3-exactly-1/n10000/prior0.4/bag-relu")
    assert plan.config["name"] == "laws"
    assert run.law == "exactly-1"


def test_a_configuration_stands_in_the_commands_and_not_in_the_place_of_a_file():
    reference = REPOSITORY / "config" / "reference.yaml"
    said = trace.trace(f"{RELU}/seed1", [reference])
    assert f"./run retrain {RELU}/seed1 --config {reference}" in said
    (place,) = [line for line in said.splitlines() if line.startswith("  key ")]
    assert place.endswith(".parquet")


def test_a_wrong_file_beside_the_configurations_hides_no_number(tmp_path, monkeypatch):
    wrong = tmp_path / "mine.yaml"
    wrong.write_text("datasets: [unheard-of]\n")
    reference, *others = trace._shipped_configurations()
    monkeypatch.setattr(trace, "_shipped_configurations", lambda: [reference, [wrong], *others])

    plan, _, _ = trace.find("mnist/base/m3-exactly-1/n10000/prior0.4/bag-relu")
    assert plan.config["name"] == "laws"
    with pytest.raises(UserError, match="unheard-of"):
        trace.find(RELU, [wrong])


def test_a_wrong_configuration_of_the_paper_is_told(monkeypatch):
    def wrong(files):
        raise UserError(f"config.yaml below {files} is wrong")

    monkeypatch.setattr(trace, "_plan_of", wrong)
    with pytest.raises(UserError, match=r"config\.yaml below \[\] is wrong"):
        trace.find(RELU)


def test_the_command_that_makes_a_missing_run_has_its_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=r"--configfile \S*config/quick.yaml -- results/runs/digits/"
    ):
        trace.trace("digits/base/m2/n800/prior0.5/abs")


@pytest.mark.slow
def test_a_finished_number_is_traced_and_comes_out_again(finished):
    before = finished.digests()
    said = finished.run("./run", "trace", TINY).stdout
    runs = read_runs(finished.folder / f"results/runs/{TINY}.parquet")
    for key, run in runs.items():
        assert f"{key}, in results/runs/{TINY}.parquet" in said
        assert run.about["date"] in said
    assert f"./run retrain {TINY}/seed2" in said
    assert "the paper has no such number" in said

    retrained = finished.run("./run", "retrain", f"{TINY}/seed2").stdout
    _, _, of_run = retrained.partition(f"{TINY}/seed2: ")
    recorded, now, *_ = of_run.split(", ")
    assert recorded.split()[0] == now.split()[0]  # on one machine bit for bit
    assert finished.digests() == before


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("mnist/base/m2/n10000/prior0.4/ure.hinge", "87.91 ± 0.4, table 2"),
        ("mnist/replacement-without/m2/n12000/prior0.5/abs/seed2", "89.09 ± 0.84, table 3"),
        ("mnist/replacement-without/m3/n10000/prior0.5/relu-part", "none"),
    ],
)
def test_a_run_of_a_reading_is_traced_and_its_number_judged(name, number):
    said = trace.trace(name)
    assert f"  paper     {number}" in said
    assert "results/reference/runs/" in said


@pytest.mark.slow
def test_the_cell_of_a_verdict_has_the_verdicts_trials():
    """An experiment shows the hinge loss at prior 0.5 in three trials; verdicts are by five."""
    file = REPOSITORY / "results" / "reference" / "verdicts.json"
    rows = pd.DataFrame(json.loads(file.read_text(encoding="utf-8"))["numbers"])
    rows = rows[(rows["method"] == "relu") & (rows["prior"] == 0.5)]
    firsts = rows.groupby(["dataset", "reading"]).first()
    cells = {runs[0].rpartition("/")[0]: runs for runs in firsts["runs"]}
    assert "mnist/base/m2/n10000/prior0.5/relu.hinge" in cells
    for name, names in cells.items():
        plan, runs, files = trace.find(name)
        cell = trace.finished(plan, runs, files)
        assert [run.name for run in cell.stored_runs] == names
        assert cell.trials().number == len(names)
        assert cell.comparison


@pytest.mark.slow
def test_every_shipped_run_has_a_name_that_is_found():
    """A name is of one run in a selection; of each selection's and reading's names, the first is
    found again.
    """
    reference = REPOSITORY / "results" / "reference"
    runs = read_csv(reference / "runs.csv")
    assert set(runs["key"]) == set(shipped_keys(reference / "runs"))
    assert not runs.duplicated(["selection", "run"]).any()

    first = runs.groupby(["selection", "reading"]).first().reset_index()
    for row in first.itertuples():
        files = []
        if row.selection in ("laws", "own-split"):
            files = [REPOSITORY / "config" / f"{row.selection}.yaml"]
        plan, (run,), _ = trace.find(row.run, files)
        assert plan.key(run) == row.key
