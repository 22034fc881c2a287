"""The plan of a configuration: its runs, their grids, how each is trained, and every path.

A *run* is one trained model. A *cell* is a set of runs that differ only in the seed; one training
job trains it. An *experiment* is a named grid of runs. Experiments overlap; a run that several need
is trained once.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mdpu.errors import UserError
from mdpu.law import Law, named_law
from mdpu.methods import load_method
from mdpu.pipeline.config import BASE, Config, grids, known, merge, selected, unknown, with_axes
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.data.own import is_colour
from mdpu.pipeline.data.sources import SOURCES
from mdpu.pipeline.files import REPOSITORY, digest, read_json
from mdpu.pipeline.job import asked
from mdpu.pipeline.store import shipped_keys
from mdpu.settings import Settings

DOMINANT = "dominant"  # the paper's law
LOGISTIC = "logistic"
# Seconds of an H100 for an image of 32x32 pixels in an epoch of ResNet-34, in TF32 beside other
# jobs, by stem. torchvision's was measured, 305 s for nine runs of 100 epochs; the 3x3 stem follows
# from its operations, 25 PFLOP a run of 30,000 images at 66 TFLOP/s (docs/how-to/gpu.md).
GPU_SECONDS = {"imagenet": 10.2e-6, "cifar": 127e-6}


@dataclass(frozen=True, order=True)
class Run:
    """One point of the grid: one trained model, one history.

    ``variant`` says how it departs from ``protocol``; ``base`` does not. ``n`` counts tuples, or
    their members if ``sampling.n_counts`` says so. ``prior`` is a canonical decimal string. ``law``
    says which groups are collected as tuples: a name of `mdpu.law.named_law`, or one of
    ``definitions.laws``. Names leave out the paper's law and the logistic loss.
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
        return f"{self.cell}/seed{self.seed}"

    @property
    def cell(self) -> str:
        """Name of the cell to which the run belongs."""
        return cell_name(vars(self))

    @property
    def split(self) -> str:
        """Name of the file of tuples and unlabeled images that the runs of a cell train on."""
        return self.cell.rpartition("/")[0]

    @property
    def trial(self) -> str:
        """Name of the trial, which seeds the split, the initial weights and the order of the
        minibatches.

        It contains dataset, tuple size, law, n, prior and seed, so that trials of two cells are
        independent. It contains neither variant, method nor loss, so that comparisons within a cell
        stay paired.
        """
        size = _size(vars(self))
        return f"{self.dataset}/{size}/n{self.n}/prior{self.prior}/seed{self.seed}"


AXES = tuple(axis.name for axis in fields(Run))
CELL = tuple(axis for axis in AXES if axis != "seed")
ROW = ("dataset", "tuple_size", "n", "prior")  # the axes that identify a row of a table
_NAME = re.compile(
    "(?P<dataset>[^/]+)/(?P<variant>[^/]+)/m(?P<tuple_size>[0-9]+)(?:-(?P<law>[^/]+))?/n(?P<n>[0-9]+)/prior(?P<prior>[^/]+)/(?P<method>[^/.]+)(?:[.](?P<loss>[^/]+))?(?:/seed(?P<seed>[0-9]+))?"
)


def _size(key: Mapping[Any, Any]) -> str:
    """Return the part of a name that says the tuple size, and the law after it unless it is the
    paper's.
    """
    law = key.get("law", DOMINANT)
    return f"m{key['tuple_size']}" + ("" if law == DOMINANT else f"-{law}")


def cell_name(key: Mapping[Any, Any]) -> str:
    """Return the name of the cell that a mapping of key columns belongs to: its file's path below
    ``runs``.
    """
    loss = "" if key["loss"] == LOGISTIC else f".{key['loss']}"
    place = f"{key['dataset']}/{key['variant']}/{_size(key)}/n{key['n']}/prior{key['prior']}"
    return f"{place}/{key['method']}{loss}"


def parse_run(text: str) -> Run:
    """Return the run that `text` names, or the first trial of the cell that it names.

    Raises
    ------
    UserError
        If it names neither.
    """
    match = _NAME.fullmatch(text)
    if match is None:
        raise UserError(
            f"{text!r} names no cell or run; an example is mnist/base/m2/n10000/prior0.5/abs/seed1"
        )
    values: dict[str, Any] = {"law": DOMINANT, "loss": LOGISTIC, "seed": "1"}
    values |= {key: value for key, value in match.groupdict().items() if value is not None}
    for axis in ("tuple_size", "n", "seed"):
        values[axis] = int(values[axis])
    return Run(**values)


