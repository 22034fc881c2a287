"""Runs and the groups that they form: cells, cohorts, tunings, experiments.

A *run* is one trained model. A *cell* is a set of runs that differ only in the seed. A *cohort* is the runs that one
process trains. An *experiment* is a named grid of runs. Experiments overlap; a run that several need is trained once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from mdpu.errors import UserError
from mdpu.pipeline.config import known


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
        Number of tuples, or of their members if ``sampling.n_counts`` says so.
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
        return name_of(vars(self), AXES)

    @property
    def cell(self) -> str:
        """Name of the cell to which the run belongs."""
        return cell_name(vars(self))

    @property
    def split(self) -> str:
        """Name of the split that the run trains on."""
        return name_of(vars(self), ("dataset", "variant", "tuple_size", "prior", "n", "seed"))

    @property
    def trial(self) -> str:
        """Name of the trial, which seeds the split, the initial weights and the order of the minibatches.

        It contains dataset, tuple size, n, prior and seed, so that trials of two cells are independent. It contains
        neither variant, method nor loss, so that comparisons within a cell stay paired.
        """
        return trial_name(vars(self))


AXES = tuple(axis.name for axis in fields(Run))
CELL = tuple(axis for axis in AXES if axis != "seed")
ROW = ("dataset", "tuple_size", "n", "prior")  # the axes that identify a row of a table
_PREFIX = {"tuple_size": "m", "n": "n", "prior": "prior", "seed": "seed"}
_INTEGER = frozenset(("tuple_size", "n", "seed"))


def name_of(key: Mapping[Any, Any], axes: Sequence[str]) -> str:
    """Return the path-like name that a key's values along some axes make, such as a cell's along `CELL`."""
    return "/".join(f"{_PREFIX.get(axis, '')}{key[axis]}" for axis in axes)


def trial_name(key: Mapping[Any, Any]) -> str:
    """Return the name of the trial that a mapping of key columns belongs to."""
    return name_of(key, ("dataset", "tuple_size", "n", "prior", "seed"))


def cell_name(key: Mapping[Any, Any]) -> str:
    """Return the name of the cell that a mapping of key columns belongs to."""
    return name_of(key, CELL)


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


def run_columns(run: Run) -> dict[str, Any]:
    """Return a run as the key columns of tidy tables."""
    return dict(vars(run))


def grid_runs(spec: Mapping[str, Any], dataset: str) -> Iterator[Run]:
    """Yield the runs of an experiment's definition on one dataset."""
    sizes = values_for(dataset, spec["n"])
    cells = itertools.product(
        [dataset],
        spec["variant"],
        spec["tuple_size"],
        [sizes] if isinstance(sizes, int) else sizes,
        map(canonical_prior, spec["prior"]),
        values_for(dataset, spec["method"]),
        spec["loss"],
    )
    for cell in cells:
        *_, method, _ = cell
        yield from (Run(*cell, seed) for seed in values_for(method, spec["seed"]))


def values_for(name: str, axis: Any) -> Any:
    """Return the values of an axis for a dataset or a method: those under its name, or those of all."""
    return axis.get(name, axis["default"]) if isinstance(axis, Mapping) else axis


@dataclass(frozen=True)
class Cohort:
    """Runs that train together in one process. They share dataset, variant, tuple size and n.

    Either all of them train a network, or none does, and then the cohort needs no GPU.
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
    def variant(self) -> str:
        """Variant of every run of the cohort."""
        return self.runs[0].variant

    @property
    def splits(self) -> list[str]:
        """Names of the splits that the cohort's runs train on."""
        return sorted({run.split for run in self.runs})

    def select(self, names: Sequence[str]) -> tuple[Run, ...]:
        """Return the runs of these names; raise `UserError` if the cohort lacks one."""
        by_name = {run.name: run for run in self.runs}
        for name in names:
            known(name, by_name, f"cohort {self.name}, run")
        return tuple(by_name[name] for name in dict.fromkeys(names))


@dataclass(frozen=True)
class Tuning:
    """A choice of learning rate and weight decay: one run per method, trained at every point of the grid."""

    name: str
    network: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Experiment:
    """A named grid of runs, with how the report shows it.

    Attributes
    ----------
    name, kind, title : str
    runs : tuple of Run
        Empty unless its kind shows runs.
    split : str, optional
        Name of the split that is shown, if its kind shows one.
    not_run : tuple of str
        Datasets that the experiment spans but the configuration does not select.
    options : mapping
        Values of the keys that only its kind takes.
    """

    name: str
    kind: str
    title: str
    runs: tuple[Run, ...] = ()
    split: str | None = None
    not_run: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown_dataset(self) -> str:
        """Dataset of the split that is shown."""
        assert self.split is not None
        return self.split.split("/")[0]
