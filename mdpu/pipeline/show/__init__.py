"""Kinds of experiment, one file each, discovered by being here: ``line.py`` is the kind ``line``.

Each defines ``KIND``: what it reads, which files it writes, a function that writes them, and one
that returns their section of the report. The rule of an experiment calls `write` with the files of
`inputs` and `outputs`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from mdpu.errors import UserError
from mdpu.pipeline.config import Config, explain, grids, known, selected, with_axes
from mdpu.pipeline.evaluate.collect import read_histories, run_accuracies
from mdpu.pipeline.files import digest
from mdpu.pipeline.plan import AXES, PARTS, Experiment, Plan
from mdpu.pipeline.report.drawing import save_figure
from mdpu.pipeline.report.sections import downloads, figure_section

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIGURE = ("figures/{name}.svg", "figures/{name}.pdf")
TABLE = ("tables/{name}.csv", "tables/{name}.tex")
Inputs = Mapping[str, Path]  # by the names of `Kind.reads`
Outputs = Sequence[Path]  # in the order of `Kind.files`


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of experiment.

    Attributes
    ----------
    write : callable
        From (plan, experiment, inputs, outputs) to nothing: writes the files.
    section : callable
        From (plan, experiment, outputs) to the variables of its section in the report, among them
        ``name``, ``title`` and ``template``, a file of ``report``.
    reads : tuple of str
        ``runs`` or ``metrics`` if its experiments have runs; ``images`` and ``labels`` of the first
        dataset that is selected; none if it needs no file.
    files : tuple of str
        Paths in the folder of results, with ``{name}`` for the experiment's name.
    single : tuple of str
        Axes of which it can show one value.
    laws : bool
        Whether it can show several laws.
    options : mapping
        What ``options`` of a definition may hold, each with the JSON schema of its value.
    caption : callable
        From an experiment to the text below its figure.
    check : callable
        From (definition with inherited axes, configuration, the definition's key) to nothing:
        raises `UserError` for mistakes that a schema cannot express.
    """

    write: Callable[[Plan, Experiment, Inputs, Outputs], None]
    section: Callable[[Plan, Experiment, Outputs], dict[str, Any]]
    reads: tuple[str, ...]
    files: tuple[str, ...]
    single: tuple[str, ...] = ()
    laws: bool = False
    caption: Callable[[Experiment], str] = lambda experiment: ""
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any], Config, str], None] = lambda definition, config, where: None

    @property
    def has_runs(self) -> bool:
        """Whether its experiments are grids of runs."""
        return "runs" in self.reads or "metrics" in self.reads


def available_kinds() -> list[str]:
    """Return the kinds that are here."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def load_kind(name: str) -> Kind:
    """Return the kind called `name`."""
    kind = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").KIND
    assert isinstance(kind, Kind)
    return kind


def check(config: Config) -> None:
    """Raise `UserError` with the key's name if a definition is not what its kind can show."""
    for name, definition in config["definitions"]["experiments"].items():
        where = f"config key definitions.experiments.{name}"
        known(definition["kind"], available_kinds(), f"{where}.kind")
        kind = load_kind(definition["kind"])
        spec = with_axes(definition, config)
        options = {"type": "object", "additionalProperties": False, "properties": kind.options}
        error = best_match(Draft202012Validator(options).iter_errors(spec.get("options", {})))
        if error is not None:
            raise UserError(explain(error, f"definitions.experiments.{name}.options"))
        experiment = f"an experiment of kind {definition['kind']}"
        if kind.has_runs != ("tuple_size" in spec):
            needs = "needs" if kind.has_runs else "takes no"
            raise UserError(f"{where}.tuple_size: {experiment} {needs} tuple sizes")
        if kind.has_runs:
            for axis in kind.single if kind.laws else ("law", *kind.single):
                _check_single(spec, axis, f"{where}.{axis}: {experiment}")
        kind.check(spec, config, where)


def _check_single(spec: Mapping[str, Any], axis: str, who: str) -> None:
    """Raise `UserError` if a definition gives an axis more than one value, or there is no such
    axis.
    """
    if axis not in spec:
        known = ", ".join(name for name in AXES if name in spec)
        raise UserError(f"{who} names {axis!r} in single, which is no axis; axes are {known}")
    for values in _values(spec, axis):
        if len(values) > 1:
            raise UserError(
                f"{who} shows one {axis.replace('_', ' ')}, but several are given; give one, or "
                "define an experiment for each"
            )


