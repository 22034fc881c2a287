"""The prior of a split by command: what is written and printed, and how mistakes end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from mdpu.pipeline import cli
from mdpu.pipeline.data.images import write_images
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.data.splits import draw_split, write_split
from mdpu.pipeline.files import REPOSITORY


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options of a command on pairs of digits at prior 0.4."""
    folder = Path(tmp_path_factory.mktemp("prior"))
    images = SOURCES["digits"].read(folder / "downloads")
    write_images(images, folder / "digits.npz")
    labels = binarize(images, list("02468"), list("13579"))["train"]
    write_split(draw_split(labels, 2, 0.4, 1200, 1200, 1), folder / "m2-p0.4-s1.npz")
    training = {"epochs": 12, "networks": {"mlp": {"hidden": [64], "batch_size": 300}}}
    over = {"device": "cpu", "protocol": {"training": training}, "tuning": {"held_out": 0.3}}
    (folder / "over.yaml").write_text(yaml.safe_dump(over))
    configs = ["--config", str(REPOSITORY / "config.yaml"), "--config", str(folder / "over.yaml")]
    return [*configs, "--images", str(folder / "digits.npz"), "--split", str(folder / "m2-p0.4-s1.npz")]


def estimate_prior(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mdpu", "estimate-prior", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(("told", "fits"), [("0.4", True), ("0.7", False)])
def test_the_estimate_is_written_and_a_told_prior_that_does_not_fit_is_warned_of(
    inputs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told, fits
) -> None:
    out = tmp_path / "prior.json"
    assert estimate_prior(monkeypatch, *inputs, "--out", str(out), "--told", told, "--threads", "1") == 0
    written = json.loads(out.read_text())
    assert written["prior"] == pytest.approx(0.4, abs=0.12)
    assert 0 < written["low"] < written["prior"] < written["high"] < 1
    assert written["fits"] is fits is (written["low"] <= written["told"] <= written["high"])
    printed = capsys.readouterr().out
    assert f"prior {written['prior']:.3f}" in printed
    assert ("warning" in printed) is not fits


def test_what_is_no_prior_is_refused_before_anything_is_trained(
    inputs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "prior.json"
    assert estimate_prior(monkeypatch, *inputs, "--out", str(out), "--told", "1.2") == 2
    assert "prior 1.2 is not strictly between 0 and 1" in capsys.readouterr().err
    assert not out.exists()


def test_single_images_are_refused(
    inputs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "m1.npz", tuples=np.arange(100)[:, None], unlabeled=np.arange(100))
    arguments = [*inputs[:-1], str(tmp_path / "m1.npz"), "--out", str(tmp_path / "prior.json")]
    assert estimate_prior(monkeypatch, *arguments) == 2
    assert "do not say what the prior is" in capsys.readouterr().err
