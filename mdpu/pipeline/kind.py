"""What a kind of experiment is, and which kinds exist.

A kind is a file or a folder of ``mdpu/pipeline/experiments`` that defines ``KIND``; it is discovered by being there.
Its contract is here because plans read it: the axes that an experiment takes, what it depends on, and the files that it
writes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mdpu.pipeline.files import PACKAGE
from mdpu.pipeline.grid import Run, grid_runs

if TYPE_CHECKING:
    from mdpu.pipeline.grid import Experiment
    from mdpu.pipeline.plan import Plan

KINDS_FOLDER = PACKAGE / "pipeline" / "experiments"
# The parts of the report in order, by the value of `part` in an experiment's definition.
PARTS = {
    "paper": "The paper",
    "choices": "Open choices",
    "beyond": "Beyond the paper",
    "bags": "Tuples as bags",
}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What plans, rules and the report know about a kind of experiment.

    Attributes
    ----------
    make : callable
        From plan, experiment, the input files by the names in `reads`, and the folder of results; it writes `files`.
    section : callable
        From plan, experiment and the folder of results to the variables of `template`, among them the experiment's
        ``name`` and ``title``.
    reads : tuple of str
        Its inputs: ``summary``, ``metrics``; a kind that shows a split may also read ``images``, ``labels``, ``split``.
    files : tuple of str
        Its outputs, as paths in the folder of results with ``{name}`` for the experiment's name.
    shows : {'runs', 'split', 'nothing'}
        What it shows: runs, which are trained; one split, the first of its grid; or nothing, and then it has no grid.
    single : tuple of str
        Axes of which it can show only one value.
    keys : mapping
        Keys of a definition that only this kind takes, each with the JSON schema of its value.
    check : callable
        From a definition (with inherited axes), the configuration and the definition's key; raises `UserError` for
        mistakes that a schema cannot express.
    runs : callable
        From a definition and a dataset to the runs on it.
    settings : callable
        From plan and experiment to everything else in the configuration that affects `files`, ready for JSON.
    tabulates : bool
        Whether claims and ranks count its rows as rows of a table.
    caption : callable
        From the experiment to what its files show, in general.
    place : {'tables', 'figures', 'studies'}
        The part of the report that shows it.
    template : str
        Jinja template of its section, in ``report``.
    """

    make: Callable[[Plan, Experiment, Mapping[str, Path], Path], None]
    section: Callable[[Plan, Experiment, Path], dict[str, Any]]
    reads: tuple[str, ...]
    files: tuple[str, ...]
    shows: Literal["runs", "split", "nothing"] = "runs"
    single: tuple[str, ...] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any], Mapping[str, Any], str], None] = lambda definition, config, where: None
    runs: Callable[[Mapping[str, Any], str], Iterable[Run]] = grid_runs
    settings: Callable[[Plan, Experiment], dict[str, Any]] = lambda plan, experiment: {}
    tabulates: bool = False
    caption: Callable[[Experiment], str] = lambda experiment: ""
    place: Literal["tables", "figures", "studies"] = "figures"
    template: str = "sections/figure.html.j2"

    def outputs(self, name: str) -> list[str]:
        """Return the files of the experiment called `name`, as paths in the folder of results."""
        return [file.format(name=name) for file in self.files]


def available_kinds() -> list[str]:
    """Return the kinds discovered in ``mdpu/pipeline/experiments``."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules([str(KINDS_FOLDER)]))


def kind_module(name: str) -> str:
    """Return the dotted name of the module that defines a kind."""
    return f"mdpu.pipeline.experiments.{name.replace('-', '_')}"


def load_kind(name: str) -> Kind:
    """Return the kind called `name`."""
    kind = importlib.import_module(kind_module(name)).KIND
    assert isinstance(kind, Kind)
    return kind
