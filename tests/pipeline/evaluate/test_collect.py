"""From histories to the numbers of a table, and the published numbers beside them."""

import json
import re
import statistics

import numpy as np
import pandas as pd
import pytest
from configs import config

from mdpu.errors import UserError
from mdpu.pipeline.evaluate.collect import MIXED, run_accuracies, summarize
from mdpu.pipeline.evaluate.provenance import write_collection
from mdpu.pipeline.evaluate.published import FILE, beside_published, published_cells
from mdpu.pipeline.evaluate.verify import verify
from mdpu.pipeline.files import read_csv, read_table, sha256
from mdpu.pipeline.job import asked
from mdpu.pipeline.plan import AXES, CELL, Plan, Run
from mdpu.pipeline.store import Stored, pack, write_runs

NATURAL = {"average_last": 2, "test_prior": "natural"}


def make_run(method="abs", seed=1, prior="0.4"):
    return Run("mnist", "base", 2, 10000, prior, method, "logistic", seed)


def history(
    run: Run, accuracies, true_positive_rates=None, true_negative_rates=None
) -> pd.DataFrame:
    columns = {
        "epoch": range(1, len(accuracies) + 1),
        "accuracy": accuracies,
        "true_positive_rate": true_positive_rates or accuracies,
        "true_negative_rate": true_negative_rates or accuracies,
    }
    return pd.DataFrame(columns).assign(**vars(run))


@pytest.fixture
def plan(tmp_path):
    return Plan(config(datasets=["flat"], shipped=None, results_dir=str(tmp_path)))


def stored(plan: Plan, run: Run, **about: str) -> Stored:
    measured = {
        "epoch": [1, 2, 3],
        "accuracy": [0.1 * run.seed, 0.5, float(run.prior)],
        "risk": [3.0, 2.0, run.seed],
        "true_positive_rate": 0.5,
        "true_negative_rate": 0.5,
    }
    if run.method == "abs":
        measured["estimated_prior"] = 0.3
    facts = {
        "device": "CPU",
        "precision": "float32",
        "date": "2026-01-01T00:00:00+00:00",
        **about,
    }
    spec = plan.spec(run.cell)
    return Stored.of(asked(spec, run.seed), pd.DataFrame(measured), **facts)


