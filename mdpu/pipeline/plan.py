"""What a configuration asks for, from top to bottom: runs, their grids, how each is trained, every path, the plan.

A *run* is one trained model. A *cell* is a set of runs that differ only in the seed. A *training
job* is the runs that one process trains. An *experiment* is a named grid of runs. Experiments overlap; a run that
several need is trained once.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from mdpu.errors import UserError
from mdpu.law import Law, named_law
from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import load_method
from mdpu.learn.networks import load_network
from mdpu.learn.task import Settings
from mdpu.pipeline.config import (
    BASE,
    OPTIMIZATION,
    Config,
    check_config,
    grids,
    known,
    merge,
    selected,
)
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.data.own import inputs, is_colour
from mdpu.pipeline.files import digest, is_intact, write_text

DOMINANT = "dominant"  # the paper's law


@dataclass(frozen=True, order=True)
class Run:
    """One point of the grid: one trained model, one history.

    ``variant`` says how it departs from ``protocol``; ``base`` does not. ``n`` counts tuples, or their members if
    ``sampling.n_counts`` says so. ``prior`` is a canonical decimal string. ``law`` says which groups are collected as
    tuples: a name of `mdpu.law.named_law`, or one of ``definitions.laws``. The paper's law is in no name of a run.
    """

    dataset: str
    variant: str
    tuple_size: int
    n: int
    prior: str
    method: str
    loss: str
    seed: int
    law: str = DOMINANT

    @property
    def name(self) -> str:
        """Path-like name, unique per run."""
        return name_of(vars(self), AXES)

    @property
    def cell(self) -> str:
        """Name of the cell to which the run belongs."""
        return cell_name(vars(self))

    @property
    def split(self) -> str:
        """Name of the split that the run trains on."""
        return name_of(vars(self), ("dataset", "variant", "tuple_size", "prior", "n", "seed", "law"))

    @property
    def trial(self) -> str:
        """Name of the trial, which seeds the split, the initial weights and the order of the minibatches.

        It contains dataset, tuple size, law, n, prior and seed, so that trials of two cells are independent. It
        contains neither variant, method nor loss, so that comparisons within a cell stay paired.
        """
        return name_of(vars(self), ("dataset", "tuple_size", "n", "prior", "seed", "law"))


AXES = tuple(axis.name for axis in fields(Run))
CELL = tuple(axis for axis in AXES if axis != "seed")
ROW = ("dataset", "tuple_size", "n", "prior")  # the axes that identify a row of a table
STACKED = ("prior", "method", "loss", "seed")  # axes along which runs can share a stack
_PREFIX = {"tuple_size": "m", "n": "n", "prior": "prior", "seed": "seed"}
_NAME = re.compile(
    "(?P<dataset>[^/]+)/(?P<variant>[^/]+)/m(?P<tuple_size>[0-9]+)(?:-(?P<law>[^/]+))?/n(?P<n>[0-9]+)/"
    "prior(?P<prior>[^/]+)/(?P<method>[^/]+)/(?P<loss>[^/]+)/seed(?P<seed>[0-9]+)"
)


def name_of(key: Mapping[Any, Any], axes: Sequence[str]) -> str:
    """Return the path-like name that a key's values along some axes make, such as a cell's along `CELL`.

    A law other than the paper's follows the tuple size: ``m3-exactly-1``.
    """
    law = "" if "law" not in axes or key.get("law", DOMINANT) == DOMINANT else f"-{key['law']}"
    parts = {axis: f"{_PREFIX.get(axis, '')}{key[axis]}" for axis in axes if axis != "law"}
    if "tuple_size" in parts:
        parts["tuple_size"] += law
    elif law:
        parts["law"] = law[1:]
    return "/".join(parts.values())


def cell_name(key: Mapping[Any, Any]) -> str:
    """Return the name of the cell that a mapping of key columns belongs to."""
    return name_of(key, CELL)


def parse_run(text: str) -> Run:
    """Return the run whose `Run.name` is `text`; raise `UserError` if it does not name a run."""
    match = _NAME.fullmatch(text)
    if match is None:
        example = Run("mnist", "base", 2, 10000, "0.5", "abs", "logistic", 1).name
        raise UserError(f"{text!r} is not the name of a run; an example is {example}")
    values: dict[str, Any] = match.groupdict(DOMINANT)
    return Run(**{**values, **{axis: int(values[axis]) for axis in ("tuple_size", "n", "seed")}})


def run_of_split(split: str) -> Run:
    """Return some run of a split, by its name."""
    head, _, seed = split.rpartition("/")
    dataset, variant, tuple_size, prior, n = head.split("/")
    return parse_run("/".join([dataset, variant, tuple_size, n, prior, "any", "any", seed]))


def canonical_prior(value: object) -> str:
    """Return a prior as the decimal string that paths and tables use: ``0.4``, never ``0.40``."""
    try:
        number = Decimal(str(value))
        inside = 0 < number < 1
    except InvalidOperation:
        inside = False
    if not inside:
        raise UserError(f"prior {value!r} is not a number strictly between 0 and 1")
    return format(number.normalize(), "f")


def grid_runs(spec: Mapping[str, Any], dataset: str) -> Iterator[Run]:
    """Yield the runs of an experiment's definition on one dataset, those of its own grid first."""
    for grid in grids(spec):
        sizes = values_for(dataset, grid["n"])
        cells = itertools.product(
            [dataset],
            grid["variant"],
            grid["tuple_size"],
            [sizes] if isinstance(sizes, int) else sizes,
            map(canonical_prior, grid["prior"]),
            values_for(dataset, grid["method"]),
            grid["loss"],
        )
        for cell, law in itertools.product(cells, grid["law"]):
            *_, method, _ = cell
            for seed in values_for(method, grid["seed"]):
                yield Run(**dict(zip(AXES, (*cell, seed, law), strict=True)))


