"""The paper's theorems checked on a problem whose risk is known: two Gaussian classes on a line (``mixture.py``).

Each file beside this one answers one question, which an experiment names: is the estimate unbiased, how large is the
error beside Theorem 2, how large is the bias of a corrected risk beside Theorem 3, and which tuple size is best.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdpu.errors import UserError
from mdpu.pipeline.experiments import FIGURE
from mdpu.pipeline.files import read_csv, write_csv
from mdpu.pipeline.kind import Kind
from mdpu.pipeline.report.sections import figure_section

if TYPE_CHECKING:
    from mdpu.pipeline.experiments.bounds.question import Question
    from mdpu.pipeline.grid import Experiment
    from mdpu.pipeline.plan import Plan

QUESTIONS = ("unbiased", "error", "correction", "tuple-size")
COUNTS = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "integer", "minimum": 1}}
SIMULATION = {
    "title": "What is simulated.",
    "type": "object",
    "additionalProperties": False,
    "required": ["tuple_size", "prior", "n", "trials"],
    "properties": {
        "tuple_size": {
            "title": "Tuple sizes M.",
            **COUNTS,
            "items": {"type": "integer", "minimum": 1, "maximum": 1000},
        },
        "prior": {
            "title": "Class priors pi_+.",
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        },
        "n": {"title": "Numbers of tuples.", **COUNTS},
        "trials": {"title": "Samples drawn of each.", "type": "integer", "minimum": 2},
    },
}


def check(definition: Mapping[str, Any], _config: Mapping[str, Any], where: str) -> None:
    """Raise `UserError` if the question or its simulation is missing."""
    for key in ("question", "simulation"):
        if key not in definition:
            raise UserError(f"{where}.{key}: an experiment of kind bounds needs it; see docs/explanation/bounds.md")


def make(_plan: Plan, experiment: Experiment, _inputs: Mapping[str, Path], results: Path) -> None:
    """Answer the experiment's question: write the rows as CSV, and draw them."""
    from mdpu.pipeline.experiments.bounds.question import Simulation
    from mdpu.pipeline.report.drawing import save_figure

    question = find_question(experiment.options["question"])
    rows = question.measure(Simulation(**experiment.options["simulation"]))
    write_csv(rows, results / "bounds" / f"{experiment.name}.csv")
    save_figure(question.draw(rows), results / "figures" / f"{experiment.name}.svg")


def section(plan: Plan, experiment: Experiment, results: Path) -> dict[str, Any]:
    """Return the figure and the table of an experiment for the template."""
    question = find_question(experiment.options["question"])
    header, rows = question.rows(read_csv(results / "bounds" / f"{experiment.name}.csv"))
    return {**figure_section(plan, experiment, results, question.caption), "header": header, "rows": rows}


def find_question(name: str) -> Question:
    """Return how the question called `name` is answered."""
    from mdpu.pipeline.experiments.bounds import correction, error, tuple_size, unbiased

    return {
        "unbiased": unbiased.QUESTION,
        "error": error.QUESTION,
        "correction": correction.QUESTION,
        "tuple-size": tuple_size.QUESTION,
    }[name]


KIND = Kind(
    make=make,
    section=section,
    reads=(),
    files=(*FIGURE, "bounds/{name}.csv"),
    shows="nothing",
    keys={
        "question": {"title": "What is asked of the theorems.", "enum": list(QUESTIONS)},
        "simulation": SIMULATION,
    },
    check=check,
    settings=lambda plan, experiment: dict(experiment.options),
    caption=lambda experiment: find_question(experiment.options["question"]).caption,
    place="studies",
    template="sections/bounds.html.j2",
)