def canonical_prior(value: object) -> str:
    """Return a prior as the decimal string that paths and tables use: ``0.4``, never ``0.40``."""
    with suppress(InvalidOperation):  # a text, or a NaN, which has no order
        number = Decimal(str(value))
        if 0 < number < 1:
            return format(number.normalize(), "f")
    raise UserError(f"prior {value!r} is not a number strictly between 0 and 1")


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
            for seed in seeds_for(dataset, method, grid["seed"]):
                yield Run(**dict(zip(AXES, (*cell, seed, law), strict=True)))


def values_for(name: str, axis: Any) -> Any:
    """Return the values of an axis for a dataset or a method: those under its name, or those of
    all.
    """
    return axis.get(name, axis["default"]) if isinstance(axis, Mapping) else axis


def seeds_for(dataset: str, method: str, axis: Any) -> list[int]:
    """Return the seeds of a method on a dataset: those under the dataset's name, the method's, or
    those of all.
    """
    if isinstance(axis, Mapping) and dataset in axis:
        return list(axis[dataset])
    return list(values_for(method, axis))


# The parts of the report in order, by the value of `part` in an experiment's definition.
PARTS = {"paper": "The paper", "beyond": "Beyond the paper", "bags": "Tuples as bags"}


@dataclass(frozen=True)
class Experiment:
    """A named grid of runs; `mdpu.pipeline.show` shows it."""

    name: str
    kind: str
    title: str
    part: str  # of the report, a key of `PARTS`
    options: Mapping[str, Any]  # settings of its kind
    runs: tuple[Run, ...] = ()  # none if its definition has no tuple_size
    not_run: tuple[str, ...] = ()  # datasets that it spans but the configuration does not select

    @property
    def methods(self) -> list[str]:
        """The methods of its runs, each once, in order."""
        return list(dict.fromkeys(run.method for run in self.runs))

    @property
    def datasets(self) -> list[str]:
        """The datasets of its runs, each once, in order."""
        return list(dict.fromkeys(run.dataset for run in self.runs))


