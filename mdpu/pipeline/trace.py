"""From a number back to its runs, and the same runs trained again.

It uses only runs that are shipped or finished here: tracing trains nothing and downloads nothing.
Training again judges the *cell* with the new runs in their places, as the paper's numbers are
judged, because another machine rounds differently and training magnifies the difference.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mdpu.errors import UserError, check_count
from mdpu.pipeline.config import BASE, load_config
from mdpu.pipeline.data.labels import SIDES, write_labels
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.evaluate.collect import (
    collect,
    epochs_in_words,
    number_of_trials,
    run_accuracies,
    summarize,
)
from mdpu.pipeline.evaluate.comparison import (
    DIFFERS,
    NOT_RUN,
    Trials,
    compare,
    judge_trials,
    prediction_interval,
)
from mdpu.pipeline.evaluate.shipped import NAME as READINGS
from mdpu.pipeline.evaluate.shipped import reading_plan
from mdpu.pipeline.files import REPOSITORY, read_csv
from mdpu.pipeline.job import train_cell
from mdpu.pipeline.plan import LOGISTIC, Plan, Run, parse_run
from mdpu.pipeline.store import Stored, read_runs
from mdpu.randomness import Stream

SCRATCH = Path(".snakemake", "retrained")
StoredRuns = dict[Run, tuple[Stored, Path]]  # each beside the file that holds it


@dataclass(frozen=True)
class Cell:
    """The finished runs of a cell, and what they say; accuracies in percent."""

    plan: Plan
    stored_runs: StoredRuns

    @property
    def name(self) -> str:
        """The name of the cell."""
        return next(iter(self.stored_runs)).cell

    @cached_property
    def accuracies(self) -> pd.DataFrame:
        """The accuracy of each run, and the epochs that it is the mean of."""
        return run_accuracies(collect(self.stored_runs), self.plan.protocol.reporting)

    @property
    def by_seed(self) -> pd.Series:
        """The accuracy of each trial by its seed, missing if it diverged."""
        return self.accuracies.set_index("seed")["accuracy"]

    def trials(self, seeds: Sequence[int] = ()) -> Trials:
        """Return mean, deviation and number of the trials that did not diverge, of some seeds or of
        all.
        """
        accuracy = self.by_seed.dropna()
        if seeds:
            accuracy = accuracy[accuracy.index.isin(seeds)]
        return Trials(float(accuracy.mean()), float(accuracy.std()), len(accuracy))

    @cached_property
    def comparison(self) -> dict[Any, Any]:
        """The comparison with the paper's number, empty if it has none."""
        plan = self.plan
        runs = self.accuracies
        # its number stands for the paper's, as the protocol's does otherwise
        if plan.config["name"] == READINGS:
            runs = runs.assign(variant=BASE, loss=LOGISTIC)
        rule = plan.config["comparison"]
        comparisons = compare(summarize(runs), plan.published_names, rule, plan.readings)
        run = comparisons[comparisons["verdict"] != NOT_RUN]
        return next(iter(run.to_dict("records")), {})

    def verdict(self) -> str:
        """Return the verdict of the comparison with the paper, in a line."""
        if not self.comparison:
            return "the paper has no such number"
        return (
            "{verdict} ({difference:+.2f} points, "
            "interval [{interval_low:+.2f}, {interval_high:+.2f}]; {reason})"
        ).format_map(self.comparison)


def find(name: str, config: Sequence[Path] = ()) -> tuple[Plan, tuple[Run, ...], list[Path]]:
    """Return the first plan that has a run or cell `name`, its runs and its files; raise
    `UserError` if none has.

    The path of a cell's file is a name, too. The files of `config` are laid over the paper's
    configuration; unless given, those of ``config/`` are tried one by one, then the shipped runs of
    the paper's readings, whose variants are named after their trainings:
    ``mnist/replacement-without/m2/n10000/prior0.5/abs``. These come first for another loss or
    variant, since an experiment may show only some trials of such a cell.
    """
    name = f"/{name}".rpartition("/runs/")[2].removesuffix(".parquet").strip("/")
    run = parse_run(name)  # a mistake in the name itself comes before all others
    if config:
        plan = _plan_of(config)
        return plan, plan.find_runs(name), list(config)

    departs = (run.variant, run.loss) != (BASE, LOGISTIC)
    of_reading = reading_plan(run) if departs else None
    if of_reading is not None and of_reading.has_runs(name):
        return of_reading, of_reading.find_runs(name), []

    plans = []
    for files in _shipped_configurations():
        try:
            plan = _plan_of(files)
        except UserError:  # a file of config/ that somebody is still writing
            if not files:  # config.yaml itself, below all others
                raise
            continue
        if plan.has_runs(name):
            return plan, plan.find_runs(name), files
        plans.append(plan)

    of_reading = reading_plan(run)
    if of_reading is not None:
        return of_reading, of_reading.find_runs(name), []
    raise UserError(
        f"{plans[0].unknown_run(name)} (--config FILE names a configuration of your own)"
    )


