"""Critical-difference diagrams of the methods' average ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.ranks import Ranking, write_ranks
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.drawing import PAGE, draw_panels, save_figure
from mdpu.pipeline.report.style import method_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = {"ours": "Our runs", "paper": "The paper's numbers"}


def rank_figure(rankings: Mapping[tuple[str, str], Ranking | None]) -> Figure:
    """Draw one diagram per source and unit, one above the other.

    The best method is on the left. A bar joins methods that Nemenyi's test does not tell apart; the critical difference
    is drawn above the axis.
    """
    heights = [0.3 if ranking is None else 0.8 + 0.11 * len(ranking.average_ranks) for ranking in rankings.values()]
    figure, axes = draw_panels(
        len(rankings), 1, sum(heights) / len(heights), PAGE, gridspec_kw={"height_ratios": heights}
    )
    for axis, ((source, unit), ranking) in zip(axes[:, 0], rankings.items(), strict=True):
        axis.grid(visible=False)
        if ranking is None:
            axis.set_title(f"{SOURCES[source]}, over {unit}s: not run")
            axis.set_axis_off()
        else:
            _diagram(axis, ranking)
            axis.set_title(f"{SOURCES[source]}: average rank over {ranking.blocks} {unit}s, 1 is the best")
    return figure


def _diagram(axis: Axes, ranking: Ranking) -> None:
    """Draw a critical-difference diagram (Demsar, 2006): ranks along the top, names at both sides, groups between."""
    methods, count = list(ranking.average_ranks.index), len(ranking.average_ranks)
    groups = ranking.groups()
    left = (count + 1) // 2  # methods with their names on the left
    axis.set(xlim=(0.2, count + 0.8), ylim=(-0.55 * len(groups) - left - 0.6, 2.1), yticks=[])
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.spines["top"].set(visible=True, position=("data", 0), bounds=(1, count))
    axis.xaxis.set_ticks_position("top")
    axis.set_xticks(range(1, count + 1))
    for level, group in enumerate(groups):
        ends = ranking.average_ranks[group[0]] - 0.06, ranking.average_ranks[group[-1]] + 0.06
        axis.plot(ends, [-0.45 - 0.55 * level] * 2, color="0.25", linewidth=3, solid_capstyle="butt")
    for place, method in enumerate(methods):
        on_left = place < left
        below = place if on_left else count - 1 - place
        height = -0.55 * len(groups) - 0.6 - below
        value, side = ranking.average_ranks[method], 0.8 if on_left else count + 0.2
        axis.plot([value, value, side], [0, height, height], color=method_style(method)["color"])
        title = load_method(method).title
        words = f"{title} ({value:.2f})" if on_left else f"({value:.2f}) {title}"
        axis.text(side, height, f" {words} ", ha="right" if on_left else "left", va="center")
    axis.plot([1, 1 + ranking.critical_difference], [1.6, 1.6], color="0.25", marker="|", linewidth=1.5)
    axis.annotate(
        f"critical difference {ranking.critical_difference:.2f}",
        (1 + ranking.critical_difference, 1.6),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
    )


def show_ranks(plan: Plan) -> None:
    """Write the ranks of a plan as `mdpu.pipeline.evaluate.ranks.write_ranks` does, and draw them as SVG and PDF."""
    save_figure(rank_figure(write_ranks(plan)), plan.layout.results / "ranks.svg")
