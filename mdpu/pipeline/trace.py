"""From a number back to its runs, and the same runs trained again.

It uses only runs that are shipped or finished here: tracing trains nothing and downloads nothing.
Training again judges the *cell* with the new runs in their places, as the paper's numbers are
judged, because another machine rounds differently and training magnifies the difference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mdpu.errors import UserError, check_count
from mdpu.pipeline.config import BASE, load_config
from mdpu.pipeline.data.labels import SIDES, write_labels
from mdpu.pipeline.data.sources import write_source
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.evaluate.collect import collect, epochs_in_words, run_accuracies, summarize
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
Found = dict[Run, tuple[Stored, Path]]


class Cell(NamedTuple):
    """The finished runs of a cell, and what they say; accuracies in percent."""

    plan: Plan
    found: Found

    def name(self) -> str:
        """Return the name of the cell."""
        return next(iter(self.found)).cell

    def accuracies(self) -> pd.DataFrame:
        """Return the accuracy of each run, and the epochs that it is the mean of."""
        return run_accuracies(collect(self.found), self.plan.protocol.reporting)

    def trials(self, seeds: Sequence[int] = ()) -> Trials:
        """Return mean, deviation and number of the trials that did not diverge, of some seeds or of
        all.
        """
        rows = self.accuracies().dropna(subset="accuracy")
        accuracy = rows.loc[rows["seed"].isin(seeds or rows["seed"]), "accuracy"]
        return Trials(float(accuracy.mean()), float(accuracy.std()), len(accuracy))

    def published(self) -> dict[Any, Any]:
        """Return the comparison with the paper's number, empty if it has none."""
        rule = self.plan.config["comparison"]
        plan = self.plan
        runs = self.accuracies()
        # its number stands for the paper's, as the protocol's does otherwise
        if plan.config["name"] == READINGS:
            runs = runs.assign(variant=BASE, loss=LOGISTIC)
        rows = compare(summarize(runs), plan.published_names, rule, plan.readings)
        return next(iter(rows[rows["verdict"] != NOT_RUN].to_dict("records")), {})

    def verdict(self) -> str:
        """Return the verdict of the comparison with the paper, in a line."""
        if not (row := self.published()):
            return "the paper has no such number"
        interval = f"[{row['interval_low']:+.2f}, {row['interval_high']:+.2f}]"
        return (
            f"{row['verdict']} ({row['difference']:+.2f} points, interval {interval}; "
            f"{row['reason']})"
        )


def find(name: str, config: Sequence[Path] = ()) -> tuple[Plan, tuple[Run, ...], list[Path]]:
    """Return the first plan that has a run or cell `name`, its runs and its files; raise
    `UserError` if none has.

    The path of a cell's file is a name, too. The files of `config` are laid over the paper's
    configuration; unless given, those of ``config/`` are tried one by one, then the shipped runs of
    the paper's readings, whose variants are named after their trainings:
    ``mnist/replacement-without/m2/n10000/prior0.5/abs``.
    """
    name = f"/{name}".rpartition("/runs/")[2].removesuffix(".parquet").strip("/")
    run = parse_run(name)  # a mistake in the name itself comes before all others
    mistakes = []
    for files in [list(config)] if config else _shipped_configurations():
        try:
            plan = Plan(load_config(files)).with_own_images()
            return plan, plan.find_runs(name), files
        except UserError as error:
            mistakes.append(error)
    if config:
        raise mistakes[0]
    if reading := reading_plan(run):
        return reading, reading.find_runs(name), []
    raise UserError(f"{mistakes[0]} (--config FILE names a configuration of your own)")


def _shipped_configurations() -> list[list[Path]]:
    """Return the files of each configuration to look in: the shipped runs' first, then the paper's,
    which needs no file beside `config.yaml`.
    """
    reference = REPOSITORY / "config" / "reference.yaml"
    others = sorted({*reference.parent.glob("*.yaml")} - {reference})
    return [[reference], [], *([file] for file in others)]


def finished(plan: Plan, runs: Sequence[Run], files: Sequence[Path] = ()) -> Cell:
    """Return the finished runs of a cell; raise `UserError` if one of `runs`, from a plan of
    `files`, is not there.
    """
    file = plan.layout.run_file(runs[0].cell)
    finished_runs = {}
    for run in plan.cells[runs[0].cell]:
        key = plan.key(run)
        path = file if key is None else plan.shipped.get(key, file)
        if not path.exists():
            continue
        if stored := read_runs(path, [key] if key else []):
            finished_runs[run] = (stored[str(key)], path)
    for run in runs:
        if run not in finished_runs:
            target = (
                f"--configfile {' '.join(map(os.path.relpath, files))} -- {file}" if files else file
            )
            raise UserError(
                f"{run.name} is neither shipped nor finished here; make it: snakemake --cores 2 "
                f"{target}"
            )
    return Cell(plan, finished_runs)


def trace(name: str, config: Sequence[Path] = ()) -> str:
    """Return where a number comes from, as text; see `find`."""
    plan, runs, files = find(name, config)
    cell = finished(plan, runs, files)
    spec = plan.spec(cell.name())
    row = cell.published()
    ours = cell.trials()
    rows = cell.accuracies()
    epochs = epochs_in_words(rows, plan.protocol.reporting["average_last"])
    paper = (
        f"{row['published_mean']} ± {row['published_std']}, table {row['table']}" if row else "none"
    )
    lines = [
        cell.name(),
        f"  paper     {paper}",
        f"  here      {ours.mean:.2f} ± {ours.std:.2f}, {ours.number} trials, each {epochs}",
        f"  verdict   {cell.verdict()}",
        f"  settings  {_plain(spec['settings'])}",
        f"  sampling  {_plain(spec['sampling'])}",
    ]
    accuracy = rows.set_index("seed")["accuracy"]
    for run in runs:
        stored, path = cell.found[run]
        about = stored.about
        lines += [
            run.name,
            f"  accuracy  {accuracy[run.seed]:.4f} %",
            f"  key       {stored.key}, in {path}",
            f"  trained   {about.get('date')} on {about.get('device')}, {about.get('precision')}; "
            f"commit {about.get('commit') or 'unknown'}",
            f"  again     ./run retrain {run.name}"
            + "".join(f" --config {file}" for file in config),
        ]
    return "\n".join(lines)


