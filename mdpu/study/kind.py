"""What a kind of experiment is, and which kinds there are.

A kind is a file or a folder of ``mdpu/kinds`` that defines ``KIND``, discovered by being there. The contract stands
here, because a plan reads it: which axes an experiment takes, what it depends on and which files it becomes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mdpu.files import PACKAGE
from mdpu.study.grid import Run, grid_runs

if TYPE_CHECKING:
    from mdpu.study.grid import Experiment
    from mdpu.study.plan import Plan

KINDS_FOLDER = PACKAGE / "kinds"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What plans, rules and the report know of a kind of experiment.

    Attributes
    ----------
    make : callable
        From plan, experiment, the files that it `reads` by name, and the folder of results: writes `files`.
    section : callable
        From plan, experiment and the folder of results to what `template` shows, with the experiment's ``name`` and
        ``title``.
    reads : tuple of str
        What it is made from: ``summary``, ``metrics``; of a split also ``images``, ``labels``, ``split``.
    files : tuple of str
        What it becomes, as paths in the folder of results with ``{name}`` for the experiment's name.
    shows : {'runs', 'split', 'nothing'}
        What its grid spans: runs, which are trained; one split, the first of the grid, which is drawn; or nothing, and
        then it needs no grid.
    single : tuple of str
        Axes that it has no room to show more than one value of.
    keys : mapping
        Keys of a definition that only this kind takes, each with the JSON schema of its value.
    check : callable
        From a definition (with the axes that it inherits), the configuration and where the definition stands: raises
        `UserError` for what a schema cannot say.
    runs : callable
        From a definition and a dataset to the runs on it.
    settings : callable
        From plan and experiment to all else in the configuration that `files` depend on, ready for JSON.
    tabulates : bool
        Whether its rows count as rows of a table where claims and ranks speak of tables.
    place : {'tables', 'figures', 'studies'}
        Part of the report that it stands in.
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
    place: Literal["tables", "figures", "studies"] = "figures"
    template: str = "sections/figure.html.j2"

    def outputs(self, name: str) -> list[str]:
        """Return the files of the experiment called `name`, as paths in the folder of results."""
        return [file.format(name=name) for file in self.files]


def available_kinds() -> list[str]:
    """Return the kinds discovered in ``mdpu/kinds``."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules([str(KINDS_FOLDER)]))


def kind_module(name: str) -> str:
    """Return the dotted name of the module that defines a kind."""
    return f"mdpu.kinds.{name.replace('-', '_')}"


def load_kind(name: str) -> Kind:
    """Return the kind called `name`."""
    kind = importlib.import_module(kind_module(name)).KIND
    assert isinstance(kind, Kind)
    return kind