def values_for(name: str, axis: Any) -> Any:
    """Return the values of an axis for a dataset or a method: those under its name, or those of all."""
    return axis.get(name, axis["default"]) if isinstance(axis, Mapping) else axis


@dataclass(frozen=True)
class TrainJob:
    """Runs that train together in one process: all of them train a network, or none does, and then needs no GPU."""

    name: str
    network: str
    needs_gpu: bool
    runs: tuple[Run, ...]

    @property
    def dataset(self) -> str:
        """Dataset of every run."""
        return self.runs[0].dataset

    @property
    def variant(self) -> str:
        """Variant of every run."""
        return self.runs[0].variant

    @property
    def splits(self) -> list[str]:
        """Names of the splits that the runs train on."""
        return sorted({run.split for run in self.runs})


# The parts of the report in order, by the value of `part` in an experiment's definition.
PARTS = {
    "paper": "The paper",
    "choices": "Open choices",
    "beyond": "Beyond the paper",
    "bags": "Tuples as bags",
}


@dataclass(frozen=True)
class Experiment:
    """A named grid of runs; `mdpu.pipeline.experiments` shows it."""

    name: str
    kind: str
    title: str
    part: str = "paper"  # of the report, a key of `PARTS`
    runs: tuple[Run, ...] = ()  # none unless it uses runs
    split: str | None = None  # name of the split that it shows, if it uses one
    not_run: tuple[str, ...] = ()  # datasets that it spans but the configuration does not select
    options: Mapping[str, Any] = field(default_factory=dict)  # settings of its kind

    @property
    def shown_dataset(self) -> str:
        """Dataset of the split that is shown."""
        assert self.split is not None
        return self.split.split("/")[0]


# What methods are told, each with the value under which it says nothing new.
TOLD: Mapping[str, Any] = {"prior_offset": 0.0, "target_prior": None, "shares_factor": 1.0}


@dataclass(frozen=True)
class Departure:
    """A key of the protocol whose value differs from that of ``base``; both values as the configuration writes them."""

    key: str
    base: str
    value: str


