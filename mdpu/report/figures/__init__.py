"""Figures, drawn from the tidy metrics alone: one module per kind of experiment, named as the kind is."""

from __future__ import annotations

import importlib

import pandas as pd
from matplotlib.figure import Figure

from mdpu.study.grid import Experiment
from mdpu.study.plan import Plan


def draw(plan: Plan, experiment: Experiment, metrics: pd.DataFrame) -> Figure:
    """Draw an experiment.

    Parameters
    ----------
    plan : Plan
    experiment : Experiment
        Its kind is the name of a module of this package; one that shows runs.
    metrics : DataFrame
        Histories of the experiment's runs, as `mdpu.evaluate.collect.collect` returns them.
    """
    drawn: Figure = importlib.import_module(f"{__name__}.{experiment.kind}").draw(plan, experiment, metrics)
    return drawn