class Protocol:
    """How images are drawn, networks trained and runs reported, under each variant of a checked
    configuration.
    """

    def __init__(self, config: Config) -> None:
        self.variants: dict[str, Config | None] = config["definitions"]["variants"]
        self.reporting: Config = config["protocol"]["reporting"]
        self._base: Config = config["protocol"]

    def variant(self, name: str) -> Config:
        """Return the protocol with the overrides of a variant applied."""
        known(name, self.variants, "variant")
        return merge(self._base, self.variants[name] or {})

    def sampling(self, variant: str, tuple_size: int, n: int) -> dict[str, Any]:
        """Return how the images of a split at `n` are drawn, with both numbers as numbers."""
        sampling = dict(self.variant(variant)["sampling"])
        counted = sampling.pop("n_counts")
        written = sampling.pop("n_unlabeled")
        if isinstance(written, str):  # n, 3n or n/2, of the tuples' n
            times, part = written.split("n")
            written = int(times or 1) * n // int(part[1:] or 1)
        return {
            "n": n if counted == "tuples" else max(1, n // tuple_size),
            "n_unlabeled": written,
            **sampling,
        }

    def settings(self, variant: str, network: str) -> Settings:
        """Return the trainer's settings for a network under a variant.

        A network's own keys come before those of all networks, a variant's before the protocol's.
        """
        known(variant, self.variants, "variant")
        values: Config = {}
        for protocol in (self._base, self.variants[variant] or {}):
            training = dict(protocol.get("training", {}))
            of_network = training.pop("networks", {}).get(network, {})
            training.pop("prior_offset", None)  # it changes the methods' prior, not the network
            values = merge(merge(values, training), of_network)
        try:
            return Settings.parse({**values, "network": network})
        except UserError as error:
            raise UserError(
                f"config key protocol.training.networks.{network}, variant {variant}: {error}"
            ) from None


class Layout:
    """Where every file is: runs, splits, labels and images are shared by all results, which are in
    ``results``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.root = Path(config["results_dir"])
        self.results = self.root / config["name"]
        self.data_dir = Path(config["data_dir"]).expanduser()
        self.page = self.results / "report.html"
        self.runs = self.results / "runs.csv"  # one row per run
        self.summary = self.results / "summary.csv"  # one row per cell
        self.metrics = self.results / "metrics.parquet"  # one row per run and epoch, of all runs

    def images(self, dataset: str) -> Path:
        """Images of a dataset's source; if the source is a path, their name is
        ``own/<dataset>``.
        """
        source = self._config["definitions"]["datasets"][dataset]["source"]
        name = f"own/{dataset}" if is_path(source) else source
        return self.root / "datasets" / f"{name}.npz"

    def labels(self, dataset: str) -> Path:
        """Labels of a dataset."""
        return self.root / "labels" / f"{dataset}.npz"

    def sheets(self, dataset: str) -> tuple[Path, Path]:
        """Contact sheets of the positive and of the negative side of a dataset."""
        folder = self.results / "sheets" / dataset
        return folder / "positive.png", folder / "negative.png"

    def run_file(self, cell: str) -> Path:
        """Finished runs of a cell, all seeds."""
        return self.root / "runs" / f"{cell}.parquet"

    def table(self, experiment: str) -> Path:
        """CSV table of an experiment."""
        return self.results / "tables" / f"{experiment}.csv"

    def figure(self, name: str) -> Path:
        """SVG figure of an experiment; the PDF is beside it."""
        return self.results / "figures" / f"{name}.svg"


class Plan:
    """All that a checked configuration asks for.

    Parameters
    ----------
    config : mapping
        As `mdpu.pipeline.config.load_config` returns it.
    checksums : mapping from str to str, optional
        Checksums of the images of datasets whose sources are a user's own files, from their
        descriptions. Without them, keys of the runs on these are known only if the configuration
        declares them as ``sha256``.
    """

    def __init__(self, config: Config, checksums: Mapping[str, str] | None = None) -> None:
        self.config = config
        self.protocol = Protocol(config)
        self.layout = Layout(config)
        self._checksums = dict(checksums or {})
        self.spec = cache(self._spec)
        self.key = cache(self._key)
        self._settings = cache(self._flat_settings)
        for dataset in self.datasets:
            # its mistakes show before anything starts
            self.protocol.settings(BASE, self.network(dataset))

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """The selected experiments, each with its runs on the selected datasets.

        An experiment without any such run is in `not_run` instead.
        """
        made = {name: self._experiment(name) for name in selected(self.config, "experiments")}
        return {name: experiment for name, experiment in made.items() if experiment is not None}

    def _experiment(self, name: str) -> Experiment | None:
        """Return a selected experiment, or None if it spans none of the selected datasets."""
        spec = with_axes(self.config["definitions"]["experiments"][name], self.config)
        facts = {"part": spec.get("part", "paper"), "options": spec.get("options", {})}
        if "tuple_size" not in spec:
            return Experiment(name, spec["kind"], spec["title"], **facts)
        if "n" not in spec:
            raise UserError(f"config key definitions.experiments.{name}: n is missing")
        spanned = spec.get("datasets", list(self.config["definitions"]["datasets"]))
        chosen = [dataset for dataset in selected(self.config, "datasets") if dataset in spanned]
        runs = tuple(dict.fromkeys(run for dataset in chosen for run in grid_runs(spec, dataset)))
        if not runs:
            return None
        not_run = tuple(dataset for dataset in spanned if dataset not in chosen)
        return Experiment(name, spec["kind"], spec["title"], runs=runs, not_run=not_run, **facts)

    @cached_property
    def not_run(self) -> dict[str, str]:
        """Titles, by name, of the experiments that are defined but not part of this selection."""
        defined = self.config["definitions"]["experiments"]
        return {
            name: spec["title"] for name, spec in defined.items() if name not in self.experiments
        }

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run that a selected experiment needs, once, in order."""
        return tuple(
            sorted({run for experiment in self.experiments.values() for run in experiment.runs})
        )

    @cached_property
    def cells(self) -> dict[str, tuple[Run, ...]]:
        """The runs, grouped by cell: what one training job trains."""
        return _grouped(self.runs, "cell")

    @cached_property
    def splits(self) -> dict[str, tuple[Run, ...]]:
        """The runs, grouped by the file of tuples and unlabeled images that they train on."""
        return _grouped(self.runs, "split")

    @cached_property
    def table_rows(self) -> frozenset[tuple[str, int, int, str]]:
        """The rows (dataset, tuple size, n, prior) of the selected tables of the paper's law, for
        claims.
        """
        rows = set()
        for experiment in self.experiments.values():
            if experiment.kind != "table":
                continue
            for run in experiment.runs:
                if run.law == DOMINANT:
                    rows.add((run.dataset, run.tuple_size, run.n, run.prior))
        return frozenset(rows)

    @cached_property
    def datasets(self) -> list[str]:
        """Datasets that a run needs, or that Figure 1 shows: the first that is selected."""
        names = {run.dataset for run in self.runs}
        if any(experiment.kind == "setting" for experiment in self.experiments.values()):
            names.update(selected(self.config, "datasets")[:1])
        return sorted(names)

    @cached_property
    def _runs_by_name(self) -> dict[str, Run]:
        return {run.name: run for run in self.runs}

    def has_runs(self, name: str) -> bool:
        """Return whether a run or a cell is called `name`."""
        return name in self.cells or name in self._runs_by_name

    def find_runs(self, name: str) -> tuple[Run, ...]:
        """Return the run called `name`, or the runs of the cell called `name`; raise `UserError` if
        there is none.
        """
        if not self.has_runs(name):
            raise self.unknown_run(name)
        if name in self.cells:
            return self.cells[name]
        return (self._runs_by_name[name],)

    def unknown_run(self, name: str) -> UserError:
        """Return the error for a name that no run or cell has, with the most similar one that is
        there.
        """
        return unknown(name, [*self.cells, *self._runs_by_name], "run or cell")

    def experiment(self, name: str) -> Experiment:
        """Return the selected experiment called `name`; raise `UserError` if there is none."""
        known(name, self.experiments, "experiment")
        return self.experiments[name]

    def dataset(self, name: str) -> dict[str, Any]:
        """Return the definition of a dataset: source, sides, title, network; raise `UserError` if
        there is none.
        """
        known(name, self.config["definitions"]["datasets"], "dataset")
        return dict(self.config["definitions"]["datasets"][name])

    def titles(self, datasets: Iterable[str]) -> dict[str, str]:
        """Return the titles of datasets by name, each once, in order."""
        return {name: self.dataset(name)["title"] for name in dict.fromkeys(datasets)}

    @cached_property
    def published_names(self) -> dict[str, str]:
        """The published row to compare each defined dataset with: that of its own name, unless it
        names another.
        """
        defined = self.config["definitions"]["datasets"]
        return {name: definition.get("published", name) for name, definition in defined.items()}

    @cached_property
    def readings(self) -> dict[str, str]:
        """The reading of each dataset whose images are the paper's in another draw."""
        defined = self.config["definitions"]["datasets"]
        return {
            name: definition["reading"]
            for name, definition in defined.items()
            if "reading" in definition
        }

    def network(self, dataset: str) -> str:
        """Return the name of the network for `dataset`.

        If the configuration names none, it is ``resnet34`` for a user's own colour images and
        ``mlp`` otherwise.
        """
        definition = self.dataset(dataset)
        if "network" in definition:
            return str(definition["network"])
        source = definition["source"]
        return "resnet34" if is_path(source) and is_colour(Path(source).expanduser()) else "mlp"

    def source_of(self, images: str) -> str:
        """Return the source, a name or a path, whose images are called `images` in
        `Layout.images`.
        """
        if not images.startswith("own/"):
            return images
        return str(self.dataset(images.removeprefix("own/"))["source"])

    def _flat_settings(self, variant: str, network: str) -> dict[str, Any]:
        """Return the trainer's settings as one mapping of plain JSON."""
        settings = self.protocol.settings(variant, network).flat()
        plain: dict[str, Any] = json.loads(json.dumps(settings))
        return plain

    def law_text(self, run: Run) -> str:
        """Return a run's law as `mdpu.law.named_law` takes it: its name, or the weights of one that
        is defined.
        """
        weights = self.config["definitions"].get("laws", {}).get(run.law)
        return run.law if weights is None else ",".join(map(str, weights))

    def law(self, run: Run) -> Law | None:
        """Return a run's law, None for the paper's; raise `UserError` if it does not fit the tuple
        size.
        """
        if run.law == DOMINANT:
            return None
        try:
            return named_law(self.law_text(run), run.tuple_size)
        except UserError as error:
            raise UserError(
                f"config key law: {error}; define your own under definitions.laws"
            ) from None

    def checksum(self, dataset: str) -> str | None:
        """Return the text that identifies a dataset's images in the keys of its runs, None if it is
        not known yet.
        """
        definition = self.dataset(dataset)
        if not is_path(definition["source"]):
            return SOURCES[definition["source"]].checksum
        return definition.get("sha256") or self._checksums.get(dataset)

    def with_own_images(self) -> Plan:
        """Return the plan with the checksums of a user's own images, as far as their descriptions
        are there.
        """
        checksums = dict(self._checksums)
        for name in self.datasets:
            description = self.layout.images(name).with_suffix(".json")
            if self.checksum(name) is None and description.exists():
                checksums[name] = str(read_json(description)["checksum"])
        if checksums == self._checksums:
            return self
        return Plan(self.config, checksums)

    def drawing(self, split: str) -> dict[str, Any]:
        """Return how the tuples and unlabeled images of a split are drawn, ready for JSON, with
        every trial's name.

        Trials 1 to 5 are always drawn, so that configurations with other seeds among these share
        the file.
        """
        runs = self.splits[split]
        first = runs[0]
        seeds = {run.seed for run in runs}
        seeds.update(range(1, 6))
        trials = {}
        for seed in sorted(seeds):
            trials[str(seed)] = replace(first, seed=seed).trial
        return {**self._sampling(first), "trials": trials}

    def _sampling(self, run: Run) -> dict[str, Any]:
        """Return how the tuples and unlabeled images of a run are drawn; the paper's law goes
        without saying.
        """
        sampling = self.protocol.sampling(run.variant, run.tuple_size, run.n)
        sampling = {"tuple_size": run.tuple_size, "prior": run.prior, **sampling}
        if run.law != DOMINANT:
            sampling["law"] = self.law_text(run)
        return sampling

    def _spec(self, cell: str) -> dict[str, Any]:
        """Return all that a training job needs to know of a cell, ready for JSON: what its runs'
        keys are made of.
        """
        runs = self.cells[cell]
        run = runs[0]
        dataset = self.dataset(run.dataset)
        self.law(run)  # a law that does not fit the tuple size is a mistake of the configuration
        return {
            "cell": cell,
            "images": self.checksum(run.dataset),
            "sides": {side: sorted(map(str, dataset[side])) for side in ("positive", "negative")},
            "sampling": self._sampling(run),
            "method": run.method,
            "loss": run.loss,
            "prior_offset": float(self.protocol.variant(run.variant)["training"]["prior_offset"]),
            "settings": self._settings(run.variant, self.network(run.dataset)),
            "trials": {str(run.seed): run.trial for run in runs},
        }

    def _key(self, run: Run) -> str | None:
        """Return the key of a run, or None while the checksum of its images is not known."""
        spec = self.spec(run.cell)
        return None if spec["images"] is None else digest(asked(spec, run.seed))

    @cached_property
    def shipped(self) -> dict[str, Path]:
        """The packed file that holds a finished run, by key; empty if nothing is shipped."""
        folder = self.config.get("shipped")
        return shipped_keys(Path(os.path.relpath(REPOSITORY / folder))) if folder else {}

    def shipped_on(self, datasets: Collection[str]) -> list[Path]:
        """Return the packed files of some datasets, with all runs on them."""
        return sorted(
            {path for path in self.shipped.values() if path.stem.removesuffix("-2") in datasets}
        )

    def shipped_files(self, cell: str) -> list[Path]:
        """Return the packed files that hold finished runs of a cell."""
        keys = map(self.key, self.cells[cell])
        return sorted({self.shipped[key] for key in keys if key in self.shipped})

    def to_train(self, cell: str) -> list[Run]:
        """Return the runs of a cell that are not shipped."""
        return [run for run in self.cells[cell] if self.key(run) not in self.shipped]

    def needs_gpu(self, cell: str) -> bool:
        """Return whether a cell's method trains a network."""
        return load_method(self.cells[cell][0].method).trains_network

    def core_minutes(self, cell: str) -> float | None:
        """Return the minutes of one thread that training takes, at 1.0 s per run and epoch of
        30,000 images; None for ResNet-34, which needs a GPU.
        """
        if self.spec(cell)["settings"]["network"] == "resnet34":
            return None
        return self._images_to_train(cell) / 30_000 / 60

    def gpu_minutes(self, cell: str) -> float:
        """Return the minutes of an H100 that training takes beside other jobs; 0 for a perceptron,
        which needs no GPU.
        """
        settings = self.spec(cell)["settings"]
        if settings["network"] != "resnet34":
            return 0.0
        stem = settings["stem"]
        return self._images_to_train(cell) * GPU_SECONDS[stem] / 60

    def _images_to_train(self, cell: str) -> int:
        """Return how many images the missing runs of a cell take forward and backward."""
        spec = self.spec(cell)
        sampling = spec["sampling"]
        images = sampling["tuple_size"] * sampling["n"] + sampling["n_unlabeled"]
        return int(len(self.to_train(cell)) * spec["settings"]["epochs"] * images)

    def minutes(self, cell: str) -> int:
        """Return the minutes to ask a cluster for; training that needs more resumes from its
        checkpoint.
        """
        minutes = self.core_minutes(cell)
        return 240 if minutes is None else 10 + math.ceil(3 * minutes)


def _grouped(runs: Sequence[Run], by: str) -> dict[str, tuple[Run, ...]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        name = getattr(run, by)
        groups.setdefault(name, []).append(run)
    return {name: tuple(group) for name, group in sorted(groups.items())}
