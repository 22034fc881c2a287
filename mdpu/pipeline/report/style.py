"""One look for all figures: a colour, a dash and a marker per method, safe for colour-blind readers
and grey print.
"""

from __future__ import annotations

import os
from typing import Any

from mdpu.pipeline.files import resource

os.environ["MPLBACKEND"] = (
    "agg"  # matplotlib refuses a notebook's, which jobs inherit, where it is not installed
)
STYLE = resource("mdpu/pipeline/report/paper.mplstyle")

# Okabe and Ito's palette, with olive for yellow, which white hides. The dashes and markers tell the
# methods apart without colour. Methods of one family share a dash, and a correction keeps its
# marker in every scope.
METHOD_STYLES: dict[str, dict[str, Any]] = {
    "ure": {"color": "#D55E00", "linestyle": "-", "marker": "o"},
    "relu": {"color": "#0072B2", "linestyle": "--", "marker": "s"},
    "abs": {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    "relu-class": {"color": "#56B4E9", "linestyle": ":", "marker": "s"},
    "abs-class": {"color": "#8A8A00", "linestyle": ":", "marker": "^"},
    "relu-part": {"color": "#CC79A7", "linestyle": "-", "marker": "s"},
    "abs-part": {"color": "#E69F00", "linestyle": "-", "marker": "^"},
    "nnpu": {"color": "#0072B2", "linestyle": "-", "marker": "P"},
    "llp": {"color": "#D55E00", "linestyle": "--", "marker": "X"},
    "siamese": {"color": "#CC79A7", "linestyle": "-.", "marker": "D"},
    "contrastive": {"color": "#E69F00", "linestyle": "-.", "marker": "v"},
    "kmeans": {"color": "#56B4E9", "linestyle": "-.", "marker": "*"},
    "bag-relu": {"color": "#000000", "linestyle": "-", "marker": ">"},
    "bag-em": {"color": "#CC79A7", "linestyle": "--", "marker": "*"},
    "bag-free": {"color": "#56B4E9", "linestyle": "--", "marker": "d"},
    "supervised": {"color": "#000000", "linestyle": "--", "marker": ""},
    "untrained": {"color": "#999999", "linestyle": ":", "marker": ""},
    "chance": {"color": "#999999", "linestyle": "--", "marker": ""},
}
# Losses are told apart from methods too: no figure shows both in colour.
LOSS_STYLES: dict[str, dict[str, Any]] = {
    "logistic": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "ramp": {"color": "#E69F00", "linestyle": "--", "marker": "s"},
    "squared": {"color": "#56B4E9", "linestyle": "-.", "marker": "^"},
    "hinge": {"color": "#CC79A7", "linestyle": (0, (1, 1)), "marker": "D"},
    "usual-ramp": {"color": "#0072B2", "linestyle": "--", "marker": "P"},
    "sigmoid": {"color": "#009E73", "linestyle": "-", "marker": "v"},
}
_SPARE = ("#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def method_style(method: str) -> dict[str, Any]:
    """Return the line style of a method; one without its own gets a spare one, always the same."""
    if method in METHOD_STYLES:
        return METHOD_STYLES[method]
    position = sum(method.encode())
    return {
        "color": _SPARE[position % len(_SPARE)],
        "linestyle": ":",
        "marker": "xd<>"[position % 4],
    }


def use_house_style() -> None:
    """Draw in the style of every figure, ``paper.mplstyle``, whatever a user's own defaults are."""
    import matplotlib as mpl
    import matplotlib.style

    mpl.use("agg")
    mpl.style.use(["default", STYLE])
