"""Kinds of experiment, one file or folder each, discovered by being here: ``size.py`` is the kind ``size``.

Each defines ``KIND``. What stands above the plan loads them: the head of the workflow, which asks for their files, and
the commands that check a configuration, draw and render. The plan itself reads only what a definition ``uses``.
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
from mdpu.pipeline.config import BASE, Config, explain, grids, known, merge
from mdpu.pipeline.evaluate.collect import read_histories, run_accuracies
from mdpu.pipeline.files import digest, read_csv, write_csv
from mdpu.pipeline.plan import PARTS, Experiment, Plan
from mdpu.pipeline.report.drawing import save_figure
from mdpu.pipeline.report.sections import downloads, figure_section, rows_section
from mdpu.pipeline.report.tables import write_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIGURE = ("figures/{name}.svg", "figures/{name}.pdf")
TABLE = ("tables/{name}.csv", "tables/{name}.tex")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of experiment.

    `make` writes `files` from a plan, which knows the paths of `reads`, and an experiment. `section` returns the
    variables of the section in the report from both, among them ``name``, ``title`` and ``template``, a file of
    ``report``.

    `reads` are ``summary`` or ``metrics`` if its experiments use runs; ``images``, ``labels``, ``split`` if they use a
    split, the first of their grid; none if they use nothing. `files` are paths in the folder of results with ``{name}``
    for the experiment's name. It can show only one value of the axes in `single`, and several laws only if `laws` says
    so. `keys` says what ``options`` of a definition may hold, each with the JSON schema of its value. `check` raises
    `UserError` for mistakes that a schema cannot express, from a definition (with inherited axes), the configuration
    and the definition's key.
    """

    make: Callable[[Plan, Experiment], None]
    section: Callable[[Plan, Experiment], dict[str, Any]]
    reads: tuple[str, ...]
    files: tuple[str, ...]
    single: tuple[str, ...] = ()
    laws: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any], Config, str], None] = lambda definition, config, where: None

    @property
    def uses(self) -> str:
        """What its experiments use, as their definitions say: ``runs``, ``split`` or ``nothing``."""
        return "nothing" if not self.reads else "split" if "split" in self.reads else "runs"

    def outputs(self, name: str) -> list[str]:
        """Return the files of the experiment called `name`, as paths in the folder of results."""
        return [file.format(name=name) for file in self.files]


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
        kind, spec = load_kind(definition["kind"]), merge(config["axes"], definition)
        of_kind = f"an experiment of kind {definition['kind']}"
        if spec.get("uses", "runs") != kind.uses:
            raise UserError(f"{where}.uses: {of_kind} uses {kind.uses}; write uses: {kind.uses}")
        options = {"type": "object", "additionalProperties": False, "properties": kind.keys}
        error = best_match(Draft202012Validator(options).iter_errors(spec.get("options", {})))
        if error is not None:
            raise UserError(explain(error, f"definitions.experiments.{name}.options"))
        for axis in kind.single if kind.laws else ("law", *kind.single):
            asked = [grid[axis] for grid in grids(spec)]
            values = asked[0].values() if isinstance(asked[0], Mapping) else asked[:1]
            if any(isinstance(value, list) and len(value) > 1 for value in values) or asked.count(asked[0]) < len(
                asked
            ):
                raise UserError(
                    f"{where}.{axis}: {of_kind} shows one {axis.replace('_', ' ')}, but several are given; make it "
                    "several experiments"
                )
        kind.check(spec, config, where)