def _plan_of(files: Sequence[Path]) -> Plan:
    """Return the plan of configuration files laid over the paper's, with a user's own images."""
    return Plan(load_config(files)).with_own_images()


def _shipped_configurations() -> list[list[Path]]:
    """Return the files of each configuration to look in: the shipped runs' first, then the paper's,
    which needs no file beside `config.yaml`.
    """
    reference = REPOSITORY / "config" / "reference.yaml"
    studies = sorted({*reference.parent.glob("*.yaml")} - {reference})
    return [[reference], [], *([file] for file in studies)]


def finished(plan: Plan, runs: Sequence[Run], files: Sequence[Path] = ()) -> Cell:
    """Return the finished runs of a cell; raise `UserError` if one of `runs`, from a plan of
    `files`, is not there.
    """
    cell = runs[0].cell
    stored_runs = {}
    for run in plan.cells[cell]:
        stored = _read_stored(plan, run)
        if stored is not None:
            stored_runs[run] = stored

    missing = [run for run in runs if run not in stored_runs]
    if missing:
        target = str(plan.layout.run_file(cell))
        if files:
            target = f"--configfile {shlex.join(map(os.path.relpath, files))} -- {target}"
        raise UserError(
            f"{missing[0].name} is neither shipped nor finished here; make it: "
            f"snakemake --cores 2 {target}"
        )
    return Cell(plan, stored_runs)


def _read_stored(plan: Plan, run: Run) -> tuple[Stored, Path] | None:
    """Return a run and the file that holds it, None if it is neither shipped nor finished here."""
    key = plan.key(run)
    if key is None:
        return None
    file = plan.shipped.get(key, plan.layout.run_file(run.cell))
    if not file.exists():
        return None
    stored = read_runs(file, [key]).get(key)
    return None if stored is None else (stored, file)


def trace(name: str, config: Sequence[Path] = ()) -> str:
    """Return where a number comes from, as text; see `find`."""
    plan, runs, files = find(name, config)
    cell = finished(plan, runs, files)
    lines = _cell_lines(cell)
    for run in runs:
        lines += _run_lines(cell, run, config)
    return "\n".join(lines)


def _cell_lines(cell: Cell) -> list[str]:
    """Return what is known of a cell: the paper's number, ours, the verdict, and how its runs are
    made.
    """
    paper = "none"
    if cell.comparison:
        paper = "{published_mean} ± {published_std}, table {table}".format_map(cell.comparison)
    ours = cell.trials()
    average_last = cell.plan.protocol.reporting["average_last"]
    epochs = epochs_in_words(cell.accuracies, average_last)
    spec = cell.plan.spec(cell.name)
    return [
        cell.name,
        f"  paper     {paper}",
        f"  here      {_in_words(ours)}, each {epochs}",
        f"  verdict   {cell.verdict()}",
        f"  settings  {_in_a_line(spec['settings'])}",
        f"  sampling  {_in_a_line(spec['sampling'])}",
    ]


def _in_words(trials: Trials) -> str:
    """Return mean and deviation of trials, and their number; one trial has no deviation."""
    number = int(np.asarray(trials.number))
    deviation = "" if number == 1 else f" ± {trials.std:.2f}"
    return f"{trials.mean:.2f}{deviation}, {number_of_trials([number])}"


def _in_a_line(values: Mapping[str, object]) -> str:
    """Return names and their values, as a configuration writes them but without quotes."""
    pairs = [f"{name} {json.dumps(value)}" for name, value in values.items()]
    return ", ".join(pairs).replace('"', "")


def _run_lines(cell: Cell, run: Run, config: Sequence[Path]) -> list[str]:
    """Return what is known of a run of a cell, and the command that trains it again."""
    stored, file = cell.stored_runs[run]
    about = stored.about
    trained = f"{about.get('date')} on {about.get('device')}, {about.get('precision')}"
    command = ["./run", "retrain", run.name]
    for configuration in config:
        command += ["--config", str(configuration)]
    return [
        run.name,
        f"  accuracy  {cell.by_seed[run.seed]:.4f} %",
        f"  key       {stored.key}, in {file}",
        f"  trained   {trained}; commit {about.get('commit') or 'unknown'}",
        f"  again     {shlex.join(command)}",
    ]


def retrain(name: str, config: Sequence[Path] = ()) -> bool:
    """Train a run again, or all of a cell; print what the cell says before and after, and return
    whether it agrees.
    """
    plan, runs, files = find(name, config)
    return again(finished(plan, runs, files), runs)