def _values(spec: Mapping[str, Any], axis: str) -> list[list[Any]]:
    """Return the values of an axis that one figure would show: those of each grid, or of each
    dataset of it, and those in which several grids differ.
    """
    of_grids = [grid[axis] for grid in grids(spec)]
    lists = []
    if len(of_grids) > 1:
        lists.append(list(dict.fromkeys(map(str, of_grids))))
    for values in of_grids:
        by_dataset = values.values() if isinstance(values, Mapping) else [values]
        lists += [value if isinstance(value, list) else [value] for value in by_dataset]
    return lists


def outputs(plan: Plan, name: str) -> list[Path]:
    """Return the files of an experiment."""
    kind = load_kind(plan.experiment(name).kind)
    return [plan.layout.results / file.format(name=name) for file in kind.files]


def settings(plan: Plan, name: str) -> dict[str, Any]:
    """Return everything in the configuration that affects the files of an experiment, ready for
    JSON.
    """
    experiment = plan.experiment(name)
    runs = experiment.runs
    datasets = {*experiment.datasets, *experiment.not_run}
    datasets.update(selected(plan.config, "datasets")[:1])
    variants = {run.variant for run in runs}
    return {
        "title": experiment.title,
        "options": dict(experiment.options),
        "runs": digest([astuple(run) for run in runs]),
        "not_run": experiment.not_run,
        "datasets": {name: _names(plan.dataset(name)) for name in sorted(datasets)},
        "variants": {name: plan.protocol.variant(name) for name in sorted(variants)},
        "level": plan.config["comparison"]["level"],
    }


def _names(dataset: Mapping[str, Any]) -> list[Any]:
    """Return what a figure takes from the definition of a dataset."""
    return [dataset.get("title"), dataset.get("published")]


def write(plan: Plan, name: str, inputs: Inputs, outputs: Outputs) -> None:
    """Write the files of an experiment, which `outputs` returns, from the inputs that its kind
    reads.
    """
    experiment = plan.experiment(name)
    load_kind(experiment.kind).write(plan, experiment, inputs, list(map(Path, outputs)))


def sections(plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return the section of each experiment for the report, tables first, by the key in `PARTS` of
    its part.
    """
    parts: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    files = {name: outputs(plan, name) for name in plan.experiments}

    def is_figure(name: str) -> bool:
        return files[name][0].suffix != ".csv"

    for name in sorted(files, key=is_figure):
        experiment = plan.experiment(name)
        kind = load_kind(experiment.kind)
        section = kind.section(plan, experiment, files[name])
        parts[experiment.part].append({"downloads": downloads(files[name]), **section})
    return parts


def reported(plan: Plan, experiment: Experiment, metrics: Path) -> pd.DataFrame:
    """Return the reported accuracy of an experiment's runs, the methods in the order that it lists
    them in.
    """
    accuracies = run_accuracies(read_histories(experiment.runs, metrics), plan.protocol.reporting)
    place = experiment.methods.index
    return accuracies.sort_values("method", key=lambda column: column.map(place), kind="stable")


def figure_kind(
    draw: Callable[[Plan, Experiment, Inputs], Figure],
    caption: str | Callable[[Experiment], str],
    reads: tuple[str, ...] = ("metrics",),
    files: tuple[str, ...] = FIGURE,
    **contract: Any,
) -> Kind:
    """Return a kind that is one figure: what draws it, its caption, and other attributes of
    `Kind`.
    """

    def write(plan: Plan, experiment: Experiment, inputs: Inputs, outputs: Outputs) -> None:
        save_figure(draw(plan, experiment, inputs), *outputs[:2])

    def section(plan: Plan, experiment: Experiment, outputs: Outputs) -> dict[str, Any]:
        return figure_section(plan, experiment, say(experiment), outputs[0])

    say = caption if callable(caption) else lambda experiment: caption
    return Kind(
        write=write,
        section=section,
        reads=reads,
        files=files,
        caption=say,
        **contract,
    )
