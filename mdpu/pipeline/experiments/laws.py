"""Several laws of tuples: settings down the side, accuracy across."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mdpu.pipeline.evaluate.collect import read_histories, run_accuracies
from mdpu.pipeline.experiments import figure_kind
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import draw_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path]) -> Figure:
    """Draw an experiment of this kind."""
    accuracies = run_accuracies(read_histories(experiment.runs, inputs["metrics"]), plan.protocol.reporting())
    figure, ((axis,),) = draw_panels(1, 1, height=2.4)
    for method, shown in accuracies.groupby("method"):
        axis.plot(shown["accuracy"], shown["law"], "o", label=method)
    return figure


KIND = figure_kind(draw, "Test accuracy under each law.", single=("variant", "loss"), laws=True)
