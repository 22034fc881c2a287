"""``docs/how-to/add-method.md`` does what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from mdpu.pipeline.files import REPOSITORY


@pytest.mark.slow
def test_the_guide_literally(tmp_path: Path) -> None:
    """Files and commands are taken from the page; only the repository that they run in is a copy."""
    for name in ("mdpu", "workflow", "report", "profiles", "config", "envs"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(REPOSITORY / name, tmp_path)
    guide = (REPOSITORY / "docs" / "how-to" / "add-method.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"`([\w/.-]+)`[^\n]*:\n\n```(?:python|yaml)\n(.*?)```", guide, re.DOTALL))
    assert set(files) == {"mdpu/learn/methods/ber.py", "config/ber.yaml"}
    for name, text in files.items():
        assert not (tmp_path / name).exists()
        (tmp_path / name).write_text(text, encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    planned = [line for line in done.stdout.splitlines() if line.startswith("digits/base/m2/")]
    assert {line.split("/")[5] for line in planned} == {"abs", "ber", "supervised", "chance"}
    table = pd.read_csv(tmp_path / "results" / "ber" / "tables" / "ber-pairs.csv").set_index("method")
    accuracy = table["mean"]
    assert accuracy["supervised"] > accuracy["ber"] > accuracy["chance"] + 10
