"""A task's numbers are its own on a CPU: whatever its company, cut, threads or interruption, the same bits."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdpu.learn import trainer
from mdpu.pipeline.files import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "benchmarks"))
from own_numbers import Job, Partition, differing

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[("fp32", 3), ("bf16", 2)], ids=str)
def job(request):
    return Job(*request.param)


@given(st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_partition_of_a_job_gives_the_same_bits(job, tmp_path_factory, data):
    """Some tasks of the training job, in any order, with 1 to 4 threads, in one piece or in parts, killed or not."""
    partition = Partition(
        tasks=tuple(data.draw(st.lists(st.sampled_from(job.tasks), min_size=1, unique=True))),
        threads=data.draw(st.integers(1, 4)),
        small_memory=data.draw(st.booleans()),
        killed_after=data.draw(st.none() | st.integers(1, 30)),
    )
    assert differing(job, partition, tmp_path_factory.mktemp("checkpoints")) == []


def test_heads_that_share_a_tensor_would_not(monkeypatch, tmp_path):
    """The test above can fail: with one head for all tasks of a stack, as on a GPU, bits differ."""
    job = Job("fp32", 2)
    tasks = tuple(task for task in job.tasks if task.method in ("abs", "relu-part"))
    whole = Partition(tasks, threads=1, small_memory=False, killed_after=None)
    monkeypatch.setattr(trainer, "make_heads", lambda tasks, policy: [trainer.head_of(tasks[0])(tasks, policy.device)])
    assert differing(job, whole, tmp_path)
