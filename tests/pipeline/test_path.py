"""The files and functions between a user's call and the first change of a weight, printed: pytest
-s shows them.
"""

import inspect
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from configs import config
from test_recipe import SIDES

import mdpu
from mdpu.estimator import MDPUClassifier, Network
from mdpu.pipeline.cli import main
from mdpu.pipeline.config import merge
from mdpu.pipeline.data.labels import write_labels
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.plan import Plan

PACKAGE = Path(mdpu.__file__).parent


class Reached(BaseException):
    """The first step of the optimizer; nothing catches it."""


def print_path(call):
    """Collect what the package calls until the first step, as (file, name), and print it with the
    numbers of both.
    """
    visited: set[tuple[str, str]] = set()

    def note(frame, event, _argument):
        code = frame.f_code
        # no body of a class
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(str(PACKAGE)):
            visited.add((str(Path(code.co_filename).relative_to(PACKAGE)), code.co_qualname))
            if code.co_qualname == "Adam.step":
                raise Reached

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with pytest.raises(Reached):
            call()
    finally:
        sys.setprofile(before)
    listed = "\n".join(f"{file}: {name}" for file, name in sorted(visited))
    files = {file for file, _ in visited}
    print(f"{listed}\n{len(files)} files, {len(visited)} functions")
    assert {"train.py", "losses.py"} <= files


def test_from_the_command_to_the_first_step(tmp_path):
    plan = Plan(merge(config(datasets=["flat"]), {"definitions": {"datasets": {"flat": SIDES}}}))
    cell = "flat/base/m2/n30/prior0.5/abs"
    write_source("digits", tmp_path, None, tmp_path / "images.npz")
    write_labels(tmp_path / "images.npz", tmp_path / "labels.npz", sides=SIDES, counts={})
    write_split(
        tmp_path / "labels.npz", tmp_path / "split.npz", plan.drawing("flat/base/m2/n30/prior0.5")
    )
    given = [
        part
        for name in ("images", "labels", "split")
        for part in (f"--{name}", f"{tmp_path / name}.npz")
    ]
    command = [
        "train",
        *given,
        "--spec",
        json.dumps(plan.spec(cell)),
        "--device",
        "cpu",
        "--out",
        f"{tmp_path}/runs",
    ]
    print_path(lambda: main(command))


def test_from_the_classifier_to_the_first_step():
    images = np.random.default_rng(0).integers(0, 255, (900, 8, 8), np.uint8)
    classifier = MDPUClassifier(0.4, learner=Network(device="cpu"), random_state=0)
    print_path(lambda: classifier.fit(images[:600].reshape(300, 2, 8, 8), images[600:]))
