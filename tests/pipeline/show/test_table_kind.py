"""Tables in LaTeX, and figures."""

import numpy as np
import pandas as pd
import pytest
from configs import FIRST, config

from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.sections import seen
from mdpu.pipeline.show.table import best_methods, latex_table, precision, table_cells

METHODS = ["ure", "relu", "abs"]
DATASETS = {"mnist": "MNIST", "amp": "R&D_100%"}


@pytest.fixture
def cells():
    rows = [
        ("0.4", "mnist", "ure", 80.0, 1.0, 0),
        ("0.4", "mnist", "relu", 85.004, 0.25, 0),
        ("0.4", "mnist", "abs", 84.98, np.nan, 1),
        ("0.4", "amp", "ure", np.nan, np.nan, 3),
        ("0.4", "amp", "abs", 70.0, 2.0, 0),
        ("0.5", "mnist", "ure", 75.003, 1.0, 0),
        ("0.5", "mnist", "relu", 75.001, 1.0, 0),
        ("0.5", "mnist", "abs", 74.0, 1.0, 0),
    ]
    return pd.DataFrame(rows, columns=["prior", "dataset", "method", "mean", "std", "diverged"])


def test_the_best_of_a_row_is_the_highest_mean_as_printed(cells):
    assert best_methods(cells).tolist() == [False, True, False, False, True, True, True, False]


def test_latex_has_a_row_per_prior_and_dataset_with_the_best_in_bold(cells):
    lines = latex_table(cells, DATASETS, METHODS, "50 % & more", "mine", ["R&D"]).splitlines()
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"\caption{50 \% \& more}" in lines
    assert r"\label{tab:mine}" in lines
    assert r"\begin{tabular}{ll" + "S[table-format=2.2(3)]" * 3 + "}" in lines
    assert any(r"Not run: R\&D." in line for line in lines)
    assert [line for line in lines if line.endswith(r"\\")] == [
        r"{Prior} & {Dataset} & {URE} & {ReLU} & {ABS} \\",
        r"0.4 & MNIST & 80.00 \pm 1.00 & \bfseries 85.00 \pm 0.25 & "
        r"84.98{\rlap{\textsuperscript{1}}} \\",
        r" & R\&D\_100\% & {diverged} & {not run} & \bfseries 70.00 \pm 2.00 \\",
        r"0.5 & MNIST & \bfseries 75.00 \pm 1.00 & \bfseries 75.00 \pm 1.00 & 74.00 \pm 1.00 \\",
        r" & R\&D\_100\% & {not run} & {not run} & {not run} \\",
    ]


def test_a_table_says_which_of_its_cells_were_not_trained_in_float32(cells):
    assert precision(cells.assign(precision="float32")) == ""
    mixed = cells.assign(precision=["float32"] * 5 + ["bfloat16"] * 2 + ["mixed precisions"])
    assert precision(mixed).endswith(
        ": 2 of 8 cells in bfloat16, 1 of 8 cells in mixed precisions."
    )


def test_an_experiment_shows_its_own_trials_beside_another_that_has_more():
    """A table and what is said of a figure have the trials of their experiment, not all of the
    cell.
    """
    plan = Plan(
        config(
            datasets=["flat"],
            **{FIRST + "seed": [1, 2]},
            definitions__experiments__second__seed=[1, 2, 3],
        )
    )
    described = pd.DataFrame(list(plan.runs))
    described = described.assign(
        accuracy=60.0 + 10 * described["seed"], first_epoch=1, last_epoch=3
    )
    described["precision"] = "float32"
    cells = table_cells(plan, plan.experiment("first"), described)
    assert set(cells["trials"]) == {2}
    assert set(cells["mean"]) == {75.0}
    assert "75.0 to 75.0 %" in seen(plan, plan.experiment("first"), described)
    assert "80.0 to 80.0 %" in seen(plan, plan.experiment("second"), described)
