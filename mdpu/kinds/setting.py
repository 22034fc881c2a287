"""The setting beside its neighbours, drawn with real images: the shape of Figure 1."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.errors import UserError
from mdpu.kinds import figure_kind
from mdpu.report.style import use_house_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mdpu.data.images import ImageSet
    from mdpu.data.labels import Labels
    from mdpu.data.splits import Split
    from mdpu.study.grid import Experiment
    from mdpu.study.plan import Plan

# Colours of the frames: they say what is known about an image.
KNOWN, UNKNOWN, GROUP = "#0072B2", "0.6", "#D55E00"
SINGLES, SET = 4, 5  # single images of a setting, images of a set of UU data
# Lengths in units of an image's side.
STEP, BOX, PITCH, LEFT = 1.12, 0.16, 1.95, 7.4
INCHES = 0.48  # of an image's side, for every tuple size: text keeps its size, so the figure grows instead
CAPTION = """\
What each setting knows about its training data, with images of the configuration's first dataset. Learning from
M-tuple dominant positive and unlabeled data (MDPU) knows that at least half of the images in each tuple are positive,
and nothing about any single image. Positive-unlabeled learning (PU) has positives. Learning from label proportions
(LLP) knows the exact proportion of each bag. Similar-unlabeled learning (SU) has pairs of one class, but does not know
which class. Unlabeled-unlabeled learning (UU) has two sets and knows the class prior of each. The tuples and the
unlabeled images are the first ones of a split that the pipeline drew.
"""


def _none() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Setting:
    """One row of the figure: what a learner of this setting knows, group by group.

    Attributes
    ----------
    name, given : str
        Its name, and what is known, in few words.
    groups : sequence of (ndarray of int, str)
        Indices of training images, with what is known about them as a group.
    singles : ndarray of int
        Single images that are known to be positive.
    unlabeled : ndarray of int
        Single images about which nothing is known.
    """

    name: str
    given: str
    groups: Sequence[tuple[np.ndarray, str]]
    singles: np.ndarray = field(default_factory=_none)
    unlabeled: np.ndarray = field(default_factory=_none)


def draw(plan: Plan, experiment: Experiment, inputs: Mapping[str, Path]) -> Figure:
    """Draw an experiment of this kind."""
    from mdpu.data.images import read_images
    from mdpu.data.labels import read_labels
    from mdpu.data.splits import read_split

    return setting_figure(
        read_images(inputs["images"]),
        read_labels(inputs["labels"]),
        read_split(inputs["split"]),
        plan.dataset(experiment.shown_dataset),
    )


def settings(plan: Plan, experiment: Experiment) -> dict[str, Any]:
    """Return the classes that the figure names."""
    definition = plan.dataset(experiment.shown_dataset)
    return {"sides": {side: definition[side] for side in ("positive", "negative")}}


def setting_rows(labels: np.ndarray, split: Split) -> list[Setting]:
    """Choose the images that stand for each setting.

    Parameters
    ----------
    labels : ndarray of +1, -1 and 0, shape (N,)
        Labels of the training images; by them the images of the neighbouring settings are chosen.
    split : Split
        Its first tuples and unlabeled images are shown.

    Raises
    ------
    UserError
        If the split has too few unlabeled images of either side.
    """
    M = split.tuples.shape[1]
    pool = split.unlabeled
    positives, negatives = pool[labels[pool] > 0], pool[labels[pool] < 0]
    if min(len(positives), len(negatives)) < SET * 2 or len(split.tuples) < 2:
        raise UserError(
            f"the setting cannot be drawn from {len(split.tuples)} tuples and {len(pool)} unlabeled images, of which "
            f"{len(positives)} are positive; give its experiment a larger n"
        )
    unlabeled = pool[:SINGLES]
    tuples = _two_unlike(split.tuples, labels)
    bags = _two_unlike(pool[: len(pool) // M * M].reshape(-1, M), labels)

    def mixed(share: float, start: int) -> np.ndarray:
        many = round(share * SET)
        chosen = np.concatenate([positives[start : start + many], negatives[start : start + SET - many]])
        return chosen[np.argsort(chosen, kind="stable")]

    return [
        Setting(
            "MDPU",
            "tuples that are positive by\nhalf or more, and unlabeled",
            [(members, "half or more positive") for members in tuples],
            unlabeled=unlabeled,
        ),
        Setting("PU", "positives,\nand unlabeled", [], singles=positives[:SINGLES], unlabeled=unlabeled),
        Setting(
            "LLP",
            "bags with their exact\nproportion of positives",
            [(bag, f"{(labels[bag] > 0).sum()} of {M} positive") for bag in bags],
        ),
        Setting(
            "SU",
            "pairs of the same class,\nand unlabeled",
            [(positives[1:3], "same class"), (negatives[1:3], "same class")],
            unlabeled=unlabeled,
        ),
        Setting(
            "UU",
            "two unlabeled sets with\ndifferent known priors",
            [(mixed(0.8, 0), "prior 0.8"), (mixed(0.4, SET), "prior 0.4")],
        ),
    ]


def _two_unlike(groups: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the first group and the first with another number of positives, or the second if there is none."""
    counts = (labels[groups] > 0).sum(axis=1)
    other = np.flatnonzero(counts != counts[0])
    return groups[[0, other[0] if len(other) else 1]]


