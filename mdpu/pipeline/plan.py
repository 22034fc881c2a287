"""What a configuration asks for: experiments, runs, cohorts, tunings, and the settings that each depends on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mdpu.learn.method import FittedMethod
from mdpu.learn.methods import load_method
from mdpu.learn.networks import load_network
from mdpu.learn.task import Settings
from mdpu.pipeline.config import BASE, Config, check_config, check_networks, find_dataset, known, merge, selected
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.files import digest
from mdpu.pipeline.grid import AXES, Cohort, Experiment, Run, Tuning, canonical_prior, name_of, parse_run, run_columns
from mdpu.pipeline.kind import Kind, load_kind
from mdpu.pipeline.paths import Layout
from mdpu.pipeline.protocol import Protocol

STACKED = ("prior", "method", "loss", "seed")  # axes along which runs can share a stack


class Plan:
    """All that a configuration asks for.

    Parameters
    ----------
    config : dict
        A configuration as `load_config` returns it, or as Snakemake merged it.

    Attributes
    ----------
    config : dict
    protocol : Protocol
    layout : Layout
    failed : dict
        The cohorts that are left out because their training failed, each with the reason.

    Raises
    ------
    UserError
        If the configuration is invalid.
    """

    def __init__(self, config: Config) -> None:
        check_config(config)
        check_networks(config)
        self.config = config
        self.protocol = Protocol(config)
        self.layout = Layout(config)
        self.failed: dict[str, str] = config.get("failed", {})
        self._flat_settings: dict[tuple[str, str], dict[str, Any]] = {}
        self._first_variants: dict[tuple[str, str, int, int], str] = {}
        self._cohort_axes: dict[str, tuple[str, ...]] = {}  # by dataset

    # -- what there is to train -------------------------------------------------------------------

    @cached_property
    def experiments(self) -> dict[str, Experiment]:
        """The selected experiments, each with its runs on the selected datasets.

        An experiment without any such run is in `not_run` instead.
        """
        experiments = {}
        for name in selected(self.config, "experiments"):
            spec = merge(self.config["axes"], self.config["definitions"]["experiments"][name])
            if (experiment := self._experiment(name, spec, load_kind(spec["kind"]))) is not None:
                experiments[name] = experiment
        return experiments

    def _experiment(self, name: str, spec: Config, kind: Kind) -> Experiment | None:
        """Return a selected experiment, or None if it spans none of the selected datasets."""
        options = {key: spec[key] for key in kind.keys if key in spec}
        if kind.shows == "nothing":
            return Experiment(name, spec["kind"], spec["title"], options=options)
        spanned = spec.get("datasets", list(self.config["definitions"]["datasets"]))
        chosen = [dataset for dataset in selected(self.config, "datasets") if dataset in spanned]
        points = (run for dataset in chosen for run in kind.runs(spec, dataset))
        runs = tuple(dict.fromkeys(map(self._shared, points)))
        if runs and kind.shows == "split":
            return Experiment(name, spec["kind"], spec["title"], split=runs[0].split)
        if self.failed:
            runs = tuple(run for run in runs if self._cohort_name(run) not in self.failed)
        if not runs:
            return None
        shown = {run.dataset for run in runs}
        left_out = tuple(dataset for dataset in spanned if dataset not in shown)
        return Experiment(name, spec["kind"], spec["title"], runs, not_run=left_out, options=options)

    def _shared(self, run: Run) -> Run:
        """Return the run under the first variant with the same data and training, so that it is trained once.

        A variant may change nothing for a run: because an overlay made its value the protocol's, or because it sets a
        key of a network that the dataset does not use.
        """
        if run.variant == BASE:
            return run
        point = run.dataset, run.tuple_size, run.n
        if (run.variant, *point) not in self._first_variants:
            identity = self._drawn_and_trained(run.variant, *point)
            self._first_variants[run.variant, *point] = next(
                name
                for name in dict.fromkeys((BASE, *self.config["definitions"]["variants"]))
                if self._drawn_and_trained(name, *point) == identity
            )
        return replace(run, variant=self._first_variants[run.variant, *point])

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
        """The rows (dataset, tuple size, n, prior) of the selected tables."""
        tables = [experiment for experiment in self.experiments.values() if load_kind(experiment.kind).tabulates]
        return frozenset((run.dataset, run.tuple_size, run.n, run.prior) for table in tables for run in table.runs)

    @cached_property
    def cohorts(self) -> dict[str, Cohort]:
        """The runs, grouped by the axes that their network's cohorts do not span.

        Methods without a network form their own cohorts, whose names end in ``/cpu``.
        """
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(self._cohort_name(run), []).append(run)
        return {
            name: Cohort(name, self.network(runs[0].dataset), _needs_gpu(runs[0].method), tuple(runs))
            for name, runs in sorted(groups.items())
        }

    def _cohort_name(self, run: Run) -> str:
        """Return the name of the cohort that trains a run."""
        if run.dataset not in self._cohort_axes:
            spans = self._spanned(self.network(run.dataset))
            self._cohort_axes[run.dataset] = tuple(axis for axis in AXES if axis not in spans)
        name = name_of(run_columns(run), self._cohort_axes[run.dataset])
        return name if _needs_gpu(run.method) else f"{name}/cpu"

    def _spanned(self, network: str) -> Sequence[str]:
        """Return the axes that a network's cohorts span: the configured ones, or all that a stack can hold."""
        return self.config["cohort"].get(network, STACKED if load_network(network).stacks else ())

    @cached_property
    def tunings(self) -> dict[str, Tuning]:
        """The tunings that runs with tuned hyper-parameters need, one per dataset, variant and tuple size."""
        groups: dict[tuple[str, str, int], list[Run]] = {}
        for run in self.runs:
            if self.tuning_name(run) is not None:
                groups.setdefault((run.dataset, run.variant, run.tuple_size), []).append(run)
        tunings = {}
        for (dataset, variant, tuple_size), runs in groups.items():
            tuning = self.config["tuning"]
            n, prior = min(run.n for run in runs), canonical_prior(tuning["prior"])
            methods = sorted({run.method for run in runs})
            name = self.tuning_name(runs[0])
            assert name is not None
            tunings[name] = Tuning(
                name,
                self.network(dataset),
                tuple(
                    Run(dataset, variant, tuple_size, n, prior, method, "logistic", tuning["seed"])
                    for method in methods
                ),
            )
        return tunings

    def tuning_name(self, run: Run) -> str | None:
        """Return the name of the tuning that chooses a run's rates, or None if they are fixed."""
        if not self.protocol.is_tuned(run.variant) or not load_method(run.method).tunable:
            return None
        return name_of(run_columns(run), ("dataset", "variant", "tuple_size"))

    @cached_property
    def datasets(self) -> list[str]:
        """Datasets that a run or an illustration needs."""
        return sorted({split.split("/")[0] for split in self.splits})

    @cached_property
    def splits(self) -> list[str]:
        """Names of the splits that runs train on or illustrations show; each begins with the name of its dataset."""
        shown = {experiment.split for experiment in self.experiments.values() if experiment.split}
        return sorted({run.split for run in self.runs} | shown)

    def drawing(self, split: str) -> dict[str, Any]:
        """Return how a split is drawn: the parameters of `mdpu.pipeline.data.splits.draw_split` after the labels."""
        run = self._by_split[split]
        return {
            "tuple_size": run.tuple_size,
            "prior": float(run.prior),
            "n": self.protocol.number_of_tuples(run.variant, run.tuple_size, run.n),
            **self.protocol.sampling(run.variant, run.n),
            "trial": run.trial,
        }

    @cached_property
    def _by_split(self) -> dict[str, Run]:
        """A run of each split, also of those that are only shown."""
        shown = [_run_of(experiment.split) for experiment in self.experiments.values() if experiment.split]
        return {run.split: run for run in (*shown, *self.runs)}

    def cohort(self, name: str) -> Cohort:
        """Return the cohort called `name`; raise `UserError` if the configuration has none."""
        known(name, self.cohorts, "cohort")
        return self.cohorts[name]

    def find_runs(self, name: str) -> tuple[Run, ...]:
        """Return the run called `name`, or the runs of the cell called `name`.

        Raises
        ------
        UserError
            If the configuration has no such run or cell.
        """
        by_name: dict[str, list[Run]] = {}
        for run in self.runs:
            by_name.setdefault(run.name, []).append(run)
            by_name.setdefault(run.cell, []).append(run)
        known(name, by_name, "run or cell")
        return tuple(by_name[name])

    def cohort_of(self, run: Run) -> Cohort:
        """Return the cohort that trains a run."""
        return self.cohorts[self._cohort_name(run)]

    def experiment(self, name: str) -> Experiment:
        """Return the selected experiment called `name`; raise `UserError` if there is none."""
        known(name, self.experiments, "experiment")
        return self.experiments[name]

    def part(self, name: str) -> str:
        """Return the part of the report that shows an experiment."""
        return str(self.config["definitions"]["experiments"][name].get("part", "paper"))

    # -- settings ---------------------------------------------------------------------------------

    def dataset(self, name: str) -> dict[str, Any]:
        """Return the definition of a dataset: source, sides, title, network."""
        return find_dataset(self.config, name)

    def titles(self, datasets: Iterable[str]) -> dict[str, str]:
        """Return the titles of datasets by name, each once, in order."""
        return {name: self.dataset(name)["title"] for name in dict.fromkeys(datasets)}

    @cached_property
    def published_names(self) -> dict[str, str]:
        """The published row to compare each defined dataset with: that of its own name, unless it names another."""
        return {
            name: definition.get("published", name)
            for name, definition in self.config["definitions"]["datasets"].items()
        }

    def minutes(self, cohort: str) -> int:
        """Return the minutes to request for a cohort's training on a cluster.

        The perceptron gets three times what it takes in float32 on two threads: 0.223 s per run and epoch of 30,000
        images (docs/explanation/performance.md). Other networks get four hours: they need a GPU, whose speed depends on
        its model. Training that is not finished by then resumes from its checkpoint.
        """
        runs, network = self.cohort(cohort).runs, self.cohort(cohort).network
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

    def network(self, dataset: str) -> str:
        """Return the name of the network for `dataset`.

        If the configuration names none, it is ``resnet34`` for a user's own colour images and ``mlp`` otherwise.
        """
        definition = self.dataset(dataset)
        if "network" in definition:
            return str(definition["network"])
        if not is_path(definition["source"]):
            return "mlp"
        from mdpu.pipeline.data.own import image_shape

        return "resnet34" if image_shape(Path(definition["source"]).expanduser())[2:] == (3,) else "mlp"

    def settings(self, variant: str, network: str) -> Settings:
        """Return the trainer's settings for a network under a variant."""
        training = self.protocol.training(variant, network)
        del training["prior_offset"], training["hyperparameters"]  # they concern the task and the plan
        return Settings.parse(training)

    def flat_settings(self, variant: str, network: str) -> dict[str, Any]:
        """Return the trainer's settings as one mapping, ready for JSON."""
        if (variant, network) not in self._flat_settings:
            self._flat_settings[variant, network] = self.settings(variant, network).flat()
        return self._flat_settings[variant, network]

    def tuning_title(self, name: str) -> str:
        """Return the title of a tuning in the report: dataset, variant unless it is base, and tuple size."""
        known(name, self.tunings, "tuning")
        run = self.tunings[name].runs[0]
        variant = "" if run.variant == "base" else f" ({run.variant})"
        return f"{self.dataset(run.dataset)['title']}{variant}, M = {run.tuple_size}"

    def tuning_settings(self, name: str) -> dict[str, Any]:
        """Return everything in the configuration that affects a tuning's choice."""
        known(name, self.tunings, "tuning")
        tuning = self.tunings[name]
        return {
            "runs": [astuple(run) for run in tuning.runs],
            "training": self.protocol.training(tuning.runs[0].variant, tuning.network),
            "grid": self.config["tuning"],
            "average_last": self._tuned_over(tuning),
        }

    def _tuned_over(self, tuning: Tuning) -> int:
        """Return how many last epochs a tuning averages: the reported ones, or all, as it knows no best epoch."""
        average = self.protocol.reporting()["average_last"]
        epochs = self.protocol.training(tuning.runs[0].variant, tuning.network)["epochs"]
        return average if isinstance(average, int) else int(epochs)

    def cohort_settings(self, name: str) -> dict[str, Any]:
        """Return everything in the configuration that affects a cohort's histories."""
        cohort = self.cohort(name)
        training = self.protocol.training(cohort.variant, cohort.network)
        return {"runs": [astuple(run) for run in cohort.runs], "training": training}

    def experiment_settings(self, name: str) -> dict[str, Any]:
        """Return everything in the configuration that affects the files of an experiment."""
        experiment = self.experiment(name)
        shows_data = experiment.runs or experiment.split
        return {
            "title": experiment.title,
            "datasets": self.titles([*self.datasets, *experiment.not_run]) if shows_data else {},
            "not_run": experiment.not_run,
            "runs": digest([astuple(run) for run in experiment.runs]),
            **load_kind(experiment.kind).settings(self, experiment),
        }

    # -- files ------------------------------------------------------------------------------------

    def experiment_inputs(self, name: str) -> dict[str, Path]:
        """Return the input files of an experiment by name; its kind says which ones it reads."""
        experiment = self.experiment(name)
        files = {"summary": self.layout.summary, "metrics": self.layout.metrics}
        if experiment.split:
            dataset = experiment.shown_dataset
            files |= {"images": self.layout.images(dataset), "labels": self.layout.labels(dataset)}
            files |= {"split": self.layout.split(experiment.split)}
        return {read: files[read] for read in load_kind(experiment.kind).reads}

    def experiment_caption(self, name: str) -> str:
        """Return what the files of an experiment show, in general."""
        experiment = self.experiment(name)
        return " ".join(load_kind(experiment.kind).caption(experiment).split())

    def experiment_outputs(self, name: str) -> list[Path]:
        """Return the output files of an experiment."""
        return [self.layout.results / file for file in load_kind(self.experiment(name).kind).outputs(name)]

    def source_of(self, images: str) -> str:
        """Return the source, a name or a path, whose images are called `images`: the inverse of `Layout.images`."""
        return str(self.dataset(images.removeprefix("own/"))["source"]) if images.startswith("own/") else images

    @cached_property
    def own_files(self) -> dict[str, list[Path]]:
        """The input files of each images file that is made from a user's own images, by the name for `source_of`."""
        from mdpu.pipeline.data.own import inputs

        return {
            f"own/{name}": inputs(Path(self.dataset(name)["source"]).expanduser())
            for name in self.datasets
            if is_path(self.dataset(name)["source"])
        }

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
            "failed": self.failed,
        }


def _run_of(split: str) -> Run:
    """Return some run of a split, by its name."""
    head, _, seed = split.rpartition("/")
    dataset, variant, tuple_size, prior, n = head.split("/")
    return parse_run("/".join([dataset, variant, tuple_size, n, prior, "any", "any", seed]))


@cache
def _needs_gpu(method: str) -> bool:
    return not isinstance(load_method(method), FittedMethod)
