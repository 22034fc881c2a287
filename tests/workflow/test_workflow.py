"""The workflow, run in a copy of the repository on a tiny experiment."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import read_seal, seal_path, sealed_path
from mdpu.pipeline.launch import made_by_rules
from mdpu.pipeline.plan import CELL, Plan

pytestmark = pytest.mark.slow

JUDGED = {"compare": 1, "claims": 1, "ranks": 1}
AFTER_COLLECTION = {"verify": 1, "show_table": 1, "show_curves": 1, **JUDGED, "render_report": 1}
AFTER_TRAINING = {"collect": 1, **AFTER_COLLECTION}


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def manifests(clone) -> list[Path]:
    """Return the manifests of a clone's training jobs: of pairs, then of triples."""
    return sorted((clone.results / "trained").rglob("[!.]*.json"))


# -- a finished run -------------------------------------------------------------------------------


def test_a_finished_run_has_every_output_of_the_contract(finished):
    assert {
        "report.html",
        "metrics.parquet",
        "summary.csv",
        "verification.json",
        *(f"{name}.{suffix}" for name in ("comparison", "claims", "ranks", "audit") for suffix in ("csv", "json")),
        "claims_cases.csv",
        "ranks.svg",
        "ranks.pdf",
        "labels/digits.npz",
        "labels/digits.json",
        "tables/tiny-table.csv",
        "tables/tiny-table.tex",
        "tables/tiny-table-paper.tex",
        "runs.csv",
        *(f"figures/{name}.{suffix}" for name in ("tiny-curves", "figure1", "figure2") for suffix in ("svg", "pdf")),
        *(f"tables/table1.{suffix}" for suffix in ("csv", "tex")),
        *(f"splits/digits/base/m2/prior{prior}/n60/seed{seed}.npz" for prior in ("0.4", "0.5") for seed in (1, 2)),
        *(f"splits/digits/base/m3/prior0.5/n60/seed{seed}.npz" for seed in (1, 2)),
    } <= files(finished.results)
    assert len(manifests(finished)) == 2


def test_every_job_has_a_log_and_a_benchmark(finished):
    for job in (
        "labels/digits",
        "splits/digits/base/m2/prior0.4/n60/seed1",
        f"train/{manifests(finished)[0].relative_to(finished.results / 'trained').with_suffix('')}",
        "collect",
        "show/tiny-table",
        "show/tiny-curves",
        "compare",
        "claims",
        "ranks",
        "audit",
        "verify",
        "report",
    ):
        assert (finished.results / "logs" / f"{job}.log").is_file()
        assert "max_rss" in (finished.results / "benchmarks" / f"{job}.tsv").read_text()


def test_nothing_is_written_outside_the_results_folder_but_snakemakes_own(finished, fresh_clone):
    before, after = files(fresh_clone.folder), files(finished.folder)
    new = {name for name in after - before if "__pycache__" not in name}
    assert {name.split("/")[0] for name in new} == {"results", ".snakemake"}
    for name in before:
        assert (finished.folder / name).read_bytes() == (fresh_clone.folder / name).read_bytes()


def test_a_clone_may_lie_in_a_folder_of_any_name(make_clone, tmp_path):
    """Spaces, quotes and what a shell would expand; `./run` refuses braces."""
    clone = make_clone(tmp_path / 'it\'s a "clöne" $(touch bad); `touch bad` *')
    clone.change_config(experiments=["figure1"])
    clone.run(*clone.RUN, "--until", "sheet", "split")
    made = files(clone.results)
    assert {"sheets/digits/positive.png", "splits/digits/base/m3/prior0.5/n60/seed1.npz"} <= made
    assert not list(tmp_path.rglob("bad"))


def test_every_result_is_sealed_and_no_temporary_file_is_left(finished, monkeypatch):
    """The launcher knows that rules make them, apart from configurations, manifests and what was reported."""
    monkeypatch.chdir(finished.folder)
    plan = Plan(load_config([max(Path("results/tiny/config").glob("*.yaml"), key=os.path.getmtime)]))
    sealed = [sealed_path(seal) for seal in Path("results").rglob(".*.seal")]
    named = {path for path in sealed if path.parts[2] not in ("config", "trained", "reported")}
    assert named == {path for path in made_by_rules(plan) if path.exists()}
    names = [Path(name).name for name in files(finished.folder / "results")]
    assert not [name for name in names if name.startswith(".") and not name.endswith(".seal")]
    done = finished.run("./run", "check")
    assert re.search(r"results/tiny: \d+ files compared, all as written\n$", done.stdout)


