"""What the workflow trains: a job's runs that are not finished yet, tunings, and finished runs again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import describe, leased_device, memory_budget, resolve_precision
from mdpu.learn.evaluation import TestRates
from mdpu.learn.fitting import fit_each
from mdpu.learn.prior import brief_estimate
from mdpu.learn.task import Task
from mdpu.learn.trainer import Stack
from mdpu.learn.tuning import tune as tune_tasks
from mdpu.pipeline.cache import Finished, cache_of, fingerprint, identity, manifest, own_columns, rates_of, recipes
from mdpu.pipeline.data.diagnostics import write_diagnosed_split
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.labels import read_labels
from mdpu.pipeline.data.splits import read_split
from mdpu.pipeline.files import check, digest, note, origin, read_json, write_csv, write_json
from mdpu.pipeline.history import run_history
from mdpu.pipeline.plan import Plan, Run, TrainJob
from mdpu.pipeline.validation import draw_validation_bags
from mdpu.progress import Steps

FROM_RATES = ("raw_accuracy", "accuracy")  # measures that are products of the rates
Rates = tuple[float, float] | None  # learning rate and weight decay that a tuning chose


def task_of(plan: Plan, run: Run, rates: Rates = None) -> Task:
    """Return the task of a run's model, with the rates that a tuning chose for it, if there was one."""
    training, law = plan.protocol.variant(run.variant)["training"], plan.law(run)
    prior = round(float(run.prior) + float(training["prior_offset"]), 12)
    if (factor := training["shares_factor"]) != 1:
        share = (law or Law.dominant(run.tuple_size)).coefficients(prior).a
        prior = round(factor * prior, 12)
        law = Law.singles(min(1.0, factor * share), prior)
    rate, decay = rates or (None, None)
    target = training["target_prior"]
    return Task(run.method, run.tuple_size, prior, run.loss, run.trial, run.split, rate, decay, law, target)


def law_of(plan: Plan, run: Run) -> Law:
    """Return the law of a run's tuples, with the share of them that are broken."""
    broken: float = plan.protocol.sampling(run.variant, run.n)["broken"]
    return (plan.law(run) or Law.dominant(run.tuple_size)).broken(broken)


def train(plan: Plan, name: str, threads: int = 2) -> None:
    """Train the runs of a job that are not finished, and write its manifest, which names the finished runs of all."""
    started = time.perf_counter()
    job, layout, cache = plan.job(name), plan.layout, cache_of(plan)
    made = recipes(plan, job.runs)
    done = {run: found for run in job.runs if (found := cache.find(map(fingerprint, made[run])))}
    missing = [run for run in job.runs if run not in done]
    print(f"{name}: {len(job.runs)} runs, {len(done)} already trained", file=sys.stderr)
    counts = {"runs": len(job.runs), "reused": len(done)}
    total, checkpoints = len(missing) * plan.epochs_of(job.runs[0]), layout.checkpoints / name
    finished = cache.load(done.values())
    runs = {run: finished[one] for run, one in done.items()}
    with Steps(name, total, "run-epochs", layout.progress(name), **counts) as steps:
        splits = {run.split: layout.split(run.split) for run in missing}
        for run, trained in train_runs(plan, job, missing, splits, threads, checkpoints, steps):
            cache.save(trained)
            runs[run] = trained
    shutil.rmtree(checkpoints, ignore_errors=True)
    facts = {"reused": len(done), "seconds": round(time.perf_counter() - started, 3)}
    ordered = {run: runs[run] for run in job.runs}
    write_json(layout.manifest(name, identity(plan, name)), manifest(name, ordered, **facts))


def train_runs(
    plan: Plan,
    job: TrainJob,
    runs: Sequence[Run],
    splits: Mapping[str, Path],
    threads: int,
    checkpoints: Path | None = None,
    steps: Steps | None = None,
) -> Iterator[tuple[Run, Finished]]:
    """Train runs of a job side by side, and yield each as soon as it is trained.

    `splits` are the files of the runs' splits by name, with their diagnostics (.json) beside them. What has been begun
    in the folder `checkpoints` is resumed.
    """
    if not runs:
        return
    layout, rates = plan.layout, rates_of(plan, runs)
    tasks = {task_of(plan, run, rates[run]): run for run in runs}
    torch.set_num_threads(threads)
    with leased_device(plan.config["device"] if job.needs_gpu else "cpu") as device:
        settings = plan.settings(job.variant, job.network)
        settings = replace(settings, precision=resolve_precision(settings.precision, device))
        made = {run: own[0] for run, own in recipes(plan, runs, settings.precision).items()}

        def checkpoint_of(stack: Stack) -> Checkpoint | None:
            if checkpoints is None:
                return None
            key = digest([fingerprint(made[tasks[task]]) for row in stack for task in row])
            return Checkpoint(checkpoints / f"{key}.pt", key, plan.config["checkpoint_seconds"])

        images, labels = read_images(layout.images(job.dataset)), read_labels(layout.labels(job.dataset))
        trained_now = origin(device=describe(device), precision=settings.precision, date=now())
        evaluation = TestRates(
            images.test_images,
            labels["test"],
            images.train_images,
            labels["train"],
            {run.split: draw_validation_bags(labels["test"], run, law_of(plan, run)) for run in runs},
        )
        for model in fit_each(
            list(tasks),
            images.train_images,
            {name: read_sample(path) for name, path in splits.items()},
            settings,
            labels=labels["train"],
            evaluation=evaluation,
            device=device,
            advance=steps.advance if steps else lambda task_epochs: None,
            checkpoint_of=checkpoint_of,
            memory=memory_budget(device, plan.config["memory_mb"]),
            estimate_prior=brief_estimate,
        ):
            run = tasks[model.task]
            history = run_history(run.method, model.history, evaluation.share_positive)
            diagnostics = read_json(splits[run.split].with_suffix(".json"))
            del diagnostics["drawing"]
            about = {"split": check(splits[run.split]), "diagnostics": diagnostics, "origin": trained_now}
            yield run, Finished.of(made[run], history, **about)


