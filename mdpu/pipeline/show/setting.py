"""The setting beside its neighbours, drawn with real images: the shape of Figure 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mdpu.data import draw_split
from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.pipeline.config import selected
from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.files import load_npz
from mdpu.pipeline.plan import Experiment, Plan
from mdpu.pipeline.report.drawing import PAGE, draw_panels, literal
from mdpu.pipeline.show import Inputs, figure_kind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# of the frames: what is known about an image
KNOWN = "#0072B2"
UNKNOWN = "#999999"
GROUP = "#D55E00"
CAPTION = """\
What each setting knows about its training data, with images of the configuration's first dataset.
Learning from M-tuple dominant positive and unlabeled data (MDPU) knows that at least half of the
images in each tuple are positive, and nothing about any single image. Positive-unlabeled learning
(PU) has positives. Learning from label proportions (LLP) knows the exact proportion of each bag.
Similar-unlabeled learning (SU) has pairs of one class, but does not know which class.
Unlabeled-unlabeled learning (UU) has two sets and knows the class prior of each. A grey frame:
nothing is known of the image; blue: it is known to be positive; orange: something is known of its
group.
"""


class Part(NamedTuple):
    """Images that stand together, by their index, the colour of their frames, and what is known of
    them.
    """

    images: np.ndarray
    colour: str
    known: str


def setting_parts(
    labels: np.ndarray, tuple_size: int, prior: float, n: int
) -> dict[str, list[Part]]:
    """Return the parts of each setting, drawn by the labels of the training images.

    Raises `UserError` if `n` unlabeled images hold too few of either side.
    """
    split = draw_split(labels, Law.dominant(tuple_size), prior, n, n, "setting")
    is_positive = labels[split.unlabeled] > 0
    positives = split.unlabeled[is_positive]
    negatives = split.unlabeled[~is_positive]
    if min(len(positives), len(negatives)) < 10:
        raise UserError(
            f"options.n: {n} unlabeled images hold too few of a side for Figure 1; make it larger"
        )
    unlabeled = Part(split.unlabeled[:4], UNKNOWN, "unlabeled")
    tuples = [Part(images, GROUP, "half or more\npositive") for images in split.tuples[:2]]
    bags = []
    for images in split.unlabeled[: 2 * tuple_size].reshape(2, tuple_size):
        count = (labels[images] > 0).sum()
        bags.append(Part(images, GROUP, f"{count} of {tuple_size}\npositive"))
    pairs = [Part(images[-2:], GROUP, "one class") for images in (positives, negatives)]
    sets = [
        Part(np.append(positives[:3], negatives[:2]), GROUP, "prior 0.6"),
        Part(np.append(positives[:2], negatives[:3]), GROUP, "prior 0.4"),
    ]
    return {
        "MDPU": [*tuples, unlabeled],
        "PU": [Part(positives[:4], KNOWN, "positive"), unlabeled],
        "LLP": bags,
        "SU": [*pairs, unlabeled],
        "UU": sets,
    }


def setting_figure(pictures: np.ndarray, parts: dict[str, list[Part]], title: str) -> Figure:
    """Draw `parts` of `setting_parts`, a row per setting; `pictures` are the training images,
    `title` the dataset's.
    """
    width = max(sum(len(part.images) + 1 for part in row) for row in parts.values())
    figure, axes = draw_panels(len(parts), width, 0.95, PAGE)
    figure.suptitle(literal(title))
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        axis.grid(visible=False)
    for row, (name, of_setting) in zip(axes, parts.items(), strict=True):
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold")
        start = 0
        for part in of_setting:
            end = start + len(part.images)
            for axis, index in zip(row[start:end], part.images, strict=True):
                _draw_picture(axis, pictures[index])
                axis.spines[:].set(visible=True, color=part.colour, linewidth=1.5)
            middle = row[(start + end - 1) // 2]
            middle.set_xlabel(part.known, color=part.colour if part.colour != UNKNOWN else "0.25")
            start = end + 1
    return figure


def _draw_picture(axis: Axes, picture: np.ndarray) -> None:
    """Draw an image; of one whose channels are no colours, their mean."""
    if picture.ndim == 3 and picture.shape[-1] != 3:
        picture = picture.mean(axis=-1)
    white = max(1, int(picture.max()))
    axis.imshow(picture, "gray", vmin=0, vmax=white, interpolation="nearest")


def draw(plan: Plan, experiment: Experiment, inputs: Inputs) -> Figure:
    """Draw an experiment of this kind."""
    options: dict[str, Any] = {"tuple_size": 3, "prior": 0.5, "n": 100, **experiment.options}
    parts = setting_parts(load_npz(inputs["labels"], "train")["train"], **options)
    title = plan.dataset(selected(plan.config, "datasets")[0])["title"]
    return setting_figure(read_images(inputs["images"]).train_images, parts, title)


OPTIONS = {
    "tuple_size": {
        "title": "Of the tuples and bags.",
        "type": "integer",
        "minimum": 2,
        "maximum": 5,
    },
    "prior": {
        "title": "The class prior.",
        "type": "number",
        "exclusiveMinimum": 0,
        "exclusiveMaximum": 1,
    },
    "n": {
        "title": "How many to draw, of which the first are shown.",
        "type": "integer",
        "minimum": 20,
    },
}
KIND = figure_kind(draw, CAPTION, reads=("images", "labels"), options=OPTIONS)