def _plain(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {json.dumps(value)}" for key, value in values.items()).replace('"', "")


def retrain(name: str, config: Sequence[Path] = ()) -> bool:
    """Train a run again, or all of a cell; print what the cell says before and after, and return
    whether it agrees.
    """
    plan, runs, files = find(name, config)
    return again(finished(plan, runs, files), runs)


def again(cell: Cell, runs: Sequence[Run]) -> bool:
    """Train finished runs of a cell again; print what came of it, and return whether they agree
    with the old ones.

    One run agrees if it lies where a further trial of the cell would, or within the wider margin of
    the only trial. Several agree unless their mean differs from that of the old ones, by the rule
    for the paper's numbers.
    """
    new = Cell(cell.plan, {**cell.found, **train_again(cell.plan, runs)})
    before = cell.accuracies().set_index("seed")["accuracy"]
    after = new.accuracies().set_index("seed")["accuracy"]
    for run in runs:
        old = before[run.seed]
        now = after[run.seed]
        print(f"{run.name}: {old:.2f} % recorded, {now:.2f} % now, {now - old:+.2f} points")
    rule = cell.plan.config["comparison"]
    seeds = [run.seed for run in runs]
    if before.equals(after):
        print(f"  cell    unchanged: {cell.verdict()}", flush=True)
        return True
    if len(seeds) > 1:
        olds = cell.trials(seeds)
        news = new.trials(seeds)
        difference, low, high, verdict, _ = judge_trials(
            news, int(after[seeds].isna().sum()), olds, rule
        )
        print(f"  again   {verdict} ({difference:+.2f} points, [{low:+.2f}, {high:+.2f}])")
        same = str(verdict) != DIFFERS
    else:
        low, high = prediction_interval(cell.trials(), 1, rule["level"])
        if cell.trials().number == 1:
            low = old - rule["wider_margin"]
            high = old + rule["wider_margin"]
        same = bool(low <= now <= high) or bool(pd.isna(old) and pd.isna(now))
        where = "inside" if same else "OUTSIDE"
        print(
            f"  again   {where} the interval of a further trial of the cell, [{low:.2f}, "
            f"{high:.2f}]"
        )
    print(f"  mean    {cell.trials().mean:.2f} % before, {new.trials().mean:.2f} % with it")
    print(f"  before  {cell.verdict()}\n  after   {new.verdict()}", flush=True)
    return same


def train_again(plan: Plan, runs: Sequence[Run]) -> Found:
    """Train runs of one cell anew in a scratch folder, from images that are here or are fetched."""
    first = runs[0]
    spec = plan.spec(first.cell)
    dataset = plan.dataset(first.dataset)
    images = plan.layout.images(first.dataset)
    scratch = SCRATCH / first.cell
    labels = scratch / "labels.npz"
    split = scratch / "split.npz"
    out = scratch / "runs.parquet"
    if not images.with_suffix(".json").exists():
        mirror = plan.config["mirror"] or os.environ.get("MDPU_MIRROR")
        write_source(dataset["source"], plan.layout.data_dir, mirror, images, dataset.get("sha256"))
    sides = {side: dataset.get(side, []) for side in SIDES}
    write_labels(images, labels, sides, dataset.get("counts", {}))
    trials = {str(run.seed): run.trial for run in runs}
    write_split(labels, split, {**plan.drawing(first.split), "trials": trials})
    out.unlink(missing_ok=True)
    train_cell({**spec, "trials": trials}, images, labels, split, out, device=plan.config["device"])
    stored = read_runs(out)
    return {run: (stored[str(plan.key(run))], out) for run in runs}


def shipped_cells() -> list[str]:
    """Return the names of the shipped cells of the paper and its readings, whose images are
    published.
    """
    runs = read_csv(REPOSITORY / "results" / "reference" / "runs.csv")
    published = runs[runs["selection"].isin(["paper-reference", READINGS])]
    return sorted(published["run"].str.rpartition("/")[0].unique())


def verify(number: int, seed: int = 0, config: Sequence[Path] = ()) -> bool:
    """Train a sample of the shipped runs again, one of each of `number` cells, and judge their
    cells.
    """
    check_count("the number of runs", number)
    plan = Plan(load_config(config)) if config else None
    if plan is None:
        cells = shipped_cells()
    else:
        shipped = [name for name in plan.cells if not plan.to_train(name)]
        cells = [name for name in shipped if plan.cells[name][0].variant == BASE]
    order = Stream(abs(seed), "verified runs").permutation(len(cells))[:number]
    same = []
    for place in order:
        name = cells[place]
        if plan is None:
            its_plan, runs, _ = find(name)
        else:
            its_plan = plan
            runs = plan.cells[name]
        run = runs[seed % len(runs)]
        same.append(again(finished(its_plan, [run]), [run]))
    print(f"{sum(same)} of {len(same)} runs came out as further trials of their cells")
    return bool(same) and all(same)
