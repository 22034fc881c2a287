"""What tuning chose: the estimated error of every method at every point of the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mdpu.learn.methods import load_method
from mdpu.pipeline.files import read_csv
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.drawing import draw_panels, literal, panel_columns, save_figure
from mdpu.pipeline.report.style import METHOD_STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3
CAPTION = """\
Estimated error rate in percent on held-out tuples and unlabeled images, made without true labels, at every point of
the grid; dark is low. The framed point was chosen, per method. An unbiased estimate can fall below zero; a dash marks
a point whose training diverged.
"""


def tuning_figure(grid: pd.DataFrame, title: str) -> Figure:
    """Draw the estimated error per method, learning rate by weight decay, as heat maps; `title` says what was tuned."""
    from matplotlib.patches import Rectangle

    known = list(METHOD_STYLES)
    methods = sorted(grid["method"].unique(), key=lambda name: (known.index(name) if name in known else 99, name))
    columns = panel_columns(len(methods), COLUMNS)
    rows = -(-len(methods) // columns)
    size = (len(grid["weight_decay"].unique()), len(grid["learning_rate"].unique()))
    figure, axes = draw_panels(rows, columns, 0.55 + 0.22 * size[0], sharex=True, sharey=True)
    shared = 100 * grid["estimated_error"]
    for axis in axes.flat[len(methods) :]:
        axis.set_axis_off()
    for place, method in enumerate(methods):
        axis = axes.flat[place]
        method_points = grid[grid["method"] == method]
        errors = 100 * method_points.pivot(index="weight_decay", columns="learning_rate", values="estimated_error")
        drawn = axis.imshow(errors, cmap="Blues_r", vmin=shared.min(), vmax=shared.max(), aspect="auto")
        for (row, column), error in np.ndenumerate(errors.to_numpy()):
            text = "–" if np.isnan(error) else f"{error:.1f}"
            dark = not np.isnan(error) and drawn.norm(error) < 0.5
            axis.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
        for point in method_points[method_points["chosen"]].itertuples():
            column, row = errors.columns.get_loc(point.learning_rate), errors.index.get_loc(point.weight_decay)
            corner = column - 0.5, row - 0.5
            axis.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#D55E00", linewidth=2.5, clip_on=False))
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        axis.set_xticks(range(size[1]), labels=[f"{rate:g}" for rate in errors.columns])
        axis.set_yticks(range(size[0]), labels=[f"{decay:g}" for decay in errors.index])
        axis.tick_params(length=0)
        axis.set_title(load_method(method).title)
    for axis in axes.flat[max(0, len(methods) - columns) : len(methods)]:
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("Learning rate")
    for axis in axes[:, 0]:
        axis.set_ylabel("Weight decay")
    figure.suptitle(literal(title))
    return figure


def draw_tuning(plan: Plan, name: str) -> None:
    """Draw the grid that `mdpu.pipeline.train.tune` wrote of the tuning called `name`, as SVG and PDF."""
    figure = tuning_figure(read_csv(plan.layout.tuned(name)), plan.tuning_title(name))
    save_figure(figure, plan.layout.figure(f"tuning/{name}"))
