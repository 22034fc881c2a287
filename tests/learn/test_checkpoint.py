"""Training that is interrupted, and taken up again."""

from __future__ import annotations

import hashlib
import io

import pandas as pd
import pytest
import torch
from blobs import CPU, EPOCHS, SETTINGS, complete, make_tasks

from mdpu.learn import fit
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.stacks import make_stacks


class Interrupted(Exception):
    """Stands for whatever ends a job."""


@pytest.fixture
def stack():
    return make_stacks(make_tasks(), True, "stream")[0]


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


def test_a_finished_stack_leaves_no_checkpoint(blobs, samples, tmp_path):
    written = []

    def checkpoint_of(stack):
        written.append(tmp_path / f"{len(written)}.pt")
        return Checkpoint(written[-1], "key", 0)

    fit(make_tasks(), blobs.images, samples, SETTINGS, checkpoint_of=checkpoint_of, device=CPU)
    assert len(written) == 4
    assert list(tmp_path.iterdir()) == []


# -- the file -------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    """A checkpoint after three epochs, with its parts."""
    torch.manual_seed(1)
    weight, history, path = torch.randn(3, 2), torch.arange(10.0), tmp_path / "a.pt"
    Checkpoint(path, "key", 0).save_if_due({"weight": weight}, history, 3)
    return path, weight, history


def restore(path, key="key"):
    weight, history = torch.zeros(3, 2), torch.zeros(10)
    return Checkpoint(path, key, 0).restore({"weight": weight}, history), weight, history


def flip(content):
    middle = content.index(b"\x00\x00\x80?")  # 1.0 of the history
    return content[:middle] + b"\x01" + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:1000], lambda content: b"nonsense", flip]
)
def test_a_damaged_one_is_said_and_not_used(saved, capsys, damage):
    path, _, _ = saved
    path.write_bytes(damage(path.read_bytes()))
    epochs, weight, history = restore(path)
    assert (epochs, weight.any(), history.any()) == (0, False, False)
    assert capsys.readouterr().err == f"checkpoint {path} is not what was written; training begins anew\n"


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 10**6},
        {"epochs": 0},
        {"epochs": -1},
        {"epochs": "many"},
        {"history": torch.zeros(5, 1, 2)},
        {"key": ""},
    ],
)
def test_a_whole_file_that_says_what_cannot_be_is_not_used(tmp_path, capsys, change):
    """Its digest is right: somebody wrote it so."""
    history, state = torch.zeros(4, 1, 2), {"weight": torch.zeros(3)}
    saved = {"key": "key", "epochs": 2, "state": {"weight": torch.ones(3)}, "history": torch.ones(4, 1, 2)}

    def restore(content):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        digest = hashlib.sha256(buffer.getvalue()).digest()
        (tmp_path / "c.pt").write_bytes(digest + buffer.getvalue())
        return Checkpoint(tmp_path / "c.pt", "key", 0).restore(state, history)

    assert restore({**saved, **change}) == 0
    assert "training begins anew" in capsys.readouterr().err
    assert not state["weight"].any()
    assert restore(saved) == 2
    assert state["weight"].all()
