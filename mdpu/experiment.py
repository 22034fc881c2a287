"""From a configuration to runs, cohorts and paths; the one place that knows their names.

A *run* is one trained model. A *cohort* is the set of runs that one process trains together. An
*experiment* is a named grid of runs; experiments overlap, and a run that several need is trained once.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import yaml

from mdpu.config import BASE, Config, check_config, is_path, known, merge, selected
from mdpu.errors import UserError
from mdpu.files import digest, write_text
from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import load_method

PACKAGE = Path(__file__).parent

# The sources that decide what a trained run is, beside the file of its method.
TRAINING_CODE = (
    "theory.py",
    "randomness.py",
    "learn/device.py",
    "learn/head.py",
    "learn/losses.py",
    "learn/method.py",
    "learn/networks.py",
    "learn/risk.py",
    "learn/trainer.py",
)


def canonical_prior(value: object) -> str:
    """Return a prior as the decimal string that paths and tables use: ``0.4``, never ``0.40``.

    Raises
    ------
    UserError
        If `value` is not a number strictly between 0 and 1.
    """
    try:
        number = Decimal(str(value))
        inside = 0 < number < 1
    except InvalidOperation:
        inside = False
    if not inside:
        raise UserError(f"prior {value!r} is not a number strictly between 0 and 1")
    return format(number.normalize(), "f")


@dataclass(frozen=True, order=True)
class Run:
    """One point of the grid: one trained model, one history.

    Attributes
    ----------
    dataset : str
        Name under ``definitions.datasets``.
    variant : str
        Name under ``definitions.variants``: how this run departs from ``protocol``; ``base`` does not.
    tuple_size : int
        M.
    n : int
        Number of tuples, or of their members where ``sampling.n_counts`` says so.
    prior : str
        pi_+ as a canonical decimal string.
    method, loss : str
        A file of ``mdpu/learn/methods`` and a row of Table I.
    seed : int
        The trial.
    """

    dataset: str
    variant: str
    tuple_size: int
    n: int
    prior: str
    method: str
    loss: str
    seed: int

    @property
    def name(self) -> str:
        """Path-like name, unique per run."""
        return "/".join(_part(axis, getattr(self, axis)) for axis in AXES)

    @property
    def cell(self) -> str:
        """Name of the cell that the run is one trial of."""
        return cell_name(asdict(self))

    @property
    def split(self) -> str:
        """Name of the split that the run trains on."""
        return "/".join(
            _part(axis, getattr(self, axis)) for axis in ("dataset", "variant", "tuple_size", "prior", "n", "seed")
        )


AXES = tuple(field.name for field in fields(Run))
# Kinds that show no run: the setting, drawn with images of one split, and the losses, drawn and written out.
ILLUSTRATIONS = ("setting", "losses", "formulas")
# Kinds that become a table; the others become a figure.
TABLE_KINDS = ("table", "formulas")
CELL = tuple(axis for axis in AXES if axis != "seed")
ROW = ("dataset", "tuple_size", "n", "prior")  # what the methods of a table's row share
_PREFIX = {"tuple_size": "m", "n": "n", "prior": "prior", "seed": "seed"}


def _part(axis: str, value: object) -> str:
    return f"{_PREFIX.get(axis, '')}{value}"


@dataclass(frozen=True)
class Cohort:
    """Runs that train together in one process; all share dataset, variant, tuple size and n.

    Either all train a network, or none does and the cohort needs no GPU.
    """

    name: str
    network: str
    needs_gpu: bool
    runs: tuple[Run, ...]

    @property
    def dataset(self) -> str:
        """Dataset of every run of the cohort."""
        return self.runs[0].dataset

    @property
    def splits(self) -> list[str]:
        """Names of the splits that the cohort's runs train on."""
        return sorted({run.split for run in self.runs})

    def select(self, names: Sequence[str]) -> tuple[Run, ...]:
        """Return the runs of these names; raise `UserError` if one is none of the cohort's."""
        by_name = {run.name: run for run in self.runs}
        for name in names:
            known(name, by_name, f"cohort {self.name}, run")
        return tuple(by_name[name] for name in dict.fromkeys(names))