class Protocol:
    """How images are drawn, networks trained and runs reported, under each variant of a checked configuration."""

    def __init__(self, config: Config) -> None:
        self.variants: dict[str, Config | None] = config["definitions"]["variants"]
        self.reportings: dict[str, Config] = config["definitions"].get("reportings", {})
        self._base: Config = config["protocol"]

    def variant(self, name: str) -> Config:
        """Return the protocol with the overrides of a variant applied."""
        known(name, self.variants, "variant")
        return merge(self._base, self.variants[name] or {})

    def sampling(self, variant: str, n: int) -> dict[str, Any]:
        """Return how the images of a split at `n` are drawn, with n_unlabeled as a number."""
        sampling = dict(self.variant(variant)["sampling"])
        del sampling["n_counts"]  # it concerns the tuples alone: see `number_of_tuples`
        if isinstance(written := sampling["n_unlabeled"], str):  # n or 3n, a multiple of the tuples' n
            sampling["n_unlabeled"] = int(written.removesuffix("n") or 1) * n
        if sampling.get("unlabeled") == "pool":  # the default, which is in no recipe
            del sampling["unlabeled"]
        return sampling

    def number_of_tuples(self, variant: str, tuple_size: int, n: int) -> int:
        """Return the number of tuples in a split at `n`: n, or as many as have n members."""
        counted = self.variant(variant)["sampling"]["n_counts"]
        return max(1, n // tuple_size) if counted == "images" else n

    def training(self, variant: str, network: str) -> dict[str, Any]:
        """Return the training settings of one network, flattened: the network's own keys join the rest.

        What the configuration leaves out of a network's settings has its default.
        """
        training = dict(self.variant(variant)["training"])
        configured = training.pop("networks").get(network, {})
        defaults = {key: value for key, value in _network_defaults(network).items() if key not in configured}
        return {**training, "network": network, **configured, **defaults}

    def departures(self, variant: str, networks: Iterable[str]) -> list[Departure]:
        """Return the keys of sampling, and of the training of some networks, in which a variant departs from base."""
        departures: dict[str, Departure] = {}
        for network in networks:
            settings, base = (
                {"unlabeled": "pool", **self.variant(name)["sampling"], **self.training(name, network)}
                for name in (variant, BASE)
            )
            departures |= {
                key: Departure(key, _written(base[key]), _written(value))
                for key, value in settings.items()
                if value != base[key]
            }
        return list(departures.values())

    def reporting(self, name: str = BASE) -> dict[str, Any]:
        """Return the settings of a reporting; ``base`` is ``protocol.reporting`` itself."""
        reporting: dict[str, Any] = self._base["reporting"]
        if name == BASE:
            return reporting
        known(name, self.reportings, "reporting")
        return merge(reporting, self.reportings[name])


@cache
def _network_defaults(network: str) -> dict[str, Any]:
    """Return the default settings of a network, as a configuration would write them."""
    settings = Settings(network=network).flat()
    chosen = {key: settings[key] for key in (*OPTIMIZATION, *load_network(network).known)}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in chosen.items()}


def _written(value: object) -> str:
    """Return a value as a configuration would write it."""
    return value if isinstance(value, str) else json.dumps(value)


