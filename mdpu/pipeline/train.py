"""Work on the runs of a plan: train a cohort, tune its rates, retrain recorded runs."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from mdpu.errors import UserError
from mdpu.learn.checkpoint import Checkpoint
from mdpu.learn.device import describe, leased_device, memory_budget, resolve_precision
from mdpu.learn.evaluation import TestRates
from mdpu.learn.fitting import fit_each
from mdpu.learn.prior import estimate_prior as estimate_prior_of
from mdpu.learn.task import Precision, Sample, Settings, Task
from mdpu.learn.trainer import Stack
from mdpu.learn.tuning import chosen_rates
from mdpu.learn.tuning import tune as tune_tasks
from mdpu.pipeline.cache import RunStore, fingerprint, group_by_origin, own_columns
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.data.labels import read_labels
from mdpu.pipeline.data.splits import read_split
from mdpu.pipeline.files import (
    digest,
    origin,
    provenance,
    read_csv,
    read_table,
    remove,
    write_csv,
    write_json,
    write_table,
)
from mdpu.pipeline.grid import AXES, Cohort, Run
from mdpu.pipeline.history import run_history
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.seals import check
from mdpu.pipeline.validation import draw_validation_bags
from mdpu.progress import Steps
from mdpu.theory import check_prior

FROM_RATES = ("raw_accuracy", "accuracy")  # measures that are products of the rates
CHOSEN_BY_HARDWARE: tuple[Precision, ...] = ("bf16", "fp32")  # the precisions that ``auto`` may stand for


@dataclass(frozen=True)
class Files:
    """Files that training reads and writes; in the workflow their paths are those of `Plan.layout`.

    Attributes
    ----------
    images, labels : Path
        Images of the dataset's source, and labels of the dataset.
    splits : Path
        Folder of splits.
    store : Path
        Folder of finished runs; unchanged ones are reused.
    checkpoints : Path
        Folder of unfinished training, which is resumed.
    out : Path
        Histories to write, with provenance (.json) beside them.
    tuned : Path, optional
        The choice of `tune`, if there was one.
    progress : Path, optional
        JSON file that says how far training is, for who watches.
    """

    images: Path
    labels: Path
    splits: Path
    store: Path
    checkpoints: Path
    out: Path
    tuned: Path | None = None
    progress: Path | None = None


def task_of(plan: Plan, run: Run, rates: tuple[float, float] | None = None) -> Task:
    """Return the task of a run's model.

    Parameters
    ----------
    plan : Plan
    run : Run
    rates : tuple of float, optional
        Learning rate and weight decay, if a tuning chose them.
    """
    offset = float(plan.protocol.variant(run.variant)["training"]["prior_offset"])
    rate, decay = rates or (None, None)
    prior = round(float(run.prior) + offset, 12)
    return Task(run.method, run.tuple_size, prior, run.loss, run.trial, run.split, rate, decay)


def tasks_of(plan: Plan, runs: Iterable[Run], tuned: Path | None) -> dict[Run, Task]:
    """Return the tasks of runs; the rates of tuned ones are those that `tune` chose and wrote to `tuned`."""
    runs = list(runs)
    rates = chosen_rates(read_csv(tuned), [run.method for run in runs]) if tuned else {}
    return {run: task_of(plan, run, rates.get(run.method)) for run in runs}


def settings_on(plan: Plan, cohort: Cohort, device: torch.device) -> Settings:
    """Return the trainer's settings for a cohort, with the precision that is used on a device."""
    settings = plan.settings(cohort.variant, cohort.network)
    return replace(settings, precision=resolve_precision(settings.precision, device))


def accepted_settings(plan: Plan, cohort: Cohort, device: torch.device) -> list[Settings]:
    """Return the settings with which a finished run of a cohort counts, those that are used on a device first.

    With ``auto`` the hardware chooses the precision. So a run counts that other hardware trained in another precision.
    """
    own = settings_on(plan, cohort, device)
    if plan.settings(cohort.variant, cohort.network).precision != "auto":
        return [own]
    return [own, *(replace(own, precision=other) for other in CHOSEN_BY_HARDWARE if other != own.precision)]


