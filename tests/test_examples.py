"""The examples run as they are shown, are short, and learn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
COMMANDS = {
    "plain_loop": ((), 0.85),
    "lightning_loop": ((), 0.85),
    "torchrun_loop": (TORCHRUN, 0.85),
    "text_trainer": ((), 0.8),
}


def test_every_example_is_run_and_has_at_most_sixty_lines():
    files = {path.stem: path for path in EXAMPLES.glob("*.py")}
    assert files.keys() == COMMANDS.keys() | {"digits", "watching"}
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in files.values()) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_learns(name, tmp_path):
    launcher, least = COMMANDS[name]
    command = [sys.executable, *launcher, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"likelihood", "model_prior", "law_gap"} <= set(done.stdout.split())
    (accuracy,) = re.findall(r"accuracy (\S+)", done.stdout)
    assert float(accuracy) > least
