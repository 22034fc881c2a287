"""How tasks are cut into stacks, and how many of them train side by side."""

from __future__ import annotations

from collections import Counter

import pytest
from blobs import make_tasks

from mdpu.learn import trainer as trainer_module
from mdpu.learn.head import Head
from mdpu.learn.method import NetworkMethod
from mdpu.learn.methods import load_method
from mdpu.learn.methods.supervised import SupervisedHead
from mdpu.learn.stacks import make_stacks, workers_for


def test_stacks_hold_every_task_once_and_a_stack_column_is_one_stream():
    tasks = [*make_tasks(), *make_tasks(priors=(0.5,), methods=("ure",))]
    for stack_by in ("stream", "shape"):
        stacks = make_stacks(tasks, True, stack_by)
        assert Counter(task for stack in stacks for row in stack for task in row) == Counter(tasks)
        for stack in stacks:
            assert len({len(row) for row in stack}) == 1
            for column in zip(*stack, strict=True):
                assert len({(task.sample, task.seed) for task in column}) == 1
    assert max(len(stack[0]) for stack in make_stacks(tasks, True, "shape")) > 1
    assert [len(stack) * len(stack[0]) for stack in make_stacks(tasks, False, "shape")] == [1] * len(tasks)


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("stack_by", ["stream", "shape"])
def test_stacks_that_do_not_fit_are_halved_until_they_do(most, stack_by):
    tasks = make_tasks()
    stacks = make_stacks(tasks, True, stack_by, lambda stack: len(stack) * len(stack[0]) <= most)
    assert Counter(task for stack in stacks for row in stack for task in row) == Counter(tasks)
    assert max(len(stack) * len(stack[0]) for stack in stacks) <= most


class EmbeddingHead(Head):
    """Mean squared distance of the members' embeddings from 1."""

    def objective(self, batch):
        return (batch.tuples - 1).square().flatten(1).mean(dim=1), None

    def rates(self, outputs, images):
        positive = outputs(images.images).mean(dim=2) > 0
        return positive.float().mean(dim=1), (~positive).float().mean(dim=1)


@pytest.fixture
def methods(monkeypatch):
    """Two methods of one head with 16 and 64 outputs, and a head that one method lets see labels and one does not."""
    made = {
        "narrow": NetworkMethod("Narrow", EmbeddingHead, outputs=16),
        "wide": NetworkMethod("Wide", EmbeddingHead, outputs=64),
        "seeing": NetworkMethod("Seeing", SupervisedHead, sees_labels=True, control=True),
        "blind": NetworkMethod("Blind", SupervisedHead),
    }
    monkeypatch.setattr(trainer_module, "load_method", lambda name: made.get(name) or load_method(name))
    return made


@pytest.mark.parametrize("stack_by", ["stream", "shape"])
def test_methods_of_one_head_share_a_stack_only_if_outputs_and_sight_of_labels_are_equal(stack_by, methods):
    tasks = make_tasks(methods=("narrow", "wide", "seeing", "blind"))
    stacks = make_stacks(tasks, True, stack_by)
    assert Counter(task for stack in stacks for row in stack for task in row) == Counter(tasks)
    for stack in stacks:
        assert len({task.method for row in stack for task in row}) == 1


@pytest.mark.parametrize(
    ("count", "stacks", "memory", "expected"),
    [
        (1, 9, None, 1),
        (2, 1, None, 1),  # nothing to stand beside it
        (2, 3, None, 2),
        (8, 3, None, 3),  # a stack is one thread's
        (6, 5, None, 5),
        (8, 100, None, 8),
        (8, 100, 70, 4),  # 15 stacks under way are 150 bytes, 7 are 70
        (8, 100, 69, 3),
        (8, 2, 20, 2),
        (8, 100, 1, 1),
    ],
)
def test_as_many_stacks_side_by_side_as_threads_and_memory_allow(threads, count, stacks, memory, expected):
    threads(count)
    assert workers_for(stacks, 10, memory) == expected
