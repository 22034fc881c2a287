"""Parts of the page that need no browser."""

from __future__ import annotations

import re

import pytest
from contrast import contrast

from mdpu.pipeline.cache import identity
from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY, write_json
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.training import read_training


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the guideline's own borderline grey
    assert contrast("#0072b2", "#0072b2") == 1


def test_text_on_every_ground_can_be_read():
    text = (REPOSITORY / "report/tokens.css").read_text()
    for scheme in (0, 1):
        of = {name: values[scheme] for name, *values in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", text)}
        pairs = [("ink", "page"), ("quiet", "page"), ("quiet", "raised"), ("accent", "page"), ("ink", "marked")]
        pairs += [(f"{tone}-ink", f"{tone}-back") for tone in ("good", "near", "open", "bad")]
        pairs += [("on-solid", tone) for tone in ("good", "near", "open", "bad")]
        low = {pair: contrast(*(of[name] for name in pair)) for pair in pairs}
        assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


def test_the_training_is_summed_up_by_commit_and_device(tmp_path):
    settings = ["datasets=[mnist]", "experiments=[table2, table4]", f"results_dir={tmp_path}"]
    plan = Plan(load_config([REPOSITORY / "config.yaml"], settings))
    made = {"device": "A", "precision": "fp32", "python": "3", "packages": {}, "machine": "m"}
    for position, job in enumerate(plan.jobs.values()):
        names = [run.name for run in job.runs]
        groups = [
            {**made, "commit": "old", "date": "2026-01-02T00:00:00+00:00", "runs": names[:1]},
            {**made, "commit": "new", "date": f"2026-02-0{position + 1}T00:00:00+00:00", "runs": names[1:]},
        ]
        splits = {split: {"sha256": f"sum of {split}", "p_value": 0.5} for split in job.splits}
        facts = {"trained": groups, "splits": splits, "reused": 1, "seconds": 60.0}
        write_json(plan.layout.manifest(job.name, identity(plan, job.name)), facts)
    training = read_training(plan)
    jobs = len(plan.jobs)
    old, new = training.origins
    assert (old["letter"], old["commit"], old["runs"], old["first"]) == ("A", "old", jobs, "2026-01-02")
    assert (new["letter"], new["commit"], new["runs"]) == ("B", "new", len(plan.runs) - jobs)
    assert (new["first"], new["last"]) == ("2026-02-01", f"2026-02-0{jobs}")
    assert (training.seconds, training.reused) == (60.0 * jobs, jobs)
    assert set(training.letters) == {run.name for run in plan.runs}
    assert training.splits == {run.split: f"sum of {run.split}" for run in plan.runs}
    assert training.diagnostics == {run.split: {"p_value": 0.5} for run in plan.runs}
