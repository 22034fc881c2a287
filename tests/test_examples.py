"""The examples run as they are shown, and learn."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import logit

from mdpu.law import Law
from mdpu.randomness import Stream

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
COMMANDS = {
    "plain_loop": ((), 0.85),
    "lightning_loop": ((), 0.85),
    "torchrun_loop": (TORCHRUN, 0.85),
    "text_trainer": ((), 0.8),
    "backbone": ((), 0.75),
    "encoder": ((), 0.65),
}


def test_every_example_is_run():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == COMMANDS.keys() | {"digits", "watching"}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_learns(name, tmp_path):
    launcher, least = COMMANDS[name]
    command = [sys.executable, *launcher, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    if name not in ("backbone", "encoder"):
        assert {"likelihood", "model_prior", "law_gap"} <= set(done.stdout.split())
    (accuracy,) = re.findall(r"accuracy (\S+)", done.stdout)
    assert float(accuracy) > least


# -- what the examples watch, on scores whose truth is known ---------------------------------------


@pytest.fixture(scope="module")
def watching():
    spec = importlib.util.spec_from_file_location("watching", EXAMPLES / "watching.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_scores(labels, prior, generator, distance=2.0):
    """True log-odds of two Gaussians so far apart."""
    positions = labels * distance / 2 + generator.standard_normal(labels.shape)
    return torch.from_numpy(distance * positions + logit(prior))


def drawn(law, prior, n=40_000):
    """True log-odds of tuples and of unlabeled instances."""
    stream = Stream(0, "watched")
    generator = np.random.default_rng(0)
    members = law.draw(prior, n, stream)
    unlabeled = np.where(stream.uniform(n) < prior, 1, -1)
    of_members = draw_scores(members, prior, generator)
    return of_members, draw_scores(unlabeled, prior, generator)


@pytest.mark.parametrize(
    "law", [Law.dominant(2), Law.exactly(3, 1), Law.similar(2), Law.at_least(4, 3).broken(0.1)]
)
def test_at_the_truth_the_model_has_the_told_prior_and_the_told_law(watching, law):
    watched = watching.watch(law, 0.4, *drawn(law, 0.4))
    assert watched["model_prior"] == pytest.approx(0.4, abs=0.01)
    assert watched["law_gap"] < 0.05
    assert 0 < watched["likelihood"] < law.joint_information(0.4)


def test_counts_are_fitted_to_the_scores_of_tuples(watching):
    law = Law.dominant(3)
    counts = watching.fitted_counts(*drawn(law, 0.4))
    np.testing.assert_allclose(counts, law.counts(0.4), atol=0.03)


def test_another_law_or_prior_than_the_told_one_shows(watching):
    law = Law.dominant(3)
    scores = drawn(law, 0.4)
    at_the_truth = watching.watch(law, 0.4, *scores)["law_gap"]
    for wrong_law, prior in ((Law.exactly(3, 2), 0.4), (law, 0.8)):
        gap = watching.watch(wrong_law, prior, *scores)["law_gap"]
        assert gap > at_the_truth + 0.1
