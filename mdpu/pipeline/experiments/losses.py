"""The losses and their slopes against the score, drawn from the code's own functions: the shape of Figure 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mdpu.pipeline.experiments import figure_kind
from mdpu.pipeline.report.drawing import draw_panels, legend_below
from mdpu.pipeline.report.style import LOSS_STYLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACH = 3.0
CAPTION = """\
The losses of Table I as functions of the score z, drawn from the code's own functions: against a positive label,
against a negative one, and the slope of the first. Where the slope is zero nothing is learned: the ramp loss has
none on misclassified points (z below 0), the hinge loss has one on all of them.
"""


def losses_figure() -> Figure:
    """Draw every loss of Table I against the score z: l(z, +1), l(z, -1), and the derivative of l(z, +1)."""
    import torch

    from mdpu.losses import LOSSES

    figure, (axes,) = draw_panels(1, 3, 1.9)
    # Midpoints of a fine grid: none is a kink, where the derivative is a matter of convention.
    step = 2 * REACH / 1200
    grid = np.arange(-REACH + step / 2, REACH, step)
    for name, loss in LOSSES.items():
        if not loss.in_table:
            continue
        scores = torch.tensor(grid, requires_grad=True)
        positive, negative = loss(scores, +1), loss(scores, -1)
        (slope,) = torch.autograd.grad(positive.sum(), scores)
        style = {key: value for key, value in LOSS_STYLES[name].items() if key != "marker"}
        for axis, values in zip(axes, (positive, negative, slope), strict=True):
            axis.plot(grid, values.detach().numpy(), **style, label=loss.title)
    for axis, title, label, heights in (
        (axes[0], "Positive label", r"Loss $\ell(z, +1)$", (-0.1, 4.1)),
        (axes[1], "Negative label", r"Loss $\ell(z, -1)$", (-0.1, 4.1)),
        (axes[2], "Slope, positive label", r"Derivative of $\ell(z, +1)$", (-2.1, 1.1)),
    ):
        axis.set(title=title, xlabel="Score $z$", ylabel=label, xlim=(-REACH, REACH), ylim=heights)
        axis.axvline(0, color="0.4", linewidth=0.8)
    legend_below(figure, axes[0])
    return figure


KIND = figure_kind(lambda _plan, _experiment: losses_figure(), CAPTION, reads=())
