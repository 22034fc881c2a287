"""Training that is interrupted, and taken up again."""

from __future__ import annotations

import pandas as pd
import pytest
from blobs import CPU, EPOCHS, SETTINGS, make_tasks

from mdpu.errors import UserError
from mdpu.learn import fit
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.schedule import complete
from mdpu.learn.stacks import make_stacks


class Interrupted(Exception):
    """Stands for whatever ends a job."""


@pytest.fixture
def stack():
    return make_stacks(make_tasks(), True, CPU)[0]


def interrupt(trainer, stack, path, epochs):
    """Train a stack until `epochs` are done, saving after each but the last, and end."""
    left = iter(range(epochs - 1))

    def advance(_):
        if next(left, None) is None:
            raise Interrupted

    with pytest.raises(Interrupted):
        complete(trainer.epochs(stack, checkpoint=Checkpoint(path, "key", 0)), advance)


@pytest.mark.parametrize("epochs", range(1, EPOCHS + 1))
def test_interrupted_training_is_taken_up_to_the_same_bits(epochs, trainer, stack, tmp_path):
    expected = complete(trainer.epochs(stack))
    interrupt(trainer, stack, tmp_path / "c.pt", epochs)
    saved = min(epochs, EPOCHS - 1)
    steps = []
    resumed = complete(trainer.epochs(stack, checkpoint=Checkpoint(tmp_path / "c.pt", "key", 0)), steps.append)
    for task, history in expected.histories.items():
        pd.testing.assert_frame_equal(resumed.histories[task], history, check_exact=True)
    for name, value in expected.network.state().items():
        assert resumed.network.state()[name].equal(value)
    # The epochs that were saved are counted at once, and not trained again.
    count = len(expected.histories)
    assert steps == [count * saved] + [count] * (EPOCHS - saved)


def test_a_checkpoint_of_other_settings_or_a_broken_one_is_refused(trainer, stack, tmp_path):
    path = tmp_path / "c.pt"
    interrupt(trainer, stack, path, 2)
    with pytest.raises(UserError, match=r"checkpoint .*c\.pt is of another configuration; delete it and run again"):
        complete(trainer.epochs(stack, checkpoint=Checkpoint(path, "other", 0)))
    for content in (b"", path.read_bytes()[:1000], b"nonsense"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"checkpoint .*c\.pt is not whole; delete it and run again"):
            complete(trainer.epochs(stack, checkpoint=Checkpoint(path, "key", 0)))


def test_a_finished_stack_leaves_no_checkpoint(blobs, samples, tmp_path):
    written = []

    def checkpoint_of(stack):
        written.append(tmp_path / f"{len(written)}.pt")
        return Checkpoint(written[-1], "key", 0)

    fit(make_tasks(), blobs.images, samples, SETTINGS, checkpoint_of=checkpoint_of, device=CPU)
    assert len(written) == 4
    assert list(tmp_path.iterdir()) == []
