"""What a configuration would take: runs to train and to reuse, hours on this machine, what to download and to store."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from mdpu.learn import Sample, Task, fit
from mdpu.learn.device import choose_device, describe
from mdpu.learn.prior import brief_estimate
from mdpu.pipeline.cache import unfinished
from mdpu.pipeline.console.preflight import raw_files, size_of
from mdpu.pipeline.console.stages import words
from mdpu.pipeline.console.work import FITTED, START_SECONDS, images_shown, kind_of, makespan
from mdpu.pipeline.data.download import list_absent
from mdpu.pipeline.plan import Cohort, Plan, Run
from mdpu.pipeline.train import settings_on

REUSE, STALE, STORED, NEW = "reuse", "stale", "stored", "new"
"""States of a run: finished as it would be; finished, but trained in another way; finished, and it turns out once its
split is drawn; not finished."""

EPOCH_BYTES = 600  # of a run's epoch in its finished run, in histories and in metrics
INDEX_BYTES = 8  # of an image in a split
TRIAL_SECONDS = 3.0  # that the speed of a network is measured for, at least
TRIAL_EPOCHS = 10_000
TRIAL_SHAPES = {"mlp": (28, 28), "resnet34": (32, 32, 3)}
TRIAL_TUPLES = {"resnet34": 16}  # in a minibatch; an epoch of a large network takes hours on a CPU


def states_of(plan: Plan) -> dict[Run, str]:
    """Return the state of each run of a plan: `REUSE`, `STALE`, `STORED` or `NEW`.

    Raises
    ------
    UserError
        If the configuration asks for a GPU and there is none, or tuned rates cannot be read.
    """
    left = {run for runs in unfinished(plan).values() for run in runs}
    return {run: NEW if run in left else REUSE for run in plan.runs}


def measure_speed(plan: Plan, cohort: Cohort) -> float:
    """Return the seconds that this machine takes to show one image to one model of a cohort, measured on noise.

    The model trains on one thread, or on the GPU, until `TRIAL_SECONDS` are over. On a GPU the models of a stack share
    its time, so a cohort is faster than that.
    """
    run, device = cohort.runs[0], choose_device(plan.config["device"])
    shape = TRIAL_SHAPES.get(cohort.network, (28, 28))
    n = min(run.n, TRIAL_TUPLES.get(cohort.network, run.n))
    noise = np.random.default_rng(0)
    images = noise.integers(0, 256, size=(1000, *shape), dtype=np.uint8)
    sample = Sample(noise.integers(0, 1000, size=(n, run.tuple_size)), noise.integers(0, 1000, size=n))
    ends: list[float] = []

    def advance(_epochs: int) -> None:
        ends.append(time.perf_counter())
        if len(ends) > 1 and ends[-1] - ends[0] > TRIAL_SECONDS:
            raise _EnoughError

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        fit(
            [Task(run.method, run.tuple_size, float(run.prior), run.loss)],
            images,
            sample,
            replace(settings_on(plan, cohort, device), epochs=TRIAL_EPOCHS),
            labels=noise.choice(np.array([1, -1], dtype=np.int8), size=1000),
            device=device,
            advance=advance,
            estimate_prior=brief_estimate,
        )
    except _EnoughError:
        pass
    finally:
        torch.set_num_threads(threads)
    return (ends[-1] - ends[0]) / (len(ends) - 1) / (n * (run.tuple_size + 1))


class _EnoughError(Exception):
    """Ends a trial."""


def seconds_by_network(plan: Plan, runs: Collection[Run], cores: int) -> dict[str, float]:
    """Return about how many seconds the training of runs takes on this machine, if nothing else works on it.

    The result has an entry for each network, and one for all methods that train none.
    """
    speeds: dict[str, float] = {FITTED: 0.0}
    jobs: dict[str, list[float]] = {}
    for cohort in plan.cohorts.values():
        own = [run for run in cohort.runs if run in runs]
        if not own:
            continue
        kind = kind_of(cohort)
        if kind not in speeds:
            speeds[kind] = measure_speed(plan, cohort)
        threads = min(plan.config["threads"] if cohort.needs_gpu else 1, cores)
        jobs.setdefault(kind, []).append(START_SECONDS + images_shown(plan, own) * speeds[kind] / threads)
    on_gpu = choose_device(plan.config["device"]).type == "cuda"
    slots = 1 if on_gpu else max(1, cores // plan.config["threads"])
    return {kind: makespan([], sorted(seconds, reverse=True), slots) for kind, seconds in jobs.items()}


def bytes_to_store(plan: Plan, runs: Collection[Run]) -> int:
    """Return about how many bytes images, splits, histories and finished runs will take that are not there yet."""
    images: dict[Path, int] = {}
    for dataset in plan.datasets:
        path = plan.layout.images(dataset)
        counts = plan.dataset(dataset).get("counts", {})
        number = sum(side for part in counts.values() for side in part.values())
        pixels = math.prod(TRIAL_SHAPES.get(plan.network(dataset), (28, 28)))
        if not path.exists():
            images[path] = max(images.get(path, 0), number * pixels)  # datasets may share a source
    drawn = {run.split: plan.images_of(run) for run in plan.runs if not plan.layout.split(run.split).exists()}
    histories = sum(EPOCH_BYTES * plan.epochs_of(run) for run in runs)
    return sum(images.values()) + INDEX_BYTES * sum(drawn.values()) + histories


def forecast(plan: Plan) -> list[str]:
    """Return lines that say what a configuration would take.

    Raises
    ------
    UserError
        If the configuration asks for a GPU and there is none.
    """
    states = states_of(plan)
    counts = Counter(states.values())
    to_train = {run for run, state in states.items() if state in (NEW, STALE)}
    cores = os.cpu_count() or 1
    seconds = seconds_by_network(plan, to_train, cores)
    absent = list_absent(raw_files(plan), plan.layout.data_dir)
    on = describe(choose_device(plan.config["device"]))
    stale = f", {counts[STALE]} of them trained before in another way" if counts[STALE] else ""
    stored = f", and {counts[STORED]} more if their splits are the same" if counts[STORED] else ""
    each = ", ".join(f"{words(time)} for {kind}" for kind, time in seconds.items())
    time_needed = f"about {each}, on {cores} cores ({on})" if to_train else "no training"
    files = f"{size_of(sum(archive.size or 0 for archive in absent))} in {len(absent)} files" if absent else "nothing"
    return [
        f"{len(states)} runs in {len(plan.cohorts)} cohorts, {len(plan.splits)} splits, {len(plan.datasets)} datasets",
        f"train     {len(to_train)} runs{stale}",
        f"reuse     {counts[REUSE]} runs{stored}",
        f"time      {time_needed}",
        f"download  {files}",
        f"store     about {size_of(bytes_to_store(plan, to_train))} in {plan.layout.results}",
    ]
