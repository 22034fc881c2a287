"""Critical-difference diagrams of the methods' average ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mdpu.evaluate.ranks import Ranking, write_ranks
from mdpu.learn.methods import load_method
from mdpu.report.figures.common import save_figure
from mdpu.report.style import method_style, use_house_style
from mdpu.report.verdicts import SOURCES
from mdpu.study.plan import Plan


def rank_figure(found: Mapping[tuple[str, str], Ranking | None]) -> Figure:
    """Draw one diagram per source and unit, one above the other.

    Parameters
    ----------
    found : mapping
        As `mdpu.evaluate.ranks.rankings` returns it; None where nothing was run.

    Returns
    -------
    Figure
        The best method is on the left. A bar joins methods that Nemenyi's test does not tell apart; the
        critical difference is drawn above the axis.
    """
    use_house_style()
    heights = [0.5 if ranking is None else 2.4 for ranking in found.values()]
    figure, axes = plt.subplots(
        len(found), 1, figsize=(7, sum(heights)), squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for axis, ((source, unit), ranking) in zip(axes[:, 0], found.items(), strict=True):
        axis.grid(visible=False)
        if ranking is None:
            axis.set_title(f"{SOURCES[source]}, over {unit}s: not run", fontsize=9)
            axis.set_axis_off()
        else:
            _diagram(axis, ranking)
            axis.set_title(f"{SOURCES[source]}: average rank over {ranking.blocks} {unit}s, 1 is the best", fontsize=9)
    return figure


def _diagram(axis: Axes, ranking: Ranking) -> None:
    from scikit_posthocs import critical_difference_diagram

    titles = {method: load_method(method).title for method in ranking.average.index}
    named = ranking.average.rename(titles)
    axis.spines["top"].set_visible(True)
    drawn = critical_difference_diagram(
        named,
        ranking.nemenyi.rename(index=titles, columns=titles),
        alpha=ranking.alpha,
        ax=axis,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        text_h_margin=0.15,
        crossbar_props={"color": "0.25"},
        color_palette={title: method_style(method)["color"] for method, title in titles.items()},
    )
    start, end = ranking.average.iloc[0], ranking.average.iloc[0] + ranking.critical_difference
    axis.plot([start, end], [1.1, 1.1], color="0.25", marker="|", linewidth=1.5)
    axis.annotate(
        f"critical difference {ranking.critical_difference:.2f}",
        (end, 1.1),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
    )
    for label in drawn["labels"]:
        label.set(color="black", verticalalignment="center")  # pale lines, but no pale words


def show_ranks(plan: Plan, summary: Path, out: Path, figure: Path) -> None:
    """Write the ranks of a summary as `mdpu.evaluate.ranks.write_ranks` does, and draw them as SVG and PDF."""
    save_figure(rank_figure(write_ranks(plan, summary, out)), figure)