@dataclass(frozen=True)
class Tuning:
    """One choice of learning rate and weight decay: a run per method, trained at every point of the grid."""

    name: str
    network: str
    runs: tuple[Run, ...]


def cell_name(key: Mapping[Any, Any]) -> str:
    """Return the name of the cell that a mapping of key columns belongs to: its runs' names without the seed."""
    return "/".join(_part(axis, key[axis]) for axis in CELL)


@dataclass(frozen=True)
class Experiment:
    """A named grid of runs and what becomes of it in the report.

    Attributes
    ----------
    name, kind, title : str
    runs : tuple of Run
        Empty for an illustration.
    split : str, optional
        Name of the split that an illustration of kind ``setting`` shows.
    not_run : tuple of str
        Datasets that the experiment spans but the configuration does not select.
    readings : tuple of str
        Names under ``definitions.readings``: other ways to report the same runs, which cost no training.
    base_methods : tuple of str
        Methods that are run under the protocol as it stands alone, not under the other variants.
    """

    name: str
    kind: str
    title: str
    runs: tuple[Run, ...] = ()
    split: str | None = None
    not_run: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    base_methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Departure:
    """One key of the protocol at another value than ``base`` has, both as the configuration writes them."""

    key: str
    base: str
    value: str


def training_code(methods: Iterable[str]) -> list[Path]:
    """Return the source files that the histories of runs of `methods` depend on."""
    own = [
        file
        for method in sorted(set(methods))
        for file in (f"learn/methods/{method.replace('-', '_')}.py", *load_method(method).sources)
    ]
    return [PACKAGE / file for file in dict.fromkeys((*TRAINING_CODE, *own))]


def resolve_n_unlabeled(value: int | str, n: int) -> int:
    """Return the number of unlabeled images; ``"n"`` and ``"3n"`` are multiples of the tuples' n."""
    if isinstance(value, int):
        return value
    return int(value.removesuffix("n") or 1) * n


def _points(spec: Mapping[str, Any], dataset: str) -> Iterator[Run]:
    """Yield the runs of an experiment's definition on one dataset."""
    sizes = spec["n"]
    if isinstance(sizes, Mapping):
        sizes = sizes.get(dataset, sizes["default"])
    for variants, methods in ((spec["variant"], spec["method"]), ([BASE], spec.get("base_method", []))):
        points = itertools.product(
            [dataset],
            variants,
            spec["tuple_size"],
            [sizes] if isinstance(sizes, int) else sizes,
            map(canonical_prior, spec["prior"]),
            methods,
            spec["loss"],
            spec["seed"],
        )
        yield from itertools.starmap(Run, points)