def setting_figure(image_set: ImageSet, labels: Labels, split: Split, definition: Mapping[str, Any]) -> Figure:
    """Draw what each setting knows of its data.

    Parameters
    ----------
    image_set : ImageSet
    labels : Labels
    split : Split
    definition : mapping
        The definition of the dataset; the figure shows its title and its classes.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch, Rectangle

    use_house_style()
    rows = setting_rows(labels["train"], split)
    figure, axis = plt.subplots()
    axis.set_axis_off()
    right = 0.0
    for place, row in enumerate(rows):
        bottom = -place * PITCH
        axis.text(0, bottom + 0.5, row.name, fontsize=13, fontweight="bold", va="center")
        axis.text(2.3, bottom + 0.5, row.given, fontsize=9, va="center", linespacing=1.3)
        left = LEFT
        for members, note in row.groups:
            width = len(members) * STEP - STEP + 1
            axis.add_patch(
                FancyBboxPatch(
                    (left, bottom), width, 1, f"round,pad={BOX}", facecolor="none", edgecolor=GROUP, linewidth=2
                )
            )
            axis.text(left + width / 2, bottom - BOX - 0.07, note, fontsize=8, color="#A34700", ha="center", va="top")
            for index in members:
                _show(axis, image_set.train_images[index], left, bottom, UNKNOWN, 1)
                left += STEP
            left += 3 * BOX
        for index in row.singles:
            _show(axis, image_set.train_images[index], left, bottom, KNOWN, 3)
            left += STEP
        left += 3 * BOX if len(row.singles) else 0
        for index in row.unlabeled:
            _show(axis, image_set.train_images[index], left, bottom, UNKNOWN, 1)
            left += STEP
        right = max(right, left)
    last = -(len(rows) - 1) * PITCH
    band = Rectangle((-0.4, -0.6), right + 0.6, 1.85, facecolor="#FFF6E5", edgecolor="none", zorder=-1)
    axis.add_patch(band)
    axis.text(0, 3.05, definition["title"], fontsize=11, fontweight="bold", va="center")
    for line, side in enumerate(("positive", "negative")):
        classes = textwrap.shorten(", ".join(map(str, definition[side])), 100, placeholder=" ...")
        axis.text(0, 2.35 - 0.55 * line, f"{side}: {classes}", fontsize=9, va="center")
    edge = 0.0
    for name, color, line_width in (
        ("nothing known of the image", UNKNOWN, 1.0),
        ("known to be positive", KNOWN, 3.0),
        ("something known of the group", GROUP, 2.0),
    ):
        key = Rectangle((edge, last - 1.35), 0.45, 0.45, facecolor="none", edgecolor=color, linewidth=line_width)
        axis.add_patch(key)
        axis.text(edge + 0.7, last - 1.12, name, fontsize=9, va="center")
        edge += 6.4
    limits = (-0.4, right + 0.2, last - 1.6, 3.4)
    axis.axis(limits)
    figure.set_size_inches(INCHES * (limits[1] - limits[0]), INCHES * (limits[3] - limits[2]))
    return figure


def _show(axis: Axes, image: np.ndarray, left: float, bottom: float, color: str, width: float) -> None:
    """Draw one image of side 1 in a frame."""
    from matplotlib.patches import Rectangle

    if image.ndim == 3 and image.shape[-1] != 3:
        image = image.mean(axis=-1)
    extent = (left, left + 1, bottom, bottom + 1)
    # For colour images, matplotlib ignores the colour map and its limits.
    axis.imshow(image, "gray", vmin=0, vmax=max(1, int(image.max())), extent=extent, interpolation="nearest")
    axis.add_patch(Rectangle((left, bottom), 1, 1, fill=False, edgecolor=color, linewidth=width))


KIND = figure_kind(
    draw,
    CAPTION,
    reads=("images", "labels", "split"),
    shows="split",
    single=("tuple_size", "prior", "n"),
    settings=settings,
)
