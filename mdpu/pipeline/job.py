"""A training job: the runs of one cell that are not finished yet, one after the other, or all at
once on a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.law import RiskWeights, named_law
from mdpu.methods import load_method
from mdpu.pipeline.data.splits import describe_split
from mdpu.pipeline.files import REPOSITORY, digest, load_npz, read_json
from mdpu.pipeline.store import Stored, read_runs, write_runs
from mdpu.settings import RECIPE, Settings, Task

if TYPE_CHECKING:
    import pandas as pd

TERMS = tuple(f"risk_{term}" for term in RiskWeights._fields)
RATES = ["true_positive_rate", "true_negative_rate"]
MEASURES = ("objective", *TERMS, *RATES)  # columns of every history
PACKAGES = ("mdpu", "numpy", "torch", "torchvision")


def asked(spec: Mapping[str, Any], seed: int | str) -> dict[str, Any]:
    """Return everything that the numbers of one run of a cell depend on; its digest is the run's
    key.

    It is the checksum of the images, class sides, sampling, trial, method, settings, and `RECIPE`.

    Parameters
    ----------
    spec : mapping
        What is asked for, as `mdpu.pipeline.plan.Plan.spec` returns it.
    seed : int or str
    """
    shared = {name: value for name, value in spec.items() if name not in ("cell", "trials")}
    return {"recipe": RECIPE, "trial": spec["trials"][str(seed)], **shared}


def train_cell(
    spec: Mapping[str, Any],
    images: Path,
    labels: Path,
    split: Path,
    out: Path,
    shipped: Sequence[Path] = (),
    device: str = "auto",
    checkpoint_seconds: float = 120.0,
) -> None:
    """Train the runs of a cell that are in neither its file nor the packed ones, and write its
    file.

    Rows of other keys stay in the file, so an earlier configuration finds its runs again. Each run
    is written as soon as it is trained, into a file of its own beside the cell's, which Snakemake
    removes when the job fails; and a run is resumed from its checkpoint. So a killed job loses
    little.

    Parameters
    ----------
    spec : mapping
        What is asked for, as `mdpu.pipeline.plan.Plan.spec` returns it.
    images, labels, split, out : Path
        Files of `mdpu.pipeline.plan.Layout`.
    shipped : sequence of Path
        Packed files that may hold some of the runs.
    device : {'auto', 'cpu', 'cuda'}
        For methods that train a network.
    checkpoint_seconds : float

    Raises
    ------
    UserError
        If a file is missing or damaged, or the images are not those of the cell.
    """
    if images.parent.name == "own":
        spec = _with_checksum(spec, images)
    part = out.with_name(f".{out.stem}.part.parquet")
    finished = read_runs(out) if out.exists() else {}
    finished |= _resumed(part)
    keys = {seed: digest(asked(spec, seed)) for seed in spec["trials"]}
    for path in shipped:
        finished |= read_runs(path, [key for key in keys.values() if key not in finished])

    missing = [seed for seed, key in keys.items() if key not in finished]
    count = len(keys) - len(missing)
    print(f"{spec['cell']}: {len(keys)} runs, {count} of them finished", file=sys.stderr)
    for run in _train(spec, missing, (images, labels, split, out), device, checkpoint_seconds):
        finished[run.key] = run
        write_runs(part, finished.values())
    write_runs(out, finished.values())
    part.unlink(missing_ok=True)


def _with_checksum(spec: Mapping[str, Any], images: Path) -> dict[str, Any]:
    """Return what is asked for with the checksum of a user's own images, which need not be known
    before they are read.
    """
    checksum = read_json(images.with_suffix(".json"))["checksum"]
    if spec["images"] not in (None, checksum):
        raise UserError(f"{images} has other images than the configuration's sha256; make it again")
    return {**spec, "images": checksum}


def _resumed(part: Path) -> dict[str, Stored]:
    """Return the runs that an ended job left in its own file, none if there is no such file or it
    is damaged.
    """
    if not part.exists():
        return {}
    try:
        return read_runs(part)
    except UserError:
        print(f"{part} is damaged; its runs are trained again", file=sys.stderr)
        part.unlink(missing_ok=True)
        return {}


def _train(
    spec: Mapping[str, Any],
    seeds: Sequence[str],
    files: Sequence[Path],
    device: str,
    checkpoint_seconds: float,
) -> Iterator[Stored]:
    """Train the runs of some seeds, and yield each as soon as it is trained; `files` are those of
    `train_cell`.
    """
    images, labels, split, out = files
    if not seeds:
        return
    import torch  # a finished cell does without it

    from mdpu.networks import TestSet, choose_device, precision_on
    from mdpu.pipeline.device import describe, least_used_gpu
    from mdpu.train import train

    torch.set_num_threads(1)  # sums round by their number of parts; several jobs use several cores
    method = load_method(spec["method"])
    settings = Settings.parse(spec["settings"])
    task = _task(spec)
    pixels = load_npz(images, "train_images", "test_images")
    signs = load_npz(labels, "train", "test")
    evaluation = TestSet(
        pixels["test_images"], signs["test"], pixels["train_images"], signs["train"]
    )
    chosen = choose_device(device if method.trains_network else "cpu")
    lease = least_used_gpu(chosen) if chosen.type == "cuda" else nullcontext(chosen)
    with lease as where:
        # A GPU trains small networks of several seeds in the time of one, unless each has a prior
        # of its own.
        is_small = settings.network != "resnet34"
        together = where.type == "cuda" and is_small and not method.estimates_prior
        groups = [seeds] if together else [[seed] for seed in seeds]
        for group in groups:
            samples = [_sample(split, seed) for seed in group]
            trials = [spec["trials"][seed] for seed in group]
            estimate: dict[str, float] = {}
            if method.estimates_prior:
                estimate = _estimate(task, pixels["train_images"], samples[0], trials[0])
                # 0 and 1 are no priors
                prior = min(max(estimate["estimated_prior"], 0.01), 0.99)
                task = replace(task, prior=prior)
            models = train(
                task,
                pixels["train_images"],
                samples,
                trials,
                settings,
                labels=signs["train"],
                evaluation=evaluation,
                device=where,
                on_epoch_end=_Progress(group, settings.epochs),
                checkpoint=out.with_suffix(f".seed{group[0]}.checkpoint"),
                checkpoint_seconds=checkpoint_seconds,
            )
            for seed, sample, model in zip(group, samples, models, strict=True):
                measures = model.history.assign(**estimate)
                yield Stored.of(
                    asked(spec, seed),
                    run_history(method.unnamed, measures, evaluation.share_positive),
                    drawn=describe_split(sample, signs["train"]),
                    device=describe(where),
                    precision=precision_on(where, settings.precision),
                    date=datetime.now(UTC).isoformat(timespec="seconds"),
                    commit=_commit(),
                    packages={name: version(name) for name in PACKAGES},
                )


def _task(spec: Mapping[str, Any]) -> Task:
    """Return the task of a cell; its prior is the one that methods are told."""
    sampling = spec["sampling"]
    tuple_size = sampling["tuple_size"]
    prior = round(float(sampling["prior"]) + spec["prior_offset"], 12)
    law = named_law(sampling["law"], tuple_size) if "law" in sampling else None
    return Task(spec["method"], tuple_size, prior, spec["loss"], law)


def _sample(split: Path, seed: str) -> TupleData:
    """Return the tuples and unlabeled images of a trial."""
    indices = load_npz(split, f"tuples_{seed}", f"unlabeled_{seed}")
    return TupleData(*indices.values())


def _estimate(task: Task, images: Any, sample: TupleData, trial: str) -> dict[str, float]:
    """Return the estimate of a run's prior, by the names in its history."""
    from mdpu.prior import estimate_prior  # it imports scikit-learn

    estimate = estimate_prior(images, sample, task.law_of(task.tuple_size), trial)
    return {
        "estimated_prior": estimate.prior,
        "estimated_prior_low": estimate.low,
        "estimated_prior_high": estimate.high,
        "estimated_prior_known": float(estimate.known),
    }