def fingerprints_of(
    tasks: Mapping[Run, Task], accepted: Sequence[Settings], files: Files, split_files: Mapping[str, Path]
) -> dict[Run, list[str]]:
    """Return the fingerprints of runs, which decide whether a finished run is reused: one for each of the settings.

    Parameters
    ----------
    tasks : mapping from Run to Task
    accepted : sequence of Settings
        As `accepted_settings` returns them.
    files : Files
    split_files : mapping from str to Path
        Files of splits by name.

    Raises
    ------
    UserError
        If a file is missing or broken.
    """
    shared = {"images": check(files.images), "labels": check(files.labels)}
    sums = {split: check(path) for split, path in split_files.items()}
    return {
        run: [fingerprint(run, task, settings, {**shared, "split": sums[run.split]}) for settings in accepted]
        for run, task in tasks.items()
    }


def files_of(plan: Plan, cohort: Cohort) -> Files:
    """Return the files of a cohort as the workflow lays them out."""
    layout = plan.layout
    tuning = next(filter(None, map(plan.tuning_name, cohort.runs)), None)
    return Files(
        layout.images(cohort.dataset),
        layout.labels(cohort.dataset),
        layout.results / "splits",
        layout.store,
        layout.checkpoints,
        layout.history(cohort.name),
        layout.tuned(tuning) if tuning else None,
        layout.progress(cohort.name),
    )


def train(plan: Plan, name: str, files: Files, threads: int = 2, only: Sequence[str] = ()) -> None:
    """Train the runs of a cohort that are not in the store, and write the histories of all its runs.

    Parameters
    ----------
    plan : Plan
    name : str
        Of the cohort.
    files : Files
    threads : int
        CPU threads.
    only : sequence of str
        Names of the runs to train; all runs of the cohort if empty.

    Raises
    ------
    UserError
        If the plan has no such cohort or run, a file is missing or broken, or even a single run needs too much memory.
    """
    started = time.perf_counter()
    cohort = plan.cohort(name)
    runs = cohort.select(only) if only else cohort.runs
    torch.set_num_threads(threads)
    with leased_device(plan.config["device"] if cohort.needs_gpu else "cpu") as device:
        accepted = accepted_settings(plan, cohort, device)
        settings = accepted[0]
        tasks = tasks_of(plan, runs, files.tuned)
        split_files = {split: files.splits / f"{split}.npz" for split in sorted({run.split for run in runs})}
        fingerprints = fingerprints_of(tasks, accepted, files, split_files)
        store = RunStore(files.store)
        histories = {run: history for run in runs if (history := store.load(run, fingerprints[run])) is not None}
        missing = {task: run for run, task in tasks.items() if run not in histories}
        print(f"{name}: {len(runs)} runs, {len(histories)} already trained", file=sys.stderr)
        trained_on = describe(device)

        def checkpoint_of(stack: Stack) -> Checkpoint:
            key = digest([fingerprints[missing[task]][0] for row in stack for task in row])
            return Checkpoint(files.checkpoints / name / f"{key}.pt", key, plan.config["checkpoint_seconds"])

        steps = Steps(
            f"{name} on {trained_on}",
            len(missing) * settings.epochs,
            "run-epochs",
            files.progress,
            runs=len(runs),
            reused=len(runs) - len(missing),
        )
        with steps:
            if missing:
                images, labels = read_images(files.images), read_labels(files.labels)
                broken = plan.protocol.variant(cohort.variant)["sampling"]["broken"]
                trained_now = origin(device=trained_on, precision=settings.precision, date=now())
                evaluation = TestRates(
                    images.test_images,
                    labels["test"],
                    images.train_images,
                    labels["train"],
                    {run.split: draw_validation_bags(labels["test"], run, broken) for run in missing.values()},
                )
                for model in fit_each(
                    list(missing),
                    images.train_images,
                    {run.split: read_sample(split_files[run.split]) for run in missing.values()},
                    settings,
                    labels=labels["train"],
                    evaluation=evaluation,
                    device=device,
                    advance=steps.advance,
                    checkpoint_of=checkpoint_of,
                    memory=memory_budget(device, plan.config["memory_mb"]),
                ):
                    run = missing[model.task]
                    history = run_history(run, model.history, evaluation.share_positive)
                    histories[run] = store.save(run, history, fingerprints[run][0], trained_now)

    write_table(pd.concat([histories[run] for run in runs], ignore_index=True), files.out)
    shutil.rmtree(files.checkpoints / name, ignore_errors=True)
    facts = {
        "cohort": name,
        "runs": len(runs),
        "reused": len(runs) - len(missing),
        "trained": group_by_origin({run: histories[run] for run in runs}),
        "fingerprints": {run.name: histories[run].attrs["fingerprint"] for run in runs},
        "settings": plan.settings(cohort.variant, cohort.network).flat(),
    }
    inputs = [files.images, files.labels, *split_files.values(), *([files.tuned] if files.tuned else [])]
    write_json(files.out.with_suffix(".json"), provenance(started, inputs, device=trained_on, **facts))


