"""The rules, run in a copy of the repository on a tiny experiment: what is made, and what is made
again.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import CELL, Plan
from mdpu.pipeline.store import pack, read_runs

pytestmark = pytest.mark.slow

CELLS = [f"m2/n60/prior{prior}/{method}" for prior in ("0.4", "0.5") for method in ("abs", "ure")]
CELLS += [f"m3/n60/prior0.5/{method}" for method in ("abs", "ure")]
ABS = "results/runs/digits/base/m2/n60/prior0.5/abs.parquet"
JUDGED = {"compare": 1, "claims": 1, "report": 1}
AFTER_TRAINING = {"collect": 1, "table": 1, "figure": 1, **JUDGED}


def keys(path: Path) -> dict[str, str]:
    """Return the trial of each run in a file, by key."""
    return {key: run.about["asked"]["trial"] for key, run in read_runs(path).items()}


# -- a finished experiment ------------------------------------------------------------------------


def test_every_file_of_the_contract_is_made_and_no_other(finished):
    shown = [
        f"figures/{name}.{end}"
        for name in ("figure1", "figure2", "tiny-curves")
        for end in ("svg", "pdf")
    ]
    shown += [f"tables/{name}" for name in ("table1.csv", "table1.tex")]
    shown += [f"tables/tiny-table{end}" for end in (".csv", ".tex", "-paper.tex")]
    tables = [
        "metrics.parquet",
        "summary.csv",
        "runs.csv",
        "comparison.csv",
        "claims.csv",
        "claims_cases.csv",
    ]
    named = [
        "report.html",
        "comparison.json",
        "claims.json",
        "sheets/digits/positive.png",
        "sheets/digits/negative.png",
    ]
    shared = [
        f"{folder}/digits.{end}" for folder in ("datasets", "labels") for end in ("npz", "json")
    ]
    shared += [f"runs/digits/base/{cell}.parquet" for cell in CELLS]
    shared += [
        f"splits/digits/base/{name}.npz"
        for name in sorted({cell.rpartition("/")[0] for cell in CELLS})
    ]
    expected = {
        f"results/{name}"
        for name in (*shared, *(f"tiny/{name}" for name in (*shown, *tables, *named)))
    }
    made = {
        name
        for name in finished.digests()
        if not {"logs", "benchmarks", "reference"} & {*Path(name).parts}
    }
    assert made == expected


def test_every_training_job_has_a_log_and_a_benchmark(finished):
    for cell in CELLS:
        log = (finished.folder / f"results/logs/train/digits/base/{cell}.log").read_text()
        assert f"digits/base/{cell}: 2 runs, 0 of them finished" in log
        assert (
            "max_rss"
            in (finished.folder / f"results/benchmarks/train/digits/base/{cell}.tsv").read_text()
        )


def read_numbers(path):
    return pd.read_csv(path, dtype={"prior": str})


def test_the_summary_has_a_row_per_cell(finished):
    summary = read_numbers(finished.results / "summary.csv")
    assert len(summary) == 6
    assert set(summary["trials"]) == {2}
    assert set(summary["first_epoch"]) == {2}
    assert set(summary["last_epoch"]) == {3}

    metrics = pd.read_parquet(finished.results / "metrics.parquet")
    last = metrics[metrics["epoch"] > 1]
    accuracies = last.groupby([*CELL, "seed"])["accuracy"].mean()
    expected = 100 * accuracies.groupby(list(CELL)).mean()
    means = summary.set_index(list(CELL))["mean"]
    np.testing.assert_allclose(means.sort_index(), expected.sort_index())


def test_the_table_has_a_row_per_cell(finished):
    summary = read_numbers(finished.results / "summary.csv")
    table = read_numbers(finished.results / "tables/tiny-table.csv")
    both = table.merge(summary, on=list(CELL), suffixes=("", "_summary"))
    assert len(both) == len(table) == 4
    expected = both["mean_summary"]
    # runs.csv has ten digits
    np.testing.assert_allclose(both["mean"], expected, rtol=1e-9)


# -- what runs again ------------------------------------------------------------------------------


def test_a_second_run_and_dry_runs_change_nothing(finished_clone):
    """The second run says the headline again."""
    before = finished_clone.digests()
    sources = {
        path: path.stat().st_mtime_ns
        for path in finished_clone.folder.glob("[!.]*/**/*")
        if path.is_file()
    }
    *_, headline, path = finished_clone.run(*finished_clone.RUN).stderr.splitlines()
    assert headline in (finished_clone.results / "report.html").read_text(encoding="utf-8")
    assert path.endswith("results/tiny/report.html")
    assert finished_clone.jobs("--config", "protocol={training: {epochs: 4}}")["train"] == 6
    assert finished_clone.digests() == before
    now = {path: path.stat().st_mtime_ns for path in sources}
    assert {
        path for path in now if now[path] != sources[path] and "__pycache__" not in path.parts
    } == set()


CHANGES = {
    "reporting": ("protocol={reporting: {average_last: 1}}", AFTER_TRAINING),
    "margin": ("comparison={margin: 0.5}", JUDGED),
    "rate": (
        "protocol={training: {networks: {mlp: {learning_rate: 0.02}}}}",
        {"train": 6, **AFTER_TRAINING},
    ),
    "rate of another network": (
        "protocol={training: {networks: {resnet34: {learning_rate: 0.02}}}}",
        {"table": 1, "figure": 1, "report": 1},
    ),
    "how n counts": (
        "protocol={sampling: {n_counts: images}}",
        {"split": 3, "train": 6, **AFTER_TRAINING},
    ),
    "a class": (
        "definitions={datasets: {digits: {negative: [1, 3, 5, 7], dropped: [9]}}}",
        {"labels": 1, "sheet": 1, "split": 3, "train": 6, "illustration": 1, **AFTER_TRAINING},
    ),
    "the same again, and how to work": (
        "axes={seed: [1, 2], prior: [0.4, 0.5]}",
        "device=auto",
        {},
    ),
}


def test_a_changed_value_reruns_what_depends_on_it_and_nothing_else(finished):
    found = {name: finished.jobs("--config", *values) for name, (*values, _) in CHANGES.items()}
    assert found == {name: expected for name, (*_, expected) in CHANGES.items()}


def test_an_added_trial_trains_one_run_and_a_rate_changed_and_changed_back_none(finished_clone):
    cell = finished_clone.folder / ABS
    log = finished_clone.folder / "results/logs/train/digits/base/m2/n60/prior0.5/abs.log"
    first = keys(cell)
    finished_clone.snakemake(ABS, "--config", "axes={seed: [1, 2, 3]}")
    assert "3 runs, 2 of them finished" in log.read_text()
    assert len(keys(cell)) == 3
    finished_clone.snakemake(
        ABS, "--config", "protocol={training: {networks: {mlp: {learning_rate: 0.02}}}}"
    )
    assert "2 runs, 0 of them finished" in log.read_text()
    finished_clone.snakemake(ABS)
    assert "2 runs, 2 of them finished" in log.read_text()
    assert len(keys(cell)) == 5
    assert first.items() <= keys(cell).items()


def test_a_raised_recipe_trains_every_cell_again(finished_clone):
    settings = finished_clone.folder / "mdpu" / "settings.py"
    settings.write_text(
        re.sub(r"^RECIPE = (\d+)", r"RECIPE = 1\1", settings.read_text(), flags=re.MULTILINE)
    )
    assert finished_clone.jobs() == {"train": 6, **AFTER_TRAINING}


def test_shipped_runs_are_reused_and_the_rest_is_trained(finished_clone):
    """All runs but one are packed; without the packed file, the cells that it holds train."""
    plan = Plan(load_config([finished_clone.folder / "config" / "tiny.yaml"]))
    files = [plan.layout.run_file(cell) for cell in plan.cells]
    *runs, _ = (one for file in files for one in read_runs(finished_clone.folder / file).values())
    packed = finished_clone.folder / "shipped" / "digits.parquet"
    pack(packed, runs)
    for path in (finished_clone.folder / "results" / "runs").rglob("*.parquet"):
        path.unlink()
    finished_clone.change_config(shipped="shipped")
    assert finished_clone.jobs()["train"] == 1
    before = pd.read_parquet(finished_clone.results / "metrics.parquet")
    finished_clone.snakemake("--until", "collect")
    log = finished_clone.folder / str(files[-1]).replace("/runs/", "/logs/train/").replace(
        ".parquet", ".log"
    )
    assert "2 runs, 1 of them finished" in log.read_text()
    pd.testing.assert_frame_equal(
        before, pd.read_parquet(finished_clone.results / "metrics.parquet")
    )
    described = pd.read_csv(finished_clone.results / "runs.csv")
    # the last cell has a file of its own
    assert described["file"].str.endswith("shipped/digits.parquet").sum() == 10
    packed.unlink()
    assert finished_clone.jobs()["train"] == 6


# -- targets and configurations -------------------------------------------------------------------


def test_a_single_number_is_made_from_nothing(fresh_clone):
    assert fresh_clone.jobs(ABS) == {"dataset": 1, "labels": 1, "split": 1, "train": 1}
    assert not (fresh_clone.folder / "results" / "runs").exists()
    fresh_clone.snakemake(ABS)
    assert sorted(keys(fresh_clone.folder / ABS).values()) == [
        f"digits/m2/n60/prior0.5/seed{seed}" for seed in (1, 2)
    ]
    assert "no selected experiment has" in fresh_clone.snakemake(
        ABS.replace("n60", "n61"), status=1
    )


def test_targets_name_parts_of_the_whole(fresh_clone):
    assert fresh_clone.jobs("datasets") == {"dataset": 1, "datasets": 1}
    assert {"figure", "illustration", "drawing"} <= fresh_clone.jobs("figures").keys()
    nothing = fresh_clone.jobs("--config", "experiments=[figure1, table1]")
    assert nothing.keys() == {"dataset", "labels", "sheet", "illustration", "formulas", "report"}


def test_images_of_ones_own_that_are_replaced_train_again(fresh_clone):
    """Their checksum is not known when the workflow is read, so the job itself puts it into the
    keys.
    """

    def write_images(seed: int) -> None:
        draw = np.random.default_rng(seed)
        arrays = {
            f"{part}_images": draw.integers(0, 255, (200, 4, 4), np.uint8)
            for part in ("train", "test")
        }
        arrays |= {f"{part}_labels": np.arange(200) % 2 for part in ("train", "test")}
        np.savez(fresh_clone.folder / "own.npz", **arrays)

    write_images(0)
    fresh_clone.change_config(
        datasets=["own"],
        experiments=["tiny-curves"],
        axes={"method": ["ure"], "seed": [1]},
        definitions__datasets={
            "own": {"title": "Own", "source": "./own.npz", "positive": [0], "negative": [1]}
        },
        **{"definitions__experiments__tiny-curves__tuple_size": [2]},
    )
    fresh_clone.snakemake("--until", "collect")
    cell = fresh_clone.folder / ABS.replace("digits", "own").replace("abs", "ure")
    first = keys(cell)
    write_images(1)
    fresh_clone.snakemake("--until", "collect")
    assert keys(cell).keys() > first.keys()
    (key,) = keys(cell).keys() - first.keys()
    assert key in pd.read_csv(fresh_clone.results / "runs.csv")["key"].to_list()


def test_the_papers_configuration_is_planned_without_data(fresh_clone):
    """With nine rows of datasets; the SLURM profile asks for its partition."""
    done = fresh_clone.run(
        "python", "-m", "snakemake", "-n", "--profile", "profiles/slurm", "--config", "shipped=null"
    )
    assert re.search(r"^train +\d{3}$", done.stdout + done.stderr, re.MULTILINE)
    assert re.search(r"to train: \d+\.\d hours of one core", done.stderr)
    (gpu_hours,) = re.findall(r"cells of ResNet-34, which are about (\d+) hours", done.stderr)
    assert int(gpu_hours) > 0
    assert "slurm_partition=main" in done.stdout + done.stderr
    assert not (fresh_clone.folder / "data").exists()
    assert {name for name in fresh_clone.digests() if "reference" not in name} == set()


def test_the_case_of_the_catalog_runs_in_its_own_folder(fresh_clone):
    done = fresh_clone.run(
        "python", "-m", "snakemake", "--directory", ".test", "--cores", "2", "--until", "collect"
    )
    config = yaml.safe_load((fresh_clone.folder / ".test" / "config.yaml").read_text())
    assert (fresh_clone.folder / ".test" / "results" / config["name"] / "summary.csv").exists(), (
        done.stderr
    )
