"""How many files and functions lie between a command and the first change of a weight.

`tests/test_estimator.py` asks the same of the classifier.
"""

from __future__ import annotations

import inspect
import json
import sys
from contextlib import contextmanager
from pathlib import Path

from configs import config
from test_recipe import SIDES

import mdpu
from mdpu.pipeline.cli import main
from mdpu.pipeline.config import merge
from mdpu.pipeline.data.labels import write_labels
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.plan import Plan

PACKAGE = Path(mdpu.__file__).parent
FILES, FUNCTIONS = 17, 82


class Reached(BaseException):
    """The first step of the optimizer; nothing catches it."""


@contextmanager
def traced():
    """Collect the functions of the package that are called until the first step, as (file, name)."""
    visited: set[tuple[str, str]] = set()

    def note(frame, event, _argument):
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")  # no body of a class
        if event == "call" and is_function and code.co_filename.startswith(str(PACKAGE)):
            visited.add((str(Path(code.co_filename).relative_to(PACKAGE)), code.co_qualname))
            if code.co_qualname == "Adam.step":
                raise Reached

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield visited
    except Reached:
        pass
    finally:
        sys.setprofile(before)


def report(visited):
    """Return the functions by file, for the message of a test that fails."""
    return "\n".join(f"{file}: {name}" for file, name in sorted(visited))


def test_the_way_from_the_command_to_the_first_step_is_short(tmp_path):
    plan = Plan(merge(config(datasets=["flat"]), {"definitions": {"datasets": {"flat": SIDES}}}))
    cell = "flat/base/m2/n30/prior0.5/abs"
    write_source("digits", tmp_path, None, tmp_path / "images.npz")
    write_labels(tmp_path / "images.npz", tmp_path / "labels.npz", sides=SIDES, counts={})
    write_split(tmp_path / "labels.npz", tmp_path / "split.npz", plan.drawing("flat/base/m2/n30/prior0.5"))
    files = {name: str(tmp_path / f"{name}.npz") for name in ("images", "labels", "split")}
    given = [part for name, file in files.items() for part in (f"--{name}", file)]
    command = [
        "train",
        *given,
        "--spec",
        json.dumps(plan.spec(cell)),
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "runs"),
    ]
    with traced() as visited:
        main(command)
    assert ("train.py", "Adam.step") in visited
    assert len({file for file, _ in visited}) <= FILES, report(visited)
    assert len(visited) <= FUNCTIONS, report(visited)