def check_base(definition: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if the base is missing among the variants, which the others are compared with."""
    if BASE not in definition["variant"]:
        raise UserError(f"{where}.variant: base is what the others are compared with; add it")


def inputs(plan: Plan, name: str) -> dict[str, Path]:
    """Return the input files of an experiment by name, those that its kind reads."""
    experiment, layout = plan.experiment(name), plan.layout
    files = {"summary": layout.summary, "metrics": layout.metrics}
    if experiment.split:
        dataset = experiment.shown_dataset
        files |= {"images": layout.images(dataset), "labels": layout.labels(dataset)}
        files |= {"split": layout.split(experiment.split)}
    return {read: files[read] for read in load_kind(experiment.kind).reads}


def settings(plan: Plan, name: str) -> dict[str, Any]:
    """Return everything in the configuration that affects the files of an experiment, ready for JSON."""
    experiment = plan.experiment(name)
    runs = experiment.runs
    datasets = dict.fromkeys([*(run.dataset for run in runs), *experiment.not_run])
    if experiment.split:
        datasets |= {experiment.shown_dataset: None}
    shown = ("title", "positive", "negative", "published")
    compares = {
        "reportings": plan.protocol.reportings,
        "level": plan.config["comparison"]["level"],
        "variants": {variant: plan.protocol.variant(variant) for variant in dict.fromkeys(run.variant for run in runs)},
    }
    return {
        "title": experiment.title,
        "options": dict(experiment.options),
        "runs": digest([astuple(run) for run in runs]),
        "not_run": experiment.not_run,
        "datasets": {name: [plan.dataset(name).get(key) for key in shown] for name in datasets},
        **(compares if runs else {}),
    }


def show(plan: Plan, name: str) -> None:
    """Make the files of an experiment."""
    experiment = plan.experiment(name)
    load_kind(experiment.kind).make(plan, experiment)


def reported(plan: Plan, experiment: Experiment) -> pd.DataFrame:
    """Return the reported accuracy of an experiment's runs, the methods in the order that it lists them in."""
    accuracies = run_accuracies(read_histories(experiment.runs, plan.layout.metrics), plan.protocol.reporting())
    methods = list(dict.fromkeys(run.method for run in experiment.runs))
    return accuracies.sort_values("method", key=lambda column: column.map(methods.index), kind="stable")


def sections(plan: Plan) -> dict[str, list[dict[str, Any]]]:
    """Return the section of each experiment for the report, tables first, by the key in `PARTS` of its part."""
    groups: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    kinds = {name: load_kind(experiment.kind) for name, experiment in plan.experiments.items()}
    for name in sorted(kinds, key=lambda name: not kinds[name].files[0].startswith("tables/")):
        kind, experiment = kinds[name], plan.experiment(name)
        files = downloads(plan.layout.results, kind.outputs(name))
        groups[experiment.part].append({"downloads": files, **kind.section(plan, experiment)})
    return groups


def figure_kind(
    draw: Callable[[Plan, Experiment], Figure],
    caption: str,
    reads: tuple[str, ...] = ("metrics",),
    files: tuple[str, ...] = FIGURE,
    **contract: Any,
) -> Kind:
    """Return a kind that is one figure: what draws it, its caption, and other attributes of `Kind`."""

    def make(plan: Plan, experiment: Experiment) -> None:
        save_figure(draw(plan, experiment), plan.layout.figure(experiment.name))

    def section(plan: Plan, experiment: Experiment) -> dict[str, Any]:
        return figure_section(plan, experiment, caption)

    return Kind(make=make, section=section, reads=reads, files=files, **contract)


def rows_kind(
    compute: Callable[[Plan, Experiment, pd.DataFrame], pd.DataFrame],
    rows: Callable[[Plan, Experiment, pd.DataFrame], list[list[str]]],
    caption: Callable[[Experiment], str],
    header: Callable[[Experiment], Sequence[str]],
    **contract: Any,
) -> Kind:
    """Return a kind that is one table of strings, of which two columns name a row.

    `compute` makes its numbers of the histories, and `rows` makes strings of the numbers.
    """

    def make(plan: Plan, experiment: Experiment) -> None:
        out = plan.layout.table(experiment.name)
        numbers = compute(plan, experiment, read_histories(experiment.runs, plan.layout.metrics))
        write_csv(numbers, out)
        shown = rows(plan, experiment, numbers)
        write_rows(out, experiment.title, caption(experiment), header(experiment), 2, shown)

    def section(plan: Plan, experiment: Experiment) -> dict[str, Any]:
        numbers = read_csv(plan.layout.table(experiment.name))
        shown = rows(plan, experiment, numbers)
        return rows_section(experiment, caption(experiment), header(experiment), 2, shown)

    return Kind(make=make, section=section, reads=("metrics",), files=TABLE, **contract)
