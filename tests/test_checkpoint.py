"""A checkpoint gives back what was saved, or, whatever became of it, a beginning."""

from __future__ import annotations

import pytest
import torch

from mdpu.learn.checkpoint import Checkpoint
from mdpu.seals import seal_path


@pytest.fixture
def saved(tmp_path):
    """A checkpoint after three epochs of a layer's training, with its parts."""
    torch.manual_seed(1)
    state = {"weight": torch.randn(3, 2, requires_grad=True)}
    optimizer = torch.optim.Adam(state.values(), lr=0.1)
    history = torch.arange(10.0)
    state["weight"].sum().backward()
    optimizer.step()
    path = tmp_path / "a.pt"
    Checkpoint(path, "key", 0).save_if_due({"weight": state["weight"].detach()}, optimizer, history, 3)
    return path, state["weight"].detach().clone(), history


def restore(path, key="key"):
    weight = torch.zeros(3, 2)
    parameter = torch.zeros(3, 2, requires_grad=True)
    optimizer, history = torch.optim.Adam([parameter], lr=0.1), torch.zeros(10)
    epochs = Checkpoint(path, key, 0).restore({"weight": weight}, optimizer, history)
    return epochs, weight, optimizer, history


def test_what_was_saved_comes_back(saved):
    path, weight, history = saved
    epochs, restored, optimizer, restored_history = restore(path)
    assert epochs == 3
    assert torch.equal(restored, weight)
    assert torch.equal(restored_history, history)
    assert optimizer.state_dict()["state"][0]["step"] == 1


def flip(content):
    middle = content.index(b"\x00\x00\x80?")  # 1.0 of the history
    return content[:middle] + b"\x01" + content[middle + 1 :]


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:1000], lambda content: b"nonsense", flip]
)
@pytest.mark.parametrize("sealed", [True, False])
def test_a_damaged_one_is_said_and_not_used(saved, capsys, damage, sealed):
    path, _, _ = saved
    path.write_bytes(damage(path.read_bytes()))
    if not sealed:
        if damage is flip:
            pytest.skip("torch alone does not notice a flipped bit")
        seal_path(path).unlink()
    epochs, weight, optimizer, history = restore(path)
    assert (epochs, weight.any(), history.any(), optimizer.state_dict()["state"]) == (0, False, False, {})
    assert capsys.readouterr().err == f"checkpoint {path} is not what was written; training begins anew\n"


def test_one_of_another_configuration_is_not_used(saved, capsys):
    assert restore(saved[0], "other")[0] == 0
    assert "training begins anew" in capsys.readouterr().err


def test_none_is_a_beginning_without_a_word(tmp_path, capsys):
    assert restore(tmp_path / "a.pt")[0] == 0
    assert capsys.readouterr().err == ""


def test_a_removed_one_leaves_nothing(saved):
    Checkpoint(saved[0], "key", 0).remove()
    assert list(saved[0].parent.iterdir()) == []