def test_the_page_stays_current_when_its_clone_moves_or_more_code_is_declared_equal(finished):
    """Its inputs are named from the clone, and are the results alone."""
    inputs = read_seal(finished.results / "report.html").inputs
    assert {Path(name).parts[:2] for name in inputs} == {("results", "tiny"), ("results", "datasets")}


def finished_run(clone) -> str:
    """Return the path of some finished run of pairs, in the folder of results."""
    name = next(iter(json.loads(manifests(clone)[0].read_text())["runs"].values()))
    return f"cache/{name[:2]}/{name}.parquet"


def test_what_is_damaged_is_named_and_made_anew_with_the_same_contents(finished_clone):
    """A flipped bit in the metrics, a split cut short, a lost run, an edited table: all with their old time stamps.

    And images and labels whose contents turn out to be the same start no training.
    """
    results, run = finished_clone.results, "../" + finished_run(finished_clone)
    _, untouched = manifests(finished_clone)
    damages = {
        "metrics.parquet": lambda content: content[:500] + bytes([content[500] ^ 1]) + content[501:],
        "splits/digits/base/m2/prior0.5/n60/seed1.npz": lambda content: content[: len(content) // 2],
        "tables/tiny-table.csv": lambda content: content.replace(b"5", b"6"),
        "labels/digits.json": lambda content: content + b" ",
        run: lambda content: b"",
    }
    before = {name: (results / name).read_bytes() for name in (*damages, untouched.relative_to(results))}
    seal_path(results / "../datasets/digits.npz").unlink()
    for name, damage in damages.items():
        times = (results / name).stat()
        (results / name).write_bytes(damage(before[name]))
        os.utime(results / name, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert finished_clone.jobs() == {}  # Snakemake alone notices none of it
    found = finished_clone.run("./run", "check", status=1).stdout
    named = {os.path.normpath(f"results/tiny/{name}") for name in (*damages, "../datasets/digits.npz")}
    assert {line.split()[0] for line in found.splitlines()[:-1]} == named
    done = finished_clone.run(*finished_clone.RUN)
    assert "is a finished run that is not what was written: it is made anew" in done.stdout + done.stderr
    again = {name: (results / name).read_bytes() for name in before}
    again[run] = before[run]  # it says when it was trained
    assert again == before
    finished_clone.run("./run", "check")


def test_the_summary_and_the_table_have_a_row_per_cell(finished):
    summary = pd.read_csv(finished.results / "summary.csv", dtype={"prior": str})
    assert list(summary.columns[: len(CELL)]) == list(CELL)
    assert {"mean", "std", "trials", "diverged", "first_epoch", "last_epoch"} <= set(summary.columns)
    assert len(summary) == 6
    assert (summary["trials"] == 2).all()
    assert (summary[["first_epoch", "last_epoch"]].to_numpy() == [2, 3]).all()
    table = pd.read_csv(finished.results / "tables/tiny-table.csv", dtype={"prior": str})
    both = table.merge(summary, on=list(CELL), suffixes=("", "_summary"))
    assert len(table) == len(both) == 4
    assert both["mean"].equals(both["mean_summary"])
    metrics = pd.read_parquet(finished.results / "metrics.parquet")
    last = metrics[metrics["epoch"] > 1].groupby([*CELL, "seed"])["accuracy"].mean()
    by_hand = 100 * last.groupby(list(CELL)).mean()
    np.testing.assert_allclose(summary.set_index(list(CELL))["mean"].sort_index(), by_hand.sort_index())


# -- running again --------------------------------------------------------------------------------


def test_a_second_run_does_nothing_and_says_so(finished_clone):
    times = {path: path.stat().st_mtime_ns for path in finished_clone.results.rglob("*") if path.is_file()}
    assert "Nothing to be done" in finished_clone.snakemake()
    assert {path: path.stat().st_mtime_ns for path in finished_clone.results.rglob("*") if path.is_file()} == times


def test_editing_code_reruns_what_depends_on_it_and_nothing_else(finished_clone):
    """`tests/pipeline/test_code.py` has which edit changes which version."""

    def edit(name, added):
        path = finished_clone.folder / name
        path.write_text(path.read_text() + added)

    for path in (finished_clone.folder / "mdpu").rglob("*.py"):
        path.write_text(path.read_text() + "\n# a comment\n")
    assert finished_clone.jobs() == {}
    edit("mdpu/pipeline/experiments/curves.py", "edited = 1\n")
    assert finished_clone.jobs() == {"show_curves": 1, "render_report": 1}
    edit("mdpu/learn/risk.py", "edited = 1\n")
    assert finished_clone.jobs() == {"train": 2, **AFTER_TRAINING}


CHANGES = {
    "protocol.reporting": ({"protocol__reporting__average_last": 1}, AFTER_TRAINING),
    "comparison": ({"comparison__margin": 0.5}, {"compare": 1, "claims": 1, "render_report": 1}),
    "a dataset's classes": (
        {"definitions__datasets__digits__negative": [1, 3, 5, 7], "definitions__datasets__digits__dropped": [9]},
        {"labels": 1, "sheet": 1, "split": 6, "train": 2, "show_setting": 1, "audit": 1, **AFTER_TRAINING},
    ),
    "threads": ({"threads": 1}, {}),
}


def test_changing_the_configuration_reruns_what_depends_on_it_and_nothing_else(finished_clone):
    path = finished_clone.folder / "config" / "tiny.yaml"
    before, found = path.read_text(), {}
    for name, (changes, _) in CHANGES.items():
        finished_clone.change_config(**changes)
        found[name] = finished_clone.jobs()
        path.write_text(before)
    assert found == {name: expected for name, (_, expected) in CHANGES.items()}


def test_adding_a_seed_trains_only_the_new_runs(finished_clone):
    before = json.loads(manifests(finished_clone)[0].read_text())["runs"]
    finished_clone.change_config(axes__seed=[1, 2, 3])
    finished_clone.snakemake("--until", "train")
    facts = [json.loads(path.read_text()) for path in manifests(finished_clone)]
    (grown,) = (one for one in facts if len(one["runs"]) == 12)
    assert grown["reused"] == 8
    assert before.items() <= grown["runs"].items()


def test_a_study_trains_its_variants_and_reads_the_runs_that_are_there(finished_clone):
    """Base is trained already, in the same job; reportings and a variant without changes train nothing."""
    finished_clone.change_config(
        experiments=["tiny-table", "tiny-curves", "tiny-study"],
        definitions__variants={
            "base": None,
            "rate": {"training": {"networks": {"mlp": {"learning_rate": 0.02}}}},
            "same": {"sampling": {"n_unlabeled": 60}},
            "images": {"sampling": {"n_counts": "images"}},
        },
        definitions__reportings={"last": {"average_last": 1}},
        **{
            "definitions__experiments__tiny-study": {
                "kind": "sensitivity",
                "title": "Tiny study",
                "tuple_size": [2],
                "prior": [0.5],
                "variant": ["base", "rate", "same", "images"],
                "options": {"reporting": ["last", "best-epoch"]},
                "n": 60,
            }
        },
    )
    finished_clone.snakemake()
    logs = finished_clone.results / "logs/train/digits"
    assert {path.name for path in logs.iterdir()} == {"base", "rate", "images"}
    (log,) = (logs / "rate").rglob("*.log")
    assert "4 runs, 0 already trained" in log.read_text()
    splits = {}
    for variant in ("base", "rate", "images"):
        path = finished_clone.results / "splits/digits" / variant / "m2/prior0.5/n60/seed1.npz"
        with np.load(path, allow_pickle=False) as split:
            splits[variant] = split["tuples"], split["unlabeled"]
    assert all(np.array_equal(*pair) for pair in zip(splits["base"], splits["rate"], strict=True))
    assert splits["images"][0].shape == (30, 2)
    assert splits["images"][1].shape == (60,)
    table = pd.read_csv(finished_clone.results / "sensitivity/tiny-study.csv", dtype=str)
    assert set(zip(table["key"], table["base"], table["value"], strict=True)) == {
        ("learning_rate", "0.03", "0.02"),
        ("n_counts", "tuples", "images"),
        ("average_last", "2", "1"),
        ("average_last", "2", "best"),
    }
    assert (finished_clone.results / "figures/tiny-study.svg").is_file()
    page = (finished_clone.results / "report.html").read_text()
    assert '<section id="tiny-study">' in page


# -- subsets --------------------------------------------------------------------------------------


def test_an_experiment_alone_runs_without_training_and_the_report_says_what_was_not_run(fresh_clone):
    fresh_clone.snakemake("--config", "experiments=[figure1]")
    page = (fresh_clone.results / "report.html").read_text(encoding="utf-8")
    assert 'id="figure1"' in page
    assert not (fresh_clone.results / "trained").exists()
    missing = page.split('id="not-run"')[1].split("</section>")[0]
    for title in ("Tiny table: pairs", "Table II: pairs, smaller n", "Figure 2: the losses"):
        assert title in missing
    assert "Figure 1" not in missing


def test_tuned_rates_are_drawn_and_said_to_be_tuned(finished_clone):
    finished_clone.change_config(
        experiments=["tiny-table"],
        axes__seed=[1],
        protocol__training__hyperparameters="tuned",
        tuning__grid={"learning_rate": [0.001, 0.01], "weight_decay": [0.0005]},
    )
    finished_clone.snakemake()
    grid = pd.read_csv(finished_clone.results / "tuning/digits/base/m2.csv")
    assert (grid.groupby("method")["chosen"].sum() == 1).all()
    assert {"figures/tuning/digits/base/m2.svg", "figures/tuning/digits/base/m2.pdf"} <= files(finished_clone.results)
    section = (finished_clone.results / "report.html").read_text(encoding="utf-8").split('id="tuning"')[1]
    assert "Tuned: chosen per dataset" in section
    assert "Fixed in the configuration" not in section
    assert 'alt="Estimated errors of the grid: Digits (8x8), M = 2"' in section


# -- a failed training job ------------------------------------------------------------------------


def test_a_failed_job_is_left_out_and_named_and_the_next_run_trains_it(finished_clone):
    """The training job of triples, of whose runs none is left."""
    _, triples = manifests(finished_clone)
    for name in json.loads(triples.read_text())["runs"].values():
        (finished_clone.results / f"../cache/{name[:2]}/{name}.parquet").unlink()
    triples.unlink()
    (finished_clone.results / "report.html").unlink()
    obstacle = finished_clone.results / "checkpoints/digits/base/m3"  # a file where a folder has to be
    shutil.rmtree(obstacle, ignore_errors=True)
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.touch()
    finished_clone.change_config(experiments=["tiny-table", "tiny-curves"], expected=None)
    done = finished_clone.run(*finished_clone.RUN, "--keep-going", status=1)
    assert "left out: digits/base/m3/n60: " in done.stdout + done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert error.startswith("error: train: ")
    assert "run: some jobs failed; making a report without the training jobs that failed\n" in done.stdout
    assert (
        "(Not a directory); mend that and run again (results/tiny/logs/train/digits/base/m3"
        in finished_clone.run("./run", "status").stdout
    )
    page = (finished_clone.results / "report.html").read_text(encoding="utf-8").split('id="failed"')[1]
    assert "(Not a directory); mend that and run again (results/tiny/logs/train/digits/base/m3/" in page
    assert set(pd.read_csv(finished_clone.results / "runs.csv")["tuple_size"]) == {2}
    # Nothing takes the failure for a success: the plan still wants the training job, and what is made of it.
    again = {"train": 1, "collect": 1, "show_table": 1, "show_curves": 1, **JUDGED, "render_report": 1}
    assert finished_clone.jobs() == again
    obstacle.unlink()
    finished_clone.run(*finished_clone.RUN)
    assert len(pd.read_csv(finished_clone.results / "runs.csv")) == 12
    assert 'id="failed"' not in (finished_clone.results / "report.html").read_text(encoding="utf-8")
    finished_clone.run("./run", "check")


# -- dry runs -------------------------------------------------------------------------------------


def test_the_papers_configuration_is_planned_without_data(fresh_clone):
    lines = fresh_clone.run(
        *[part for part in fresh_clone.command("-n") if "tiny" not in part and "configfile" not in part]
    )
    assert "train" in lines.stdout
    assert "dataset_mnist" in lines.stdout
    assert not (fresh_clone.folder / "data").exists()


def test_the_slurm_profile_is_planned(fresh_clone):
    pytest.importorskip("snakemake_executor_plugin_slurm")
    output = fresh_clone.snakemake("-n", "--profile", "profiles/slurm")
    assert "slurm_partition=main" in output
    assert "train" in output


def test_a_wrong_configuration_is_told_without_a_traceback(fresh_clone):
    fresh_clone.change_config(devise="cpu")
    output = fresh_clone.snakemake(status=1)
    assert "config key devise is unknown; did you mean 'device'?" in output
    assert "Traceback" not in output
    assert not fresh_clone.results.exists()
