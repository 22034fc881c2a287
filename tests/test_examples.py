"""The examples run as they are shown, and learn."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

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
    assert {"likelihood", "model_prior", "law_gap"} <= set(done.stdout.split()) or name in (
        "backbone",
        "encoder",
    )
    (accuracy,) = re.findall(r"accuracy (\S+)", done.stdout)
    assert float(accuracy) > least


# -- what the examples watch, on scores whose truth is known ---------------------------------------


def watching():
    spec = importlib.util.spec_from_file_location("watching", EXAMPLES / "watching.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(law, prior, distance=2.0, n=40_000):
    """True log-odds of two Gaussians so far apart, of tuples and of unlabeled instances."""
    stream = Stream(0, "watched")
    generator = np.random.default_rng(0)
    labels = law.draw(prior, n, stream), np.where(stream.uniform(n) < prior, 1, -1)
    scores = (
        distance * (side * distance / 2 + generator.standard_normal(side.shape)) for side in labels
    )
    return tuple(torch.from_numpy(own + np.log(prior / (1 - prior))) for own in scores)


@pytest.mark.parametrize(
    "law", [Law.dominant(2), Law.exactly(3, 1), Law.similar(2), Law.at_least(4, 3).broken(0.1)]
)
def test_at_the_truth_the_model_has_the_told_prior_and_the_told_law(law):
    found = watching().watch(law, 0.4, *drawn(law, 0.4))
    assert found["model_prior"] == pytest.approx(0.4, abs=0.01)
    assert found["law_gap"] < 0.05
    assert 0 < found["likelihood"] < law.joint_information(0.4)


def test_another_law_or_prior_than_the_told_one_shows():
    scores = drawn(Law.dominant(3), 0.4)
    module = watching()
    np.testing.assert_allclose(
        module.fitted_counts(*scores), Law.dominant(3).counts(0.4), atol=0.03
    )
    truth = module.watch(Law.dominant(3), 0.4, *scores)["law_gap"]
    for law, prior in ((Law.exactly(3, 2), 0.4), (Law.dominant(3), 0.8)):
        assert module.watch(law, prior, *scores)["law_gap"] > truth + 0.1
