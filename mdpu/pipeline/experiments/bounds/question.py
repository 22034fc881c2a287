"""What an experiment of this kind asks, and the simulation that answers it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdpu.pipeline.report.drawing import entitle, size_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mdpu.theory.bounds import Sample

Z = 1.959964  # of a two-sided interval of 95 %
DELTA = 0.05  # probability with which a bound of the experiments may fail


@dataclass(frozen=True)
class Simulation:
    """The values of the key ``simulation``.

    Attributes
    ----------
    tuple_size, prior, n : list
        The grid: M, pi_+, and the number of tuples.
    trials : int
        Independent samples per point of the grid.
    """

    tuple_size: list[int]
    prior: list[float]
    n: list[int]
    trials: int

    def samples(self) -> Iterator[Sample]:
        """Yield the points of the grid, each with as many unlabeled images as tuples."""
        from mdpu.theory.bounds import Sample

        for size, prior, n in itertools.product(self.tuple_size, self.prior, self.n):
            yield Sample(size, prior, n, n)


@dataclass(frozen=True)
class Question:
    """How a question is answered and shown.

    Attributes
    ----------
    measure : callable
        From a simulation to a frame, a row per point of the grid, or several.
    draw : callable
        From that frame to the figure.
    rows : callable
        From that frame to the header and the rows of the report's table, all of them strings.
    caption : str
    """

    measure: Callable[[Simulation], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Figure]
    rows: Callable[[pd.DataFrame], tuple[list[str], list[list[str]]]]
    caption: str


def sample_name(sample: Sample) -> str:
    """Return a name that seeds the random numbers of a point of the grid."""
    return f"m{sample.tuple_size}/prior{sample.prior}/n{sample.n}"


def entitle_point(axis: Axes, size: Any, prior: Any, *more: str) -> None:
    """Write the title of a panel of one tuple size and prior."""
    entitle(axis, size_name(int(size)), f"$\\pi_+ = {prior}$", *more)


def line(axis: Axes, x: Any, y: Any, style: Mapping[str, Any], label: str, **more: Any) -> None:
    """Draw a line with small markers in a style of `mdpu.pipeline.report.style`."""
    axis.plot(x, y, **{**style, **more}, label=label)