def write(plan: Plan, files: list) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the metrics, the summary and the runs."""
    layout = plan.layout
    write_collection(plan, files, layout.metrics, layout.summary, layout.runs)
    return read_table(layout.metrics), read_csv(layout.summary), read_csv(layout.runs)


@pytest.fixture
def gathered(plan, tmp_path):
    """Return what is gathered from the files of a cell and from packed ones, by its name.

    One file holds what belongs to another configuration, too, and one the same run in another
    state.
    """
    longer = Plan(config(datasets=["flat"], shipped=None, protocol__training__epochs=4))
    runs_of_both = [stored(plan, run) for run in plan.runs[3:]]
    runs_of_both += [stored(longer, run) for run in longer.runs]
    packed = tmp_path / "packed.parquet"
    pack(packed, runs_of_both)

    on_gpu = {"device": "GPU", "precision": "bfloat16"}
    of_cell = tmp_path / "own.parquet"
    write_runs(of_cell, [stored(plan, run, **on_gpu) for run in plan.runs[:4]])
    return write(plan, [of_cell, packed])


def test_runs_are_gathered_by_key_in_the_order_of_the_plan(plan, gathered, tmp_path):
    _, _, runs = gathered
    assert runs["run"].tolist() == [run.name for run in plan.runs]
    assert runs["key"].tolist() == [plan.key(run) for run in plan.runs]
    assert runs["risk"].tolist() == [run.seed for run in plan.runs]

    of_cell = runs[:4]
    assert set(of_cell["file"]) == {str(tmp_path / "own.parquet")}
    assert set(of_cell["device"]) == {"GPU"}
    packed = runs[4:]
    assert set(packed["file"]) == {str(tmp_path / "packed.parquet")}
    assert set(packed["device"]) == {"CPU"}


def test_gathered_histories_have_the_axes_of_their_run(plan, gathered):
    metrics, *_ = gathered
    axes = list(AXES)
    assert list(metrics.columns)[: len(axes) + 2] == [*axes, "epoch", "accuracy"]
    keys = metrics[axes].drop_duplicates().itertuples(index=False)
    assert [Run(*key) for key in keys] == list(plan.runs)
    assert set(metrics.groupby(axes).size()) == {3}

    first = metrics[metrics["epoch"] == 1]
    assert first["accuracy"].tolist() == [0.1 * run.seed for run in plan.runs]
    has_estimate = metrics["estimated_prior"].notna()
    assert has_estimate.equals(metrics["method"] == "abs")


def test_gathered_runs_are_summarized_by_cell(plan, gathered):
    _, summary, _ = gathered
    assert len(summary) == len(plan.cells)
    assert set(summary["precision"]) == {"float32", "bfloat16"}


def test_runs_of_methods_without_a_risk_are_gathered(plan, tmp_path):
    path = tmp_path / "all.parquet"
    facts = {"device": "CPU", "precision": "float32", "date": "2026-01-01"}
    without_risk = []
    for run in plan.runs:
        complete = stored(plan, run)
        history = complete.history.drop(columns="risk")
        without_risk.append(Stored.of(complete.about["asked"], history, **facts))
    write_runs(path, without_risk)
    _, _, runs = write(plan, [path])
    assert runs["risk"].isna().all()


def test_a_cell_of_two_precisions_says_so(plan, tmp_path):
    path = tmp_path / "all.parquet"
    precisions = {1: "float32", 2: "bfloat16"}
    write_runs(path, [stored(plan, run, precision=precisions[run.seed]) for run in plan.runs])
    _, summary, _ = write(plan, [path])
    assert set(summary["precision"]) == {MIXED}


def test_a_run_whose_key_is_in_no_file_is_named(plan, tmp_path):
    path = tmp_path / "all.parquet"
    *others, last = plan.runs
    write_runs(path, [stored(plan, run) for run in others])
    with pytest.raises(UserError, match=re.escape(last.name)):
        write(plan, [path])
    assert not plan.layout.metrics.exists()


FOUR = history(make_run(seed=1), [0.1, 0.8, 0.8, 0.6])


THREE = history(make_run(seed=2), [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("average", "accuracies", "first", "last"),
    [
        (2, [70, 25], [3, 2], [4, 3]),
        (1, [60, 30], [4, 3], [4, 3]),
        (50, [57.5, 20], [1, 1], [4, 3]),
        ("all", [57.5, 20], [1, 1], [4, 3]),
        ("best", [80, 30], [2, 3], [2, 3]),
    ],
)
def test_an_accuracy_is_a_mean_of_epochs_in_percent(average, accuracies, first, last):
    reporting = {**NATURAL, "average_last": average}
    runs = run_accuracies(pd.concat([FOUR, THREE]), reporting)
    assert runs["accuracy"].tolist() == pytest.approx(accuracies)
    assert runs["first_epoch"].tolist() == first
    assert runs["last_epoch"].tolist() == last


@pytest.mark.parametrize("average", [1, 2, "all", "best"])
def test_a_run_that_diverged_has_no_accuracy_however_epochs_are_averaged(average):
    """Not even by its best epoch, which was before."""
    lost = history(make_run(seed=3), [0.9, 0.8, np.nan, np.nan])
    runs = run_accuracies(pd.concat([FOUR, lost]), {**NATURAL, "average_last": average})
    assert runs["accuracy"].isna().tolist() == [False, True]


def test_a_matched_test_prior_reweights_the_two_rates():
    true_positive_rates = [0.5, 1.0]
    true_negative_rates = [0.25, 0.5]
    metrics = history(make_run(), [0.9, 0.9], true_positive_rates, true_negative_rates)
    natural = run_accuracies(metrics, NATURAL)
    matched = run_accuracies(metrics, {**NATURAL, "test_prior": "matched"})
    assert natural["accuracy"].tolist() == pytest.approx([90])
    # (0.4 * 0.5 + 0.6 * 0.25 + 0.4 * 1 + 0.6 * 0.5) / 2
    assert matched["accuracy"].tolist() == pytest.approx([52.5])


def test_a_cell_is_the_mean_and_sample_deviation_of_its_trials():
    accuracies = [60.0, 55.0, 71.0]
    histories = []
    for seed, accuracy in enumerate(accuracies):
        histories.append(history(make_run(seed=seed), [accuracy / 100]))
    metrics = pd.concat(histories)
    cell = summarize(run_accuracies(metrics, NATURAL)).iloc[0]
    assert cell["mean"] == pytest.approx(statistics.mean(accuracies))
    assert cell["std"] == pytest.approx(statistics.stdev(accuracies))
    assert cell["trials"] == 3
    assert cell["diverged"] == 0


def summary_of(**means):
    cells = pd.DataFrame(map(make_run, means))[[*CELL]]
    return cells.assign(mean=list(means.values()))


@pytest.mark.parametrize(
    ("ours", "confirmed", "cells", "within"),
    [
        ({"abs": 80.0, "ure": 70.0}, True, 2, 2),
        ({"abs": 81.0, "ure": 69.6}, True, 2, 2),
        ({"abs": 81.01, "ure": 70.0}, False, 2, 1),
        ({"abs": 80.0, "ure": 70.0, "relu": 1.0}, True, 2, 2),
        ({"abs": 80.5}, True, 1, 1),
        ({"abs": 81.5}, False, 1, 0),
        ({"abs": np.nan, "ure": 70.0}, False, 2, 1),
    ],
    ids=[
        "equal",
        "at the edge",
        "outside",
        "a cell more",
        "one not run",
        "one not run, one outside",
        "diverged",
    ],
)
def test_numbers_are_confirmed_when_every_expected_cell_that_was_run_is_within_its_tolerance(
    tmp_path, ours, confirmed, cells, within
):
    expected = tmp_path / "expected.csv"
    tolerated = summary_of(abs=80.0, ure=70.0).assign(tolerance=[1.0, 0.5])
    tolerated.to_csv(expected, index=False)
    checked = verify(summary_of(**ours), expected)
    assert checked["confirmed"] == confirmed
    assert checked["cells"] == cells
    assert checked["within"] == within
    assert len(checked["outside"]) == cells - within
    assert checked["not_run"] == 2 - cells
    json.dumps(checked, allow_nan=False)


@pytest.mark.parametrize(
    "spoil", [lambda table: table.drop(columns="tolerance"), lambda table: table[:0]]
)
def test_a_table_of_expected_numbers_of_another_shape_is_refused(tmp_path, spoil):
    path = tmp_path / "expected.csv"
    summary = summary_of(abs=80.0)
    spoil(summary.assign(tolerance=1.0)).to_csv(path, index=False)
    with pytest.raises(UserError, match="expected"):
        verify(summary, path)


def test_the_published_tables_have_504_cells_in_84_rows_with_one_bold_each():
    """They were compared with the paper's LaTeX, cell by cell; an edit since then changes the
    checksum.
    """
    assert sha256(FILE).startswith("62ea10d758835a03")
    cells = published_cells()
    assert len(cells) == 504
    keys = ["table", "prior", "dataset"]
    rows = cells.groupby(keys)
    assert len(rows) == 84
    assert (rows.size() == 6).all()
    assert (rows["published_bold"].sum() == 1).all()
    assert cells["published_mean"].between(40, 100).all()
    assert set(cells["prior"]) == {"0.4", "0.5", "0.6"}
    assert set(cells["tuple_size"]) == {2, 3}
    assert not cells.duplicated([*keys, "method"]).any()


def test_a_cell_of_ours_stands_beside_the_papers_only_where_the_paper_has_it():
    runs = [
        make_run("ure"),
        Run("mnist", "other", 2, 10000, "0.4", "ure", "logistic", 1),
        Run("mnist", "base", 2, 10000, "0.4", "ure", "ramp", 1),
        Run("digits", "base", 2, 400, "0.4", "ure", "logistic", 1),
    ]
    cells = pd.DataFrame(runs)[[*CELL]].assign(mean=88.0)
    beside = beside_published(cells, {"mnist": "mnist"})
    assert len(beside) == 4
    assert beside["published_mean"].isna().tolist() == [False, True, True, True]

    first = beside.iloc[0]
    assert first["published_mean"] == 87.91
    assert first["difference"] == pytest.approx(88 - 87.91)