def read_sample(path: Path) -> Sample:
    """Return a split's file as the learner's sample."""
    split = read_split(path)
    return Sample(split.tuples, split.unlabeled)


def now() -> str:
    """Return the date and time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def tune(plan: Plan, name: str, images: Path, split: Path, out: Path, threads: int = 2) -> None:
    """Choose learning rate and weight decay from the grid, without true labels, and write the whole grid as CSV.

    Parameters
    ----------
    plan : Plan
    name : str
        Of the tuning, e.g. ``mnist/base/m2``.
    images, split : Path
        Images of the dataset's source, and the split of the tuning's own trial.
    out : Path
        CSV to write, with provenance (.json) beside it.
    threads : int
        CPU threads.

    Raises
    ------
    UserError
        If the plan has no such tuning, or a file is missing or broken.
    """
    started = time.perf_counter()
    facts = plan.tuning_settings(name)
    tuning, grid = plan.tunings[name], facts["grid"]["grid"]
    settings = plan.settings(tuning.runs[0].variant, tuning.network)
    tasks = [replace(task_of(plan, run), sample="") for run in tuning.runs]
    torch.set_num_threads(threads)
    points = len(tasks) * len(grid["learning_rate"]) * len(grid["weight_decay"])
    with (
        leased_device(plan.config["device"]) as device,
        Steps(f"{name} on {describe(device)}", points * settings.epochs, "run-epochs") as steps,
    ):
        table = tune_tasks(
            tasks,
            read_images(images).train_images,
            read_sample(split),
            settings,
            grid,
            facts["grid"]["held_out"],
            facts["average_last"],
            device=device,
            advance=steps.advance,
            memory=memory_budget(device, plan.config["memory_mb"]),
        )
        trained_on = describe(device)
    write_csv(table, out)
    write_json(out.with_suffix(".json"), provenance(started, [images, split], device=trained_on, settings=facts))


def estimate_prior(
    plan: Plan, network: str, images: Path, split: Path, out: Path, told: float | None = None, threads: int = 2
) -> dict[str, Any]:
    """Estimate the class prior from the tuples and unlabeled images of a split, and write it as JSON.

    Parameters
    ----------
    plan : Plan
        Its protocol determines how the network is trained.
    network : str
    images, split : Path
        Images of the dataset's source, and the split.
    out : Path
        JSON to write.
    told : float, optional
        A prior to test against the data.
    threads : int
        CPU threads.

    Returns
    -------
    dict
        The content of the file: the fields of `mdpu.learn.prior.PriorEstimate` and, if `told` is given, ``told`` and
        ``fits``.

    Raises
    ------
    UserError
        If a file is missing or broken, `told` is not a prior, or tuples have one member.
    """
    started = time.perf_counter()
    if told is not None:
        check_prior(told)
    settings = plan.settings("base", network)
    torch.set_num_threads(threads)
    with (
        leased_device(plan.config["device"]) as device,
        Steps(f"prior of {split.stem} on {describe(device)}", settings.epochs, "epochs") as steps,
    ):
        estimate = estimate_prior_of(
            read_images(images).train_images,
            read_sample(split),
            settings,
            held_out=plan.config["tuning"]["held_out"],
            device=device,
            advance=steps.advance,
        )
        trained_on = describe(device)
    facts: dict[str, Any] = asdict(estimate)
    if told is not None:
        facts |= {"told": told, "fits": estimate.fits(told)}
    write_json(
        out, {**facts, "provenance": provenance(started, [images, split], device=trained_on, settings=settings.flat())}
    )
    return facts


@dataclass(frozen=True)
class Retrained:
    """A retrained run beside its recorded history.

    Attributes
    ----------
    run : Run
    recorded, again : DataFrame
        The two histories.
    differences : dict
        As `compare_histories` returns them.
    """

    run: Run
    recorded: pd.DataFrame
    again: pd.DataFrame
    differences: dict[str, float]


def retrain(plan: Plan, name: str, out: Path, alone: bool = False, threads: int | None = None) -> Iterator[Retrained]:
    """Train a run, or the runs of a cell, again.

    On a CPU of the same kind the history is the same bit for bit, with or without the runs that share its minibatches.
    A GPU, another kind of CPU or other software rounds differently, and training magnifies the difference.

    Parameters
    ----------
    plan : Plan
    name : str
        Of a run or of a cell.
    out : Path
        Scratch folder to train into.
    alone : bool
        Leave out the runs that share its minibatches.
    threads : int, optional
        CPU threads; the configuration's unless given.

    Raises
    ------
    UserError
        If there is no such run or cell, it has no recorded history, or the code or the protocol has changed since.
    """
    for run in plan.find_runs(name):
        again = train_again(plan, run, out, alone, threads)
        histories = read_table(plan.layout.history(plan.cohort_of(run).name))
        recorded = histories.merge(pd.DataFrame([run]), on=list(AXES))
        yield Retrained(run, recorded, again, compare_histories(recorded, again))


def train_again(plan: Plan, run: Run, out: Path, alone: bool = False, threads: int | None = None) -> pd.DataFrame:
    """Train a run again in a scratch folder, from the images, labels and split of the results; return its history.

    It is marked with fingerprint and origin as `RunStore` marks it. Parameters and errors are those of `retrain`.
    """
    layout = plan.layout
    cohort, tuning = plan.cohort_of(run), plan.tuning_name(run)
    company = [other for other in cohort.runs if other == run or (other.split == run.split and not alone)]
    for other in company:  # an earlier call may have left them in this folder
        remove(RunStore(out / "runs").path(other))
    files = Files(
        layout.images(run.dataset),
        layout.labels(run.dataset),
        layout.results / "splits",
        out / "runs",
        out / "checkpoints",
        out / f"{run.name}.parquet",
        layout.tuned(tuning) if tuning else None,
    )
    train(plan, cohort.name, files, threads or plan.config["threads"], [other.name for other in company])
    return read_table(RunStore(files.store).path(run))


def compare_histories(recorded: pd.DataFrame, again: pd.DataFrame) -> dict[str, float]:
    """Return the largest absolute difference over a run's epochs of each measure that differs.

    The result is empty if the histories are equal bit for bit, missing values included. Only the accuracies may differ
    in their last bit. They are products of the rates, which BLAS rounds once on some processors and twice on others.

    Parameters
    ----------
    recorded, again : DataFrame
        Two histories of one run.

    Raises
    ------
    UserError
        If they have different epochs or measures.
    """
    # A cohort's histories have the measures of all its runs, and packed runs come back with columns in another order.
    recorded, again = own_columns(recorded), own_columns(again)
    if set(recorded.columns) != set(again.columns) or len(recorded) != len(again):
        raise UserError(
            f"the recorded history has {len(recorded)} epochs of {len(recorded.columns)} columns, the new one "
            f"{len(again)} of {len(again.columns)}: the code or the protocol has changed since; run the workflow again"
        )
    differences = {}
    for measure in (column for column in recorded.columns if column not in AXES):
        old, new = recorded[measure].to_numpy(), again[measure].to_numpy()
        same = (old == new) | (np.isnan(old) & np.isnan(new))
        if measure in FROM_RATES:
            same |= np.abs(old - new) <= np.spacing(np.abs(old))
        if not same.all():
            same_gaps = (np.isnan(old) == np.isnan(new)).all()
            differences[measure] = float(np.nanmax(np.abs(old - new))) if same_gaps else np.inf
    return differences