def again(cell: Cell, runs: Sequence[Run]) -> bool:
    """Train finished runs of a cell again; print what came of it, and return whether they agree
    with the recorded ones.
    """
    retrained = Cell(cell.plan, {**cell.stored_runs, **train_again(cell.plan, runs)})
    for run in runs:
        old = cell.by_seed[run.seed]
        new = retrained.by_seed[run.seed]
        print(f"{run.name}: {old:.2f} % recorded, {new:.2f} % now, {new - old:+.2f} points")
    if cell.by_seed.equals(retrained.by_seed):
        print(f"  cell    unchanged: {cell.verdict()}", flush=True)
        return True

    seeds = [run.seed for run in runs]
    judge = judge_means if len(seeds) > 1 else judge_trial
    agrees, words = judge(cell, retrained, seeds)
    print(f"  again   {words}")
    print(f"  mean    {cell.trials().mean:.2f} % before, {retrained.trials().mean:.2f} % with it")
    print(f"  before  {cell.verdict()}")
    print(f"  after   {retrained.verdict()}", flush=True)
    return agrees


def judge_means(cell: Cell, retrained: Cell, seeds: Sequence[int]) -> tuple[bool, str]:
    """Return whether several runs agree with the recorded ones, and by how much they differ.

    They agree unless their mean differs, by the rule for the paper's numbers.
    """
    rule = cell.plan.config["comparison"]
    diverged = int(retrained.by_seed[list(seeds)].isna().sum())
    judged = judge_trials(retrained.trials(seeds), diverged, cell.trials(seeds), rule)
    interval = f"[{judged.low:+.2f}, {judged.high:+.2f}]"
    words = f"{judged.verdict} ({judged.difference:+.2f} points, {interval})"
    return str(judged.verdict) != DIFFERS, words


def judge_trial(cell: Cell, retrained: Cell, seeds: Sequence[int]) -> tuple[bool, str]:
    """Return whether one run agrees with the recorded one, and by which interval.

    It agrees if it lies where a further trial of the cell would, or within the wider margin of the
    only trial.
    """
    rule = cell.plan.config["comparison"]
    (seed,) = seeds
    old = cell.by_seed[seed]
    new = retrained.by_seed[seed]
    trials = cell.trials()
    low, high = prediction_interval(trials, 1, rule["level"])
    if trials.number == 1:
        low = old - rule["wider_margin"]
        high = old + rule["wider_margin"]

    both_diverged = bool(pd.isna(old) and pd.isna(new))
    agrees = bool(low <= new <= high) or both_diverged
    where = "inside" if agrees else "OUTSIDE"
    interval = f"[{low:.2f}, {high:.2f}]"
    return agrees, f"{where} the interval of a further trial of the cell, {interval}"


def train_again(plan: Plan, runs: Sequence[Run]) -> StoredRuns:
    """Train runs of one cell anew in a scratch folder, from images that are here or are fetched."""
    cell = runs[0].cell
    dataset = runs[0].dataset
    scratch = SCRATCH / cell
    labels = scratch / "labels.npz"
    split = scratch / "split.npz"
    out = scratch / "runs.parquet"

    definition = plan.dataset(dataset)
    images = plan.layout.images(dataset)
    if not images.with_suffix(".json").exists():
        source = definition["source"]
        mirror = plan.config["mirror"] or os.environ.get("MDPU_MIRROR")
        write_source(source, plan.layout.data_dir, mirror, images, definition.get("sha256"))
    sides = {side: definition.get(side, []) for side in SIDES}
    write_labels(images, labels, sides, definition.get("counts", {}))

    trials = {str(run.seed): run.trial for run in runs}
    write_split(labels, split, {**plan.drawing(runs[0].split), "trials": trials})
    out.unlink(missing_ok=True)
    spec = {**plan.spec(cell), "trials": trials}
    train_cell(spec, images, labels, split, out, device=plan.config["device"])
    stored = read_runs(out)
    return {run: (stored[str(plan.key(run))], out) for run in runs}


def shipped_cells(config: Sequence[Path] = ()) -> list[str]:
    """Return the names of the shipped cells of a configuration that follow its protocol.

    Without one, they are those of the paper and its readings, whose images are published.
    """
    if config:
        plan = Plan(load_config(config))
        shipped = [name for name in plan.cells if not plan.to_train(name)]
        return [name for name in shipped if plan.cells[name][0].variant == BASE]
    runs = read_csv(REPOSITORY / "results" / "reference" / "runs.csv")
    published = runs[runs["selection"].isin(["paper-reference", READINGS])]
    return sorted(published["run"].str.rpartition("/")[0].unique())


def verify(number: int, seed: int = 0, config: Sequence[Path] = ()) -> bool:
    """Train a sample of the shipped runs again, one of each of `number` cells, and judge their
    cells.
    """
    check_count("the number of runs", number)
    cells = shipped_cells(config)
    order = Stream(abs(seed), "verified runs").permutation(len(cells))[:number]
    agreeing = []
    for place in order:
        plan, runs, _ = find(cells[place], config)
        run = runs[seed % len(runs)]
        agreeing.append(again(finished(plan, [run]), [run]))
    print(f"{sum(agreeing)} of {len(agreeing)} runs came out as further trials of their cells")
    return bool(agreeing) and all(agreeing)