def read_sample(path: Path) -> TupleData:
    """Return a split's file as the learner's sample."""
    split = read_split(path)
    return TupleData(split.tuples, split.unlabeled)


def now() -> str:
    """Return the date and time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def tune(plan: Plan, name: str, threads: int = 2) -> None:
    """Choose a tuning's learning rate and weight decay, without true labels, and write the whole grid as CSV."""
    facts = plan.tuning_settings(name)
    tuning, grid = plan.tunings[name], facts["grid"]["grid"]
    run = tuning.runs[0]
    settings = plan.settings(run.variant, tuning.network)
    tasks = [replace(task_of(plan, run), sample="") for run in tuning.runs]
    torch.set_num_threads(threads)
    points = len(tasks) * len(grid["learning_rate"]) * len(grid["weight_decay"])
    with (
        leased_device(plan.config["device"]) as device,
        Steps(f"{name} on {describe(device)}", points * settings.epochs, "run-epochs") as steps,
    ):
        table = tune_tasks(
            tasks,
            read_images(plan.layout.images(run.dataset)).train_images,
            read_sample(plan.layout.split(run.split)),
            settings,
            grid,
            facts["grid"]["held_out"],
            facts["average_last"],
            device=device,
            advance=steps.advance,
            memory=memory_budget(device, plan.config["memory_mb"]),
        )
        note(device=describe(device))
    write_csv(table, plan.layout.tuned(name))


def retrain(
    plan: Plan, runs: Iterable[Run], out: Path, threads: int | None = None
) -> Iterator[tuple[Run, Finished, Finished]]:
    """Train finished runs again, each by itself, from images and labels; yield the recorded and the new one of each.

    On a CPU of the same kind the history is the same bit for bit. A GPU, another kind of CPU or other software rounds
    differently, and training magnifies the difference.
    """
    cache = cache_of(plan)
    for run in runs:
        found = cache.find(map(fingerprint, recipes(plan, [run])[run]))
        if found is None:
            raise UserError(f"{run.name} is not finished, or its code or protocol has changed since; run the workflow")
        recorded = cache.load([found])[found]
        again = train_again(plan, run, out, threads or plan.config["threads"])
        if again.about["split"] != recorded.about["split"]:
            raise UserError(f"the split of {run.name} comes out otherwise than when it was trained")
        yield run, recorded, again


def train_again(plan: Plan, run: Run, out: Path, threads: int) -> Finished:
    """Train one run by itself, from a split that is drawn anew into a scratch folder."""
    split = out / "splits" / f"{run.split}.npz"
    write_diagnosed_split(plan.layout.labels(run.dataset), split, **plan.drawing(run.split))
    ((_, finished),) = train_runs(plan, plan.job_of(run), [run], {run.split: split}, threads)
    return finished


def compare_histories(recorded: pd.DataFrame, again: pd.DataFrame) -> dict[str, float]:
    """Return the largest absolute difference over a run's epochs of each measure that differs.

    The result is empty if the histories are equal bit for bit, missing values included. Only the accuracies may differ
    in their last bit. They are products of the rates, which BLAS rounds once on some processors and twice on others.
    """
    recorded, again = own_columns(recorded), own_columns(again)  # one that diverged may have lost a column of gaps
    if set(recorded.columns) != set(again.columns) or len(recorded) != len(again):
        raise UserError(
            f"the recorded history has {len(recorded)} epochs of {len(recorded.columns)} columns, the new one "
            f"{len(again)} of {len(again.columns)}: the code or the protocol has changed since; run the workflow again"
        )
    differences = {}
    for measure in recorded.columns:
        old, new = recorded[measure].to_numpy(), again[measure].to_numpy()
        same = (old == new) | (np.isnan(old) & np.isnan(new))
        if measure in FROM_RATES:
            same |= np.abs(old - new) <= np.spacing(np.abs(old))
        if not same.all():
            same_gaps = (np.isnan(old) == np.isnan(new)).all()
            differences[measure] = float(np.nanmax(np.abs(old - new))) if same_gaps else np.inf
    return differences