class Layout:
    """Where every file of a configuration is: ``results_dir/name`` for what it makes, images and downloads shared."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.results = Path(config["results_dir"]) / config["name"]
        self.images_folder = Path(config["results_dir"]) / "datasets"
        self.data_dir = Path(config["data_dir"]).expanduser()
        self.page = self.results / "report.html"
        self.runs = self.results / "runs.csv"  # one row per run
        self.summary = self.results / "summary.csv"  # one row per cell
        self.metrics = self.results / "metrics.parquet"  # one row per run and epoch, of all runs
        self.cache = Path(config["results_dir"]) / "cache"  # finished runs, which all results share
        self.checkpoints = self.results / "checkpoints"  # of unfinished training
        self.reported = self.results / "reported"  # what the last closing line reported, to say what has changed

    @cached_property
    def config(self) -> Path:
        """Path of the resolved configuration, named by its content; see `write_config`."""
        return self.results / "config" / f"{digest(self._config)}.yaml"

    def write_config(self, current: bool = False) -> Path:
        """Write the resolved configuration for the commands of the workflow.

        Its name contains a digest of the content, so a dry run with other settings never changes the file that running
        jobs read. With `current` it becomes the newest of its folder, as the one that the results are of.
        """
        if not is_intact(self.config):
            write_text(self.config, yaml.safe_dump(self._config, sort_keys=False, allow_unicode=True))
        if current:
            self.config.touch()
        return self.config

    def images(self, dataset: str) -> Path:
        """Images of a dataset's source; if the source is a path, their name is ``own/<dataset>``."""
        source = self._config["definitions"]["datasets"][dataset]["source"]
        return self.images_folder / f"{f'own/{dataset}' if is_path(source) else source}.npz"

    def labels(self, dataset: str) -> Path:
        """Labels of a dataset."""
        return self.results / "labels" / f"{dataset}.npz"

    def sheets(self, dataset: str) -> tuple[Path, Path]:
        """Contact sheets of the positive and of the negative side of a dataset."""
        folder = self.results / "sheets" / dataset
        return folder / "positive.png", folder / "negative.png"

    def split(self, split: str) -> Path:
        """Split of a run, by its name."""
        return self.results / "splits" / f"{split}.npz"

    def manifest(self, job: str, identity: str) -> Path:
        """The finished runs of a job, named also by what they are made from (`mdpu.pipeline.cache.identity`)."""
        return self.results / "trained" / f"{job}.{identity}.json"

    def training_log(self, job: str, identity: str) -> Path:
        """Log of a training job."""
        return self.results / "logs" / "train" / f"{job}.{identity}.log"

    def progress(self, job: str) -> Path:
        """How far a training job is (`mdpu.progress.Steps`)."""
        return self.results / "progress" / f"{job}.json"

    def table(self, experiment: str) -> Path:
        """CSV table of an experiment."""
        return self.results / "tables" / f"{experiment}.csv"

    def figure(self, name: str) -> Path:
        """SVG figure of an experiment, or of a tuning, ``tuning/<name>``; the PDF is beside it."""
        return self.results / "figures" / f"{name}.svg"

    def tuned(self, tuning: str) -> Path:
        """Grid and choice of a tuning."""
        return self.results / "tuning" / f"{tuning}.csv"


