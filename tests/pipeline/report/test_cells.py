"""The cells of the report: trials, curves, verdicts and what the page's script gets of them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import describe_runs, run_accuracies
from mdpu.pipeline.evaluate.comparison import compare
from mdpu.pipeline.evaluate.published import published_summary
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import AXES, Plan
from mdpu.pipeline.report.cells import cell_lines, drawer_data, verdicts_by_cell
from mdpu.pipeline.report.training import Training


@pytest.fixture(scope="module")
def plan():
    overrides = ["datasets=[mnist]", "experiments=[table2]", "axes={prior: [0.5], method: [ure, abs], seed: [1, 2]}"]
    config = load_config([REPOSITORY / "config.yaml"], overrides)
    config["definitions"]["experiments"]["table2"]["method"] = ["ure", "abs"]
    return Plan(config)


@pytest.fixture(scope="module")
def metrics(plan):
    """Sixty epochs of every run; ABS diverges in its second trial."""
    epochs = np.arange(1, 61)
    frames = []
    for run in plan.runs:
        rate = np.full(60, np.nan) if (run.method, run.seed) == ("abs", 2) else 0.6 + 0.31 * epochs / 60
        rates = {"true_positive_rate": rate, "true_negative_rate": rate, "accuracy": rate}
        keys = {axis: getattr(run, axis) for axis in AXES}
        frames.append(pd.DataFrame({**keys, "epoch": epochs, "risk": 0.1, **rates}))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def lines(plan, metrics):
    runs = describe_runs(metrics, run_accuracies(metrics, plan.protocol.reporting()), plan)
    splits = {run.split: f"checksum of {run.split}" for run in plan.runs}
    return cell_lines(plan, runs, metrics, Training([], {run.name: "A" for run in plan.runs}, splits, {}, 1.0, 0))


def test_the_runs_of_a_cell_share_a_line(plan, lines):
    assert [line["name"] for line in lines] == list(dict.fromkeys(run.cell for run in plan.runs))
    by_method = {line["name"].split("/")[-2]: line for line in lines}
    assert [trial["seed"] for trial in by_method["ure"]["trials"]] == [1, 2]
    mean = 100 * (0.6 + 0.31 * np.arange(51, 61) / 60).mean()
    assert by_method["ure"]["trials"][0]["accuracy"] == pytest.approx(mean, abs=0.0051)
    assert by_method["abs"]["trials"][1]["accuracy"] is None
    assert by_method["ure"]["title"] == "MNIST, pairs, n = 10,000, prior 0.5, URE"
    assert by_method["ure"]["epochs"] == "51 to 60"


def test_the_script_gets_every_cell_as_plain_json(lines):
    cells = published_summary().query("dataset == 'mnist'").assign(trials=3, diverged=0, first_epoch=91, last_epoch=100)
    comparison = compare(cells, {"mnist": "mnist"}, {"level": 0.95, "margin": 1.0, "wider_margin": 2.0})
    splits = {trial["split"]: "sum" for line in lines for trial in line["trials"]}
    data = json.loads(json.dumps(drawer_data(lines, verdicts_by_cell(comparison), splits), allow_nan=False))
    for line in lines:
        cell = data["cells"][line["name"]]
        assert cell["verdict"]["difference"] == 0
        assert [data["splits"][place][0] for _, _, place, _ in cell["trials"]] == [t["split"] for t in line["trials"]]
    assert drawer_data(lines, {}, splits)["cells"][lines[0]["name"]]["verdict"] is None
