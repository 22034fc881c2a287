"""The setting beside its neighbours, drawn with real images: the shape of Figure 1."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.pipeline.data.images import ImageSet, as_pictures, read_images
from mdpu.pipeline.data.labels import Labels, read_labels
from mdpu.pipeline.data.splits import read_split
from mdpu.pipeline.experiments import figure_kind
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import PAGE, draw_panels, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours of the frames: they say what is known about an image.
KNOWN, UNKNOWN, GROUP = "#0072B2", "0.6", "#D55E00"
SINGLES, SET = 4, 5  # single images of a setting, images of a set of UU data
# Inches. Text keeps its size, so images are as large as the page's width leaves room for.
GIVEN, IMAGES, EDGE = 0.56, 2.4, 0.06  # where the columns of text and of images begin; the margin
HEAD, FOOT, LINE, GAP = 0.52, 0.34, 0.14, 0.06  # heights: of what is written above and below all, of a line; a gap
NOTE = 0.9  # width of a note, which is wrapped to it
# In units of an image's side.
STEP, BOX = 1.12, 0.16
NOTE_LETTERS = 12
CAPTION = """\
What each setting knows about its training data, with images of the configuration's first dataset. Learning from
M-tuple dominant positive and unlabeled data (MDPU) knows that at least half of the images in each tuple are positive,
and nothing about any single image. Positive-unlabeled learning (PU) has positives. Learning from label proportions
(LLP) knows the exact proportion of each bag. Similar-unlabeled learning (SU) has pairs of one class, but does not know
which class. Unlabeled-unlabeled learning (UU) has two sets and knows the class prior of each. The tuples and the
unlabeled images are the first ones of a split that the pipeline drew.
"""


class Setting(NamedTuple):
    """One row of the figure: what a learner of this setting knows, by indices of training images."""

    name: str
    given: str
    groups: Sequence[tuple[np.ndarray, str]] = ()  # with what is known about them as a group
    singles: Sequence[int] | np.ndarray = ()  # known to be positive
    unlabeled: Sequence[int] | np.ndarray = ()  # nothing is known about them


def draw(plan: Plan, experiment: Experiment) -> Figure:
    dataset = experiment.shown_dataset
    return setting_figure(
        read_images(plan.layout.images(dataset)),
        read_labels(plan.layout.labels(dataset)),
        read_split(plan.layout.split(str(experiment.split))),
        plan.dataset(dataset),
    )


def setting_rows(labels: np.ndarray, split: TupleData) -> list[Setting]:
    """Choose the images that stand for each setting, by the labels of the training images, among the first of a split.

    Raises `UserError` if the split has too few unlabeled images of either side.
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
        Setting("PU", "positives,\nand unlabeled", singles=positives[:SINGLES], unlabeled=unlabeled),
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


def setting_figure(image_set: ImageSet, labels: Labels, split: TupleData, definition: Mapping[str, Any]) -> Figure:
    """Draw what each setting knows of its data; `definition` is the dataset's, for its title and its classes."""
    from matplotlib.patches import Rectangle

    rows = setting_rows(labels["train"], split)
    side = (PAGE - IMAGES - EDGE) / max(map(_width, rows))
    lines = max(textwrap.fill(note, NOTE_LETTERS).count("\n") + 1 for row in rows for _, note in row.groups)
    pitch = side * (1 + 2 * BOX) + lines * LINE + 3 * GAP
    height = HEAD + len(rows) * pitch + FOOT
    figure, ((axis,),) = draw_panels(1, 1, height, PAGE)
    axis.set_axis_off()
    axis.add_patch(Rectangle((0, height - HEAD - pitch), PAGE, pitch, facecolor="#FFF6E5", edgecolor="none", zorder=-1))
    axis.text(EDGE, height - 0.1, literal(definition["title"]), fontweight="bold", va="center")
    for line, name in enumerate(("positive", "negative")):
        classes = textwrap.shorten(", ".join(map(str, definition[name])), 85, placeholder=" ...")
        axis.text(EDGE, height - 0.28 - 0.15 * line, literal(f"{name}: {classes}"), va="center")
    for place, row in enumerate(rows):
        bottom = height - HEAD - place * pitch - GAP - side * (1 + BOX)
        axis.text(EDGE, bottom + side / 2, row.name, fontweight="bold", va="center")
        axis.text(GIVEN, bottom + side / 2, row.given, va="center", linespacing=1.3)
        _draw_row(axis, row, as_pictures(image_set.train_images), bottom, side)
    edge = EDGE
    for name, color, line_width in (
        ("nothing known of the image", UNKNOWN, 1.0),
        ("known to be positive", KNOWN, 1.5),
        ("something known of the group", GROUP, 1.5),
    ):
        axis.add_patch(Rectangle((edge, 0.06), 0.14, 0.14, facecolor="none", edgecolor=color, linewidth=line_width))
        axis.text(edge + 0.2, 0.13, name, va="center")
        edge += 2.3
    axis.axis((0, PAGE, 0, height))
    return figure


def _width(row: Setting) -> float:
    """Return how much room the images of a row take, in units of an image's side."""
    groups = [_group_width(members) + STEP - 1 + 3 * BOX for members, _ in row.groups]
    singles = (len(row.singles) + len(row.unlabeled)) * STEP
    return BOX + sum(groups) + singles + 3 * BOX * (len(row.singles) > 0)


def _group_width(members: np.ndarray) -> float:
    return len(members) * STEP - STEP + 1


def _draw_row(axis: Axes, row: Setting, images: np.ndarray, bottom: float, side: float) -> None:
    """Draw the groups and the single images of a setting from left to right."""
    from matplotlib.patches import FancyBboxPatch

    left = IMAGES + BOX * side
    for members, note in row.groups:
        width = _group_width(members) * side
        frame = f"round,pad={BOX * side}"
        axis.add_patch(
            FancyBboxPatch((left, bottom), width, side, frame, facecolor="none", edgecolor=GROUP, linewidth=1.5)
        )
        words = textwrap.fill(note, NOTE_LETTERS)
        axis.text(left + width / 2, bottom - BOX * side - 0.04, words, color="#A34700", ha="center", va="top")
        for place, index in enumerate(members):
            _show(axis, images[index], left + place * STEP * side, bottom, side, UNKNOWN, 1)
        left += max(width + (STEP - 1 + 3 * BOX) * side, NOTE)
    for indices, color, line_width in ((row.singles, KNOWN, 1.5), (row.unlabeled, UNKNOWN, 1)):
        for index in indices:
            _show(axis, images[index], left, bottom, side, color, line_width)
            left += STEP * side
        left += 3 * BOX * side if len(indices) else 0


def _show(
    axis: Axes, image: np.ndarray, left: float, bottom: float, side: float, color: str, line_width: float
) -> None:
    """Draw one image in a frame."""
    from matplotlib.patches import Rectangle

    if image.ndim == 3 and image.shape[-1] != 3:
        image = image.mean(axis=-1)
    extent = (left, left + side, bottom, bottom + side)
    # For colour images, matplotlib ignores the colour map and its limits.
    axis.imshow(image, "gray", vmin=0, vmax=max(1, int(image.max())), extent=extent, interpolation="nearest")
    axis.add_patch(Rectangle((left, bottom), side, side, fill=False, edgecolor=color, linewidth=line_width))


KIND = figure_kind(draw, CAPTION, reads=("images", "labels", "split"), single=("tuple_size", "prior", "n"))