class Plan:
    """All that a configuration asks for, as `load_config` returns it, or as Snakemake merged it.

    ``failed`` are the training jobs that are left out because their training failed, each with the reason.
    """

    def __init__(self, config: Config) -> None:
        check_config(config)
        self.config = config
        self.protocol = Protocol(config)
        self.layout = Layout(config)
        self.failed: dict[str, str] = config.get("failed", {})
        # Asked for each run, and alike for many.
        self._first_variant = cache(self._find_first_variant)
        self.flat_settings = cache(self._flatten_settings)

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """The selected experiments, each with its runs on the selected datasets.

        An experiment without any such run is in `not_run` instead.
        """
        made = {name: self._experiment(name) for name in selected(self.config, "experiments")}
        return {name: experiment for name, experiment in made.items() if experiment is not None}

    def _experiment(self, name: str) -> Experiment | None:
        """Return a selected experiment, or None if it spans none of the selected datasets."""
        spec = merge(self.config["axes"], self.config["definitions"]["experiments"][name])
        uses = spec.get("uses", "runs")
        bare = Experiment(name, spec["kind"], spec["title"], spec.get("part", "paper"), options=spec.get("options", {}))
        if uses == "nothing":
            return bare
        spanned = spec.get("datasets", list(self.config["definitions"]["datasets"]))
        chosen = [dataset for dataset in selected(self.config, "datasets") if dataset in spanned]
        runs = tuple(dict.fromkeys(self._shared(run) for dataset in chosen for run in grid_runs(spec, dataset)))
        if runs and uses == "split":
            return replace(bare, split=runs[0].split)
        runs = tuple(run for run in runs if not self.failed or self._job_name(run) not in self.failed)
        if not runs:
            return None
        shown = {run.dataset for run in runs}
        return replace(bare, runs=runs, not_run=tuple(dataset for dataset in spanned if dataset not in shown))

    def _shared(self, run: Run) -> Run:
        """Return the run under the first variant with the same data and training, so that it is trained once.

        A variant may change nothing for a run: because an overlay made its value the protocol's, or because it sets a
        key of a network that the dataset does not use.
        """
        if run.variant == BASE:
            return run
        return replace(run, variant=self._first_variant(run.variant, run.dataset, run.tuple_size, run.n))

    def _find_first_variant(self, variant: str, dataset: str, tuple_size: int, n: int) -> str:
        made = self._drawn_and_trained(variant, dataset, tuple_size, n)
        names = (BASE, *self.config["definitions"]["variants"])
        return next(name for name in names if self._drawn_and_trained(name, dataset, tuple_size, n) == made)

    def _drawn_and_trained(self, variant: str, dataset: str, tuple_size: int, n: int) -> tuple[Any, ...]:
        """Return everything that can tell a variant's runs of one dataset, tuple size and n from another variant's."""
        training = self.protocol.training(variant, self.network(dataset))
        if training["hyperparameters"] == "tuned":
            training = {**training, "learning_rate": None, "weight_decay": None}
        return self.protocol.number_of_tuples(variant, tuple_size, n), self.protocol.sampling(variant, n), training

    @cached_property
    def not_run(self) -> dict[str, str]:
        """Titles, by name, of the experiments that are defined but not part of this selection."""
        defined = self.config["definitions"]["experiments"]
        return {name: spec["title"] for name, spec in defined.items() if name not in self.experiments}

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run that a selected experiment needs, once, in order."""
        return tuple(sorted({run for experiment in self.experiments.values() for run in experiment.runs}))

    @cached_property
    def table_rows(self) -> frozenset[tuple[str, int, int, str]]:
        """The rows (dataset, tuple size, n, prior) of the selected tables of the paper's law, for claims and ranks."""
        runs = (run for one in self.experiments.values() if one.kind == "table" for run in one.runs)
        return frozenset((run.dataset, run.tuple_size, run.n, run.prior) for run in runs if run.law == DOMINANT)

    @cached_property
    def jobs(self) -> dict[str, TrainJob]:
        """The runs, grouped by the axes that their network's training jobs do not span.

        Methods without a network form their own jobs, whose names end in ``/cpu``.
        """
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(self._job_name(run), []).append(run)
        return {
            name: TrainJob(name, self.network(runs[0].dataset), _needs_gpu(runs[0].method), tuple(runs))
            for name, runs in sorted(groups.items())
        }

    def _job_name(self, run: Run) -> str:
        """Return the name of the training job that trains a run."""
        network = self.network(run.dataset)
        spans = self.config["training_jobs"].get(network, STACKED if load_network(network).stacks else ())
        name = name_of(vars(run), [axis for axis in AXES if axis not in spans])
        return name if _needs_gpu(run.method) else f"{name}/cpu"

    @cached_property
    def tunings(self) -> dict[str, TrainJob]:
        """The tunings that runs with tuned hyper-parameters need, one per dataset, variant and tuple size.

        A tuning chooses learning rate and weight decay. It trains a run per method at every point of the grid.
        """
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            if (name := self.tuning_name(run)) is not None:
                groups.setdefault(name, []).append(run)
        tuning = self.config["tuning"]
        prior, loss, seed = canonical_prior(tuning["prior"]), "logistic", tuning["seed"]
        tunings = {}
        for name, runs in groups.items():
            at = replace(runs[0], n=min(run.n for run in runs), prior=prior, loss=loss, seed=seed)
            methods = sorted({run.method for run in runs})
            tried = tuple(replace(at, method=method) for method in methods)
            tunings[name] = TrainJob(name, self.network(at.dataset), True, tried)
        return tunings

    def tuning_name(self, run: Run) -> str | None:
        """Return the name of the tuning that chooses a run's rates, or None if they are fixed."""
        tuned = self.protocol.variant(run.variant)["training"]["hyperparameters"] == "tuned"
        if not tuned or not load_method(run.method).tunable:
            return None
        return name_of(vars(run), ("dataset", "variant", "tuple_size", "law"))

    @cached_property
    def datasets(self) -> list[str]:
        """Datasets that a run or an illustration needs."""
        return sorted({split.split("/")[0] for split in self.splits})

    @cached_property
    def splits(self) -> list[str]:
        """Names of the splits that runs train on or illustrations show; each begins with the name of its dataset."""
        return sorted({run.split for run in self.runs} | set(self.illustrated))

    @cached_property
    def illustrated(self) -> list[str]:
        """Names of the splits that illustrations show."""
        return sorted({experiment.split for experiment in self.experiments.values() if experiment.split})

    @cached_property
    def prepared(self) -> list[Path]:
        """What has to be there before it can be told which jobs have something to train: images, labels, their counts.

        A split that is drawn for an illustration is one too, as it would start the jobs that train on it.
        """
        files = {*map(self.layout.images, self.datasets), *map(self.layout.labels, self.datasets)}
        files |= set(map(self.layout.split, self.illustrated))
        return sorted(file.with_suffix(suffix) for file in files for suffix in (".npz", ".json"))

    def drawing(self, split: str | Run) -> dict[str, Any]:
        """Return how a split, or that of a run, is drawn, as `write_diagnosed_split` takes it."""
        run = run_of_split(split) if isinstance(split, str) else split
        return {
            "tuple_size": run.tuple_size,
            "prior": float(run.prior),
            "n": self.protocol.number_of_tuples(run.variant, run.tuple_size, run.n),
            **self.protocol.sampling(run.variant, run.n),
            "trial": run.trial,
            **({} if run.law == DOMINANT else {"law": self.law_text(run)}),
        }

    def law_text(self, run: Run) -> str:
        """Return a run's law as `mdpu.law.named_law` takes it: its name, or the weights of one that is defined."""
        weights = self.config["definitions"].get("laws", {}).get(run.law)
        return run.law if weights is None else ",".join(map(str, weights))

    def law(self, run: Run) -> Law | None:
        """Return a run's law, None for the paper's; raise `UserError` if it is none of so many members."""
        if run.law == DOMINANT:
            return None
        try:
            return named_law(self.law_text(run), run.tuple_size)
        except UserError as error:
            raise UserError(f"config key law: {error}; definitions.laws holds laws of one's own") from None

    def job(self, name: str) -> TrainJob:
        """Return the training job called `name`; raise `UserError` if the configuration has none."""
        known(name, self.jobs, "training job")
        return self.jobs[name]

    def job_of(self, run: Run) -> TrainJob:
        """Return the training job that trains a run."""
        return self.jobs[self._job_name(run)]

    def find_runs(self, name: str) -> tuple[Run, ...]:
        """Return the run called `name`, or the runs of the cell called `name`; raise `UserError` if there is none."""
        by_name: dict[str, list[Run]] = {}
        for run in self.runs:
            by_name.setdefault(run.name, []).append(run)
            by_name.setdefault(run.cell, []).append(run)
        known(name, by_name, "run or cell")
        return tuple(by_name[name])

    def experiment(self, name: str) -> Experiment:
        """Return the selected experiment called `name`; raise `UserError` if there is none."""
        known(name, self.experiments, "experiment")
        return self.experiments[name]

    def dataset(self, name: str) -> dict[str, Any]:
        """Return the definition of a dataset: source, sides, title, network; raise `UserError` if there is none."""
        known(name, self.config["definitions"]["datasets"], "dataset")
        return dict(self.config["definitions"]["datasets"][name])

    def titles(self, datasets: Iterable[str]) -> dict[str, str]:
        """Return the titles of datasets by name, each once, in order."""
        return {name: self.dataset(name)["title"] for name in dict.fromkeys(datasets)}

    @cached_property
    def published_names(self) -> dict[str, str]:
        """The published row to compare each defined dataset with: that of its own name, unless it names another."""
        defined = self.config["definitions"]["datasets"]
        return {name: definition.get("published", name) for name, definition in defined.items()}

    @cached_property
    def readings(self) -> dict[str, str]:
        """How datasets are compared whose images are the paper's in another draw."""
        defined = self.config["definitions"]["datasets"]
        return {name: definition["reading"] for name, definition in defined.items() if "reading" in definition}

    def network(self, dataset: str) -> str:
        """Return the name of the network for `dataset`.

        If the configuration names none, it is ``resnet34`` for a user's own colour images and ``mlp`` otherwise.
        """
        definition = self.dataset(dataset)
        if "network" in definition:
            return str(definition["network"])
        if not is_path(definition["source"]):
            return "mlp"
        return "resnet34" if is_colour(Path(definition["source"]).expanduser()) else "mlp"

    def source_of(self, images: str) -> str:
        """Return the source, a name or a path, whose images are called `images`: the inverse of `Layout.images`."""
        return str(self.dataset(images.removeprefix("own/"))["source"]) if images.startswith("own/") else images

    @cached_property
    def own_files(self) -> dict[str, list[Path]]:
        """The input files of each images file that is made from a user's own images, by the name for `source_of`."""
        return {
            f"own/{name}": inputs(Path(self.dataset(name)["source"]).expanduser())
            for name in self.datasets
            if is_path(self.dataset(name)["source"])
        }

    def settings(self, variant: str, network: str) -> Settings:
        """Return the trainer's settings for a network under a variant."""
        training = self.protocol.training(variant, network)
        for key in ("hyperparameters", *TOLD):  # they concern the plan and the task
            del training[key]
        return Settings.parse(training)

    def _flatten_settings(self, variant: str, network: str) -> dict[str, Any]:
        """Return the trainer's settings as one mapping, ready for JSON."""
        return self.settings(variant, network).flat()

    def tuning_title(self, name: str) -> str:
        """Return the title of a tuning in the report: dataset, variant unless it is base, and tuple size."""
        known(name, self.tunings, "tuning")
        run = self.tunings[name].runs[0]
        variant = "" if run.variant == BASE else f" ({run.variant})"
        return f"{self.dataset(run.dataset)['title']}{variant}, M = {run.tuple_size}"

    def tuning_settings(self, name: str) -> dict[str, Any]:
        """Return everything in the configuration that affects a tuning's choice.

        It averages the last epochs that are reported, or all of them, as it knows no best epoch.
        """
        known(name, self.tunings, "tuning")
        tuning = self.tunings[name]
        training = self.protocol.training(tuning.runs[0].variant, tuning.network)
        average = self.protocol.reporting()["average_last"]
        return {
            "runs": [astuple(run) for run in tuning.runs],
            "training": training,
            "grid": self.config["tuning"],
            "average_last": average if isinstance(average, int) else int(training["epochs"]),
        }

    def minutes(self, job: str) -> int:
        """Return the minutes to request for a training job on a cluster.

        The perceptron gets three times what it takes in float32 on two threads: 0.223 s per run and epoch of 30,000
        images (docs/explanation/performance.md). Other networks get four hours: they need a GPU, whose speed depends on
        its model. Training that is not finished by then resumes from its checkpoint.
        """
        runs, network = self.job(job).runs, self.job(job).network
        if network != "mlp":
            return 240
        images = sum(map(self.images_of, runs))
        return 10 + math.ceil(3 * 0.223 / 30_000 * images * self.epochs_of(runs[0]) / 60)

    def images_of(self, run: Run) -> int:
        """Return how many images a run trains on in each epoch: members of tuples, and unlabeled ones."""
        tuples = self.protocol.number_of_tuples(run.variant, run.tuple_size, run.n)
        return run.tuple_size * tuples + int(self.protocol.sampling(run.variant, run.n)["n_unlabeled"])

    def epochs_of(self, run: Run) -> int:
        """Return for how many epochs a run trains."""
        return int(self.protocol.training(run.variant, self.network(run.dataset))["epochs"])

    def summary(self) -> dict[str, Any]:
        """Return counts of what the configuration asks for, ready for JSON."""
        return {
            "name": self.config["name"],
            "experiments": {name: len(e.runs) for name, e in self.experiments.items()},
            "datasets": self.datasets,
            "runs": len(self.runs),
            "splits": len(self.splits),
            "jobs": {name: len(job.runs) for name, job in self.jobs.items()},
            "failed": self.failed,
        }


@cache
def _needs_gpu(method: str) -> bool:
    return not isinstance(load_method(method), FittedMethod)


def has_gpu() -> bool:
    """Return whether this machine has NVIDIA's driver.

    ``nvidia-smi`` need not be on the PATH, so the driver's device counts too; it is another one under Windows.
    """
    return bool(shutil.which("nvidia-smi")) or any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg")))