class Plan:
    """All that a configuration asks for.

    Parameters
    ----------
    config : dict
        A configuration as `load_config` returns it, or as Snakemake has merged it.

    Raises
    ------
    UserError
        If the configuration is invalid.
    """

    def __init__(self, config: Config) -> None:
        check_config(config)
        self.config = config
        self.results = Path(config["results_dir"]) / config["name"]
        self.images_folder = Path(config["results_dir"]) / "datasets"
        self.data_dir = Path(config["data_dir"]).expanduser()
        self._first_variants: dict[tuple[str, str, int, int], str] = {}

    # -- what there is to train -------------------------------------------------------------------

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """The selected experiments, each with the runs that the selected datasets leave it.

        One that they leave nothing of is not among them, but in `not_run`.
        """
        found = {}
        for name in selected(self.config, "experiments"):
            spec = merge(self.config["axes"], self.config["definitions"]["experiments"][name])
            kind, title = spec["kind"], spec["title"]
            if kind in ("losses", "formulas"):
                found[name] = Experiment(name, kind, title)
                continue
            spanned = spec.get("datasets", list(self.config["definitions"]["datasets"]))
            chosen = [dataset for dataset in selected(self.config, "datasets") if dataset in spanned]
            points = (run for dataset in chosen for run in _points(spec, dataset))
            runs = tuple(dict.fromkeys(map(self._shared, points)))
            if kind == "setting" and runs:
                found[name] = Experiment(name, kind, title, split=runs[0].split)
            elif runs:
                left_out = tuple(dataset for dataset in spanned if dataset not in chosen)
                readings, base_methods = (tuple(spec.get(key, [])) for key in ("reading", "base_method"))
                found[name] = Experiment(name, kind, title, runs, None, left_out, readings, base_methods)
        return found

    def _shared(self, run: Run) -> Run:
        """Return the run under the first variant whose data and training are the same, so that it is trained once.

        A variant may change nothing: because an overlay gives the protocol its value, or because it sets a
        key of a network that the dataset is not trained with.
        """
        if run.variant == BASE:
            return run
        point = run.dataset, run.tuple_size, run.n
        if (run.variant, *point) not in self._first_variants:
            wanted = self._drawn_and_trained(run.variant, *point)
            self._first_variants[run.variant, *point] = next(
                name
                for name in dict.fromkeys((BASE, *self.config["definitions"]["variants"]))
                if self._drawn_and_trained(name, *point) == wanted
            )
        return replace(run, variant=self._first_variants[run.variant, *point])

    def _drawn_and_trained(self, variant: str, dataset: str, tuple_size: int, n: int) -> tuple[Any, ...]:
        """Return all by which a variant's runs of one dataset, tuple size and n can differ from another's."""
        training = self.training(variant, self.network(dataset))
        if training["hyperparameters"] == "tuned":
            training = {**training, "learning_rate": None, "weight_decay": None}
        return self.number_of_tuples(variant, tuple_size, n), self.sampling(variant, n), training

    @cached_property
    def not_run(self) -> dict[str, str]:
        """Titles of the experiments that are defined but of which nothing is selected, by name."""
        defined = self.config["definitions"]["experiments"]
        return {name: spec["title"] for name, spec in defined.items() if name not in self.experiments}

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every run that some selected experiment needs, once, in order."""
        return tuple(sorted({run for experiment in self.experiments.values() for run in experiment.runs}))

    @cached_property
    def table_rows(self) -> frozenset[tuple[str, int, int, str]]:
        """The rows (dataset, tuple size, n, prior) of the selected tables."""
        tables = [experiment for experiment in self.experiments.values() if experiment.kind == "table"]
        return frozenset((run.dataset, run.tuple_size, run.n, run.prior) for table in tables for run in table.runs)

    @cached_property
    def cohorts(self) -> dict[str, Cohort]:
        """The runs grouped by the axes that their network's cohorts do not span.

        Methods without a network make cohorts of their own, whose names end in ``/cpu``.
        """
        groups: dict[tuple[str, bool], list[Run]] = {}
        for run in self.runs:
            spans = self.config["cohort"][self.network(run.dataset)]
            needs_gpu = not isinstance(load_method(run.method), FittedMethod)
            parts = [_part(axis, getattr(run, axis)) for axis in AXES if axis not in spans]
            groups.setdefault(("/".join(parts if needs_gpu else [*parts, "cpu"]), needs_gpu), []).append(run)
        return {
            name: Cohort(name, self.network(runs[0].dataset), needs_gpu, tuple(runs))
            for (name, needs_gpu), runs in sorted(groups.items())
        }

    @cached_property
    def tunings(self) -> dict[str, Tuning]:
        """The tunings that runs with tuned hyper-parameters need, one per dataset, variant and tuple size."""
        groups: dict[tuple[str, str, int], list[Run]] = {}
        for run in self.runs:
            if self.tuning_name(run) is not None:
                groups.setdefault((run.dataset, run.variant, run.tuple_size), []).append(run)
        found = {}
        for (dataset, variant, tuple_size), runs in groups.items():
            tuning = self.config["tuning"]
            n, prior = min(run.n for run in runs), canonical_prior(tuning["prior"])
            methods = sorted({run.method for run in runs})
            name = self.tuning_name(runs[0])
            assert name is not None
            found[name] = Tuning(
                name,
                self.network(dataset),
                tuple(
                    Run(dataset, variant, tuple_size, n, prior, method, "logistic", tuning["seed"])
                    for method in methods
                ),
            )
        return found

    def tuning_name(self, run: Run) -> str | None:
        """Return the name of the tuning that a run takes its rates from, or None where they are fixed."""
        if self.protocol(run.variant)["training"]["hyperparameters"] == "fixed" or not load_method(run.method).tunable:
            return None
        return "/".join(_part(axis, getattr(run, axis)) for axis in ("dataset", "variant", "tuple_size"))

    @cached_property
    def datasets(self) -> list[str]:
        """Datasets that some run or illustration needs."""
        return sorted({split.split("/")[0] for split in self.splits})

    @cached_property
    def splits(self) -> list[str]:
        """Names of the splits that some run trains on or an illustration shows; each begins with its dataset's."""
        shown = {experiment.split for experiment in self.experiments.values() if experiment.split}
        return sorted({run.split for run in self.runs} | shown)

    def cohort(self, name: str) -> Cohort:
        """Return the cohort called `name`; raise `UserError` if the configuration has none."""
        known(name, self.cohorts, "cohort")
        return self.cohorts[name]

    def find_runs(self, name: str) -> tuple[Run, ...]:
        """Return the run called `name`, or the runs of the cell called so.

        Raises
        ------
        UserError
            If the configuration has neither.
        """
        by_name: dict[str, list[Run]] = {}
        for run in self.runs:
            by_name.setdefault(run.name, []).append(run)
            by_name.setdefault(run.cell, []).append(run)
        known(name, by_name, "run or cell")
        return tuple(by_name[name])

    def cohort_of(self, run: Run) -> Cohort:
        """Return the cohort that trains a run."""
        return next(cohort for cohort in self.cohorts.values() if run in cohort.runs)

    def experiment(self, name: str) -> Experiment:
        """Return the selected experiment called `name`; raise `UserError` if there is none."""
        known(name, self.experiments, "experiment")
        return self.experiments[name]

    # -- settings ---------------------------------------------------------------------------------

    def dataset(self, name: str) -> dict[str, Any]:
        """Return the definition of a dataset: source, sides, title, network."""
        known(name, self.config["definitions"]["datasets"], "dataset")
        return cast(dict[str, Any], self.config["definitions"]["datasets"][name])

    def titles(self, datasets: Iterable[str]) -> dict[str, str]:
        """Return the titles of datasets by name, each once, in order."""
        return {name: self.dataset(name)["title"] for name in dict.fromkeys(datasets)}

    @cached_property
    def published_names(self) -> dict[str, str]:
        """The published row that each defined dataset is compared with: its own name unless it says otherwise."""
        return {
            name: definition.get("published", name)
            for name, definition in self.config["definitions"]["datasets"].items()
        }

    def network(self, dataset: str) -> str:
        """Return the name of the network that `dataset` is trained with.

        Where the configuration names none it is ``resnet34`` for one's own colour images, else ``mlp``.
        """
        definition = self.dataset(dataset)
        if "network" in definition:
            return str(definition["network"])
        if not is_path(definition["source"]):
            return "mlp"
        from mdpu.data.sources.own import image_shape

        return "resnet34" if image_shape(Path(definition["source"]).expanduser())[2:] == (3,) else "mlp"

    def protocol(self, variant: str) -> dict[str, Any]:
        """Return the protocol with the overrides of `variant` applied."""
        known(variant, self.config["definitions"]["variants"], "variant")
        return merge(self.config["protocol"], self.config["definitions"]["variants"][variant] or {})

    def sampling(self, variant: str, n: int) -> dict[str, Any]:
        """Return how the images of a split at `n` are drawn, with n_unlabeled as a number."""
        sampling = dict(self.protocol(variant)["sampling"])
        del sampling["n_counts"]  # of the tuples alone: see `number_of_tuples`
        sampling["n_unlabeled"] = resolve_n_unlabeled(sampling["n_unlabeled"], n)
        return sampling

    def number_of_tuples(self, variant: str, tuple_size: int, n: int) -> int:
        """Return how many tuples a split at `n` holds: n of them, or as many as have n members."""
        counted = self.protocol(variant)["sampling"]["n_counts"]
        return max(1, n // tuple_size) if counted == "images" else n

    def departures(self, variant: str, networks: Iterable[str]) -> list[Departure]:
        """Return the keys, of sampling and of the training of some networks, in which a variant departs from base."""
        found: dict[str, Departure] = {}
        for network in networks:
            settings, base = (
                {**self.protocol(name)["sampling"], **self.training(name, network)} for name in (variant, BASE)
            )
            found |= {
                key: Departure(key, _written(base[key]), _written(value))
                for key, value in settings.items()
                if value != base[key]
            }
        return list(found.values())

    @property
    def reports_best_epoch(self) -> bool:
        """Whether a run is read at its epoch of highest test accuracy, which is chosen by the test labels."""
        best: bool = self.config["protocol"]["reporting"]["average_last"] == "best"
        return best

    def reading(self, name: str) -> dict[str, Any]:
        """Return the reporting settings of a reading; ``base`` is ``protocol.reporting`` as it stands."""
        reporting: dict[str, Any] = self.config["protocol"]["reporting"]
        if name == BASE:
            return reporting
        known(name, self.config["definitions"].get("readings", {}), "reading")
        return merge(reporting, self.config["definitions"]["readings"][name])

    def training(self, variant: str, network: str) -> dict[str, Any]:
        """Return the training settings of one network, flattened: the network's own keys join the rest."""
        training = dict(self.protocol(variant)["training"])
        networks = training.pop("networks")
        return {**training, "network": network, **networks[network]}

    def tuning_title(self, name: str) -> str:
        """Return what a tuning is called in the report: dataset, variant if it is none of the base, and tuple size."""
        known(name, self.tunings, "tuning")
        run = self.tunings[name].runs[0]
        variant = "" if run.variant == "base" else f" ({run.variant})"
        return f"{self.dataset(run.dataset)['title']}{variant}, M = {run.tuple_size}"

    def tuning_settings(self, name: str) -> dict[str, Any]:
        """Return all in the configuration that a tuning's choice depends on."""
        known(name, self.tunings, "tuning")
        tuning = self.tunings[name]
        return {
            "runs": [astuple(run) for run in tuning.runs],
            "training": self.training(tuning.runs[0].variant, tuning.network),
            "grid": self.config["tuning"],
            "average_last": self._tuned_over(tuning),
        }

    def _tuned_over(self, tuning: Tuning) -> int:
        """Return the number of last epochs that a tuning averages: the reported ones, or all, as it sees no best."""
        average = self.config["protocol"]["reporting"]["average_last"]
        epochs = self.training(tuning.runs[0].variant, tuning.network)["epochs"]
        return average if isinstance(average, int) else int(epochs)

    def cohort_settings(self, name: str) -> dict[str, Any]:
        """Return all in the configuration that a cohort's histories depend on."""
        cohort = self.cohort(name)
        return {
            "runs": [astuple(run) for run in cohort.runs],
            "training": self.training(cohort.runs[0].variant, cohort.network),
        }

    @property
    def uncounted(self) -> list[str]:
        """Datasets of which the configuration does not say how many training images each side has."""
        return [
            name
            for name in self.datasets
            if not {"positive", "negative"} <= self.dataset(name).get("counts", {}).get("train", {}).keys()
        ]

    def pool_settings(self) -> dict[str, Any]:
        """Return all in the configuration that the table of the largest n depends on."""
        return {
            "datasets": {name: [self.dataset(name)["title"], self.published_names[name]] for name in self.datasets},
            "counts": {name: self.dataset(name).get("counts", {}).get("train", {}) for name in self.datasets},
            "points": sorted({(run.dataset, run.tuple_size, run.prior, run.n) for run in self.runs}),
        }

    def experiment_settings(self, name: str) -> dict[str, Any]:
        """Return all in the configuration that the table or figure of an experiment depends on."""
        experiment = self.experiment(name)
        shown = [experiment.split.split("/")[0]] if experiment.split else []
        return {
            "title": experiment.title,
            "datasets": self.titles([*self.datasets, *experiment.not_run]),
            "not_run": experiment.not_run,
            "runs": digest([astuple(run) for run in experiment.runs]),
            "sides": {name: {side: self.dataset(name)[side] for side in ("positive", "negative")} for name in shown},
            **({"departures": self._departures_of(experiment)} if experiment.kind == "sensitivity" else {}),
        }

    def _departures_of(self, experiment: Experiment) -> dict[str, Any]:
        """Return what the variants and readings of an experiment stand for."""
        networks = sorted({self.network(run.dataset) for run in experiment.runs})
        return {
            "variants": {
                name: [astuple(departure) for departure in self.departures(name, networks)]
                for name in dict.fromkeys(run.variant for run in experiment.runs)
            },
            "readings": {name: self.reading(name) for name in (BASE, *experiment.readings)},
        }

    # -- files ------------------------------------------------------------------------------------

    @cached_property
    def file(self) -> Path:
        """Path of this configuration, resolved, named by its content; see `write`."""
        return self.results / "config" / f"{digest(self.config)}.yaml"

    def write(self) -> Path:
        """Write the resolved configuration where the commands of the workflow read it.

        The name holds a digest of the content, so that a dry run with other settings never changes
        the file that running jobs read.
        """
        if not self.file.exists():
            write_text(self.file, yaml.safe_dump(self.config, sort_keys=False, allow_unicode=True))
        return self.file

    def images(self, dataset: str) -> Path:
        """Images of a dataset's source; a source that is a path is called ``own/<dataset>`` here."""
        source = self.dataset(dataset)["source"]
        return self.images_folder / f"{f'own/{dataset}' if is_path(source) else source}.npz"

    def source_of(self, images: str) -> str:
        """Return the source whose images are called `images`, a name or a path: `images` read backwards."""
        return str(self.dataset(images.removeprefix("own/"))["source"]) if images.startswith("own/") else images

    @cached_property
    def own_files(self) -> dict[str, list[Path]]:
        """Of each images file made from one's own images, as `source_of` takes it, the files that it is made from."""
        from mdpu.data.sources.own import inputs

        return {
            f"own/{name}": inputs(Path(self.dataset(name)["source"]).expanduser())
            for name in self.datasets
            if is_path(self.dataset(name)["source"])
        }

    def labels(self, dataset: str) -> Path:
        """Labels of a dataset."""
        return self.results / "labels" / f"{dataset}.npz"

    def split(self, split: str) -> Path:
        """Split of a run, by its name."""
        return self.results / "splits" / f"{split}.npz"

    def history(self, cohort: str) -> Path:
        """Histories of a cohort."""
        return self.results / "histories" / f"{cohort}.parquet"

    def tuned(self, tuning: str) -> Path:
        """Grid and choice of a tuning."""
        return self.results / "tuning" / f"{tuning}.csv"

    @property
    def metrics(self) -> Path:
        """One row per run and epoch, of all runs."""
        return self.results / "metrics.parquet"

    @property
    def store(self) -> Path:
        """Folder of finished runs, from which a cohort takes what has not changed."""
        return self.results / "runs"

    # -- summary ----------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """Return counts of what the configuration asks for, ready for JSON."""
        return {
            "name": self.config["name"],
            "experiments": {name: len(e.runs) for name, e in self.experiments.items()},
            "datasets": self.datasets,
            "runs": len(self.runs),
            "splits": len(self.splits),
            "cohorts": {name: len(cohort.runs) for name, cohort in self.cohorts.items()},
        }


def _written(value: object) -> str:
    """Return a value of the configuration as one would write it there."""
    return value if isinstance(value, str) else json.dumps(value)


def parse_run(text: str) -> Run:
    """Return the run whose `Run.name` is `text`.

    Raises
    ------
    UserError
        If `text` does not name a run.
    """
    pattern = "/".join(
        f"{_PREFIX.get(axis, '')}(?P<{axis}>{r'[0-9]+' if axis in _INTEGER else '[^/]+'})" for axis in AXES
    )
    match = re.fullmatch(pattern, text)
    if match is None:
        example = Run("mnist", "base", 2, 10000, "0.5", "abs", "logistic", 1).name
        raise UserError(f"{text!r} is not the name of a run; an example is {example}")
    values = {axis: int(value) if axis in _INTEGER else value for axis, value in match.groupdict().items()}
    return Run(**cast(Any, values))


_INTEGER = frozenset(("tuple_size", "n", "seed"))


def run_columns(run: Run) -> dict[str, Any]:
    """Return the key columns of a run, as every tidy table has them."""
    return asdict(run)
