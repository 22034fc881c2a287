"""The losses and their slopes against the score, drawn from the code's own functions: the shape of
Figure 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mdpu.pipeline.report.drawing import draw_panels, legend_below
from mdpu.pipeline.report.style import LOSS_STYLES
from mdpu.pipeline.show import figure_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = """\
The losses of Table I as functions of the score z, drawn from the code's own functions: against a
positive label, against a negative one, and the slope of the first. Where the slope is zero nothing
is learned: the ramp loss has none on misclassified points (z below 0), the hinge loss has one on
all of them.
"""
PANELS = {
    "Positive label": (-0.1, 4.1),
    "Negative label": (-0.1, 4.1),
    "Slope, positive label": (-2.1, 1.1),
}
LABELS = (r"Loss $\ell(z, +1)$", r"Loss $\ell(z, -1)$", r"Derivative of $\ell(z, +1)$")


def losses_figure() -> Figure:
    """Draw every loss of Table I against the score z: l(z, +1), l(z, -1), and the derivative of
    l(z, +1).
    """
    import torch

    from mdpu.losses import LOSSES

    figure, (axes,) = draw_panels(1, 3, 1.9)
    # no point is a kink, where the derivative is a matter of convention
    grid = (np.arange(1200) + 0.5) / 200 - 3
    for name, loss in LOSSES.items():
        if loss.in_table:
            scores = torch.tensor(grid, requires_grad=True)
            positive = loss(scores, +1)
            negative = loss(scores, -1)
            (slope,) = torch.autograd.grad(positive.sum(), scores)
            for axis, values in zip(axes, (positive, negative, slope), strict=True):
                axis.plot(
                    grid,
                    values.detach().numpy(),
                    **{**LOSS_STYLES[name], "marker": ""},
                    label=loss.title,
                )
    for axis, label, (title, heights) in zip(axes, LABELS, PANELS.items(), strict=True):
        axis.set(title=title, xlabel="Score $z$", ylabel=label, xlim=(-3, 3), ylim=heights)
        axis.axvline(0, color="0.4", linewidth=0.8)
    legend_below(figure)
    return figure


KIND = figure_kind(lambda _plan, _experiment, _inputs: losses_figure(), CAPTION, reads=())