class _Progress:
    """Prints a line from time to time, and ends the job if its parent, the workflow, is gone."""

    def __init__(self, seeds: Sequence[str], epochs: int) -> None:
        self.seeds = ", ".join(seeds)
        self.epochs = epochs
        self.parent = os.getppid()
        self.first_epoch = 0  # of this job, after those of a checkpoint, which took no time here
        self.since = 0.0
        self.printed = 0.0

    def __call__(self, epoch: int, rows: Sequence[Mapping[str, float]]) -> None:
        if os.getppid() != self.parent:
            sys.exit(
                "the workflow that started this job has ended; the job ends too, and resumes with "
                "the next"
            )
        now = time.monotonic()
        if not self.first_epoch:
            self.first_epoch = epoch
            self.since = now
        if epoch == self.epochs or now - self.printed >= 10:
            self.printed = now
            line = f"seed {self.seeds}: epoch {epoch} of {self.epochs}{self._left(epoch, now)}"
            print(line, file=sys.stderr, flush=True)

    def _left(self, epoch: int, now: float) -> str:
        """Return the seconds that are left in words, nothing before an epoch was measured."""
        measured = epoch - self.first_epoch
        if not measured:
            return ""
        seconds = (now - self.since) / measured * (self.epochs - epoch)
        return f", {seconds:.0f} s left"


