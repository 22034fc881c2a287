"""Kinds of experiment, one file or folder each, discovered by being here: ``size.py`` is the kind ``size``.

Each defines ``KIND``, a `mdpu.pipeline.kind.Kind`. It imports pandas, matplotlib and torch only in its functions,
because every plan reads the contract of every kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdpu.errors import UserError
from mdpu.pipeline.config import BASE
from mdpu.pipeline.kind import Kind, load_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mdpu.pipeline.grid import Experiment
    from mdpu.pipeline.plan import Plan

FIGURE = ("figures/{name}.svg", "figures/{name}.pdf")
TABLE = ("tables/{name}.csv", "tables/{name}.tex")


def show(plan: Plan, name: str, inputs: Mapping[str, Path], results: Path) -> None:
    """Make the files of an experiment.

    Parameters
    ----------
    plan : Plan
    name : str
        Of the experiment.
    inputs : mapping
        Input files by name; they must include those that the experiment's kind reads.
    results : Path
        Folder of results to write the files into.

    Raises
    ------
    UserError
        If the plan has no such experiment, or an input is not given, missing or broken.
    """
    experiment = plan.experiment(name)
    kind = load_kind(experiment.kind)
    if missing := [f"--{read}" for read in kind.reads if read not in inputs]:
        raise UserError(f"experiment {name} is of kind {experiment.kind}, which needs {' and '.join(missing)}")
    kind.make(plan, experiment, inputs, results)


def check_base(definition: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if the base is missing among the variants, which the others are compared with."""
    if BASE not in definition["variant"]:
        raise UserError(f"{where}.variant: base is what the others are compared with; add it")


def figure_kind(
    draw: Callable[[Plan, Experiment, Mapping[str, Path]], Figure],
    caption: str,
    reads: tuple[str, ...] = ("metrics",),
    **contract: Any,
) -> Kind:
    """Return a kind that is one figure.

    Parameters
    ----------
    draw : callable
        From plan, experiment and input files to the figure.
    caption : str
        Caption of the figure in the report.
    reads : tuple of str
    **contract
        Other attributes of `Kind`.
    """

    def make(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path], results: Path) -> None:
        from mdpu.pipeline.report.drawing import save_figure

        save_figure(draw(plan, experiment, inputs), results / "figures" / f"{experiment.name}.svg")

    def section(plan: Plan, experiment: Experiment, results: Path) -> dict[str, Any]:
        from mdpu.pipeline.report.sections import figure_section

        return figure_section(plan, experiment, results, caption)

    return Kind(make=make, section=section, reads=reads, files=FIGURE, caption=lambda experiment: caption, **contract)