def _commit() -> str | None:
    """Return the commit of the code, with a plus sign if it has been changed since; None outside of
    a clone.

    The clone is named, so that git looks neither for its owner, nor in folders above, nor into
    GIT_DIR.
    """
    git = [
        "git",
        "-C",
        str(REPOSITORY),
        f"--git-dir={REPOSITORY / '.git'}",
        f"--work-tree={REPOSITORY}",
    ]
    status = [*git, "status", "--porcelain", "-uno", "--", "mdpu"]
    try:
        head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True, stderr=DEVNULL)
        changed = subprocess.run(status, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.strip() + ("+" if changed else "")


def run_history(unnamed: bool, history: pd.DataFrame, share_positive: float) -> pd.DataFrame:
    """Return the history of a run as it is stored.

    Parameters
    ----------
    unnamed : bool
        Whether the method's answers have no class names (`mdpu.methods.Method`).
    history : DataFrame
        As `mdpu.train.Trained` holds it, with the rates of `mdpu.networks.TestSet`.
    share_positive : float
        Share of positives among the test images.

    Returns
    -------
    DataFrame
        One row per epoch: epoch, from 1; `MEASURES`; risk, the sum of its four terms; raw_accuracy
        and accuracy; and further measures of the method, by name. The two accuracies differ if the
        answers of an unnamed method are swapped to the better assignment; its rates are then
        swapped too. Risk terms are missing for a method that estimates no risk. All measures are
        missing from the first epoch on whose objective is not finite.
    """
    frame = history.reindex(columns=["epoch", *MEASURES])
    frame["risk"] = frame[[*TERMS]].sum(axis=1, skipna=False)
    frame["raw_accuracy"] = _accuracy(frame, share_positive)
    if unnamed:
        frame[RATES] = frame[RATES].mask(frame["raw_accuracy"] < 0.5, 1 - frame[RATES])
    frame["accuracy"] = _accuracy(frame, share_positive)
    for name in history.columns.difference(frame.columns, sort=False):
        frame[name] = history[name]
    return frame


def _accuracy(frame: pd.DataFrame, share_positive: float) -> pd.Series:
    """Return the accuracy at the test images' share of positives, of each epoch."""
    positive, negative = (frame[name] for name in RATES)
    return share_positive * positive + (1 - share_positive) * negative
