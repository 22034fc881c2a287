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
    positives, negatives = (split.unlabeled[labels[split.unlabeled] == sign] for sign in (1, -1))
    if min(len(positives), len(negatives)) < 10:
        raise UserError(
            f"options.n: {n} unlabeled images hold too few of a side for Figure 1; make it larger"
        )
    free = Part(split.unlabeled[:4], UNKNOWN, "unlabeled")
    bags = split.unlabeled[: 2 * tuple_size].reshape(2, tuple_size)
    sets = [np.append(positives[:k], negatives[: 5 - k]) for k in (3, 2)]
    return {
        "MDPU": [*(Part(one, GROUP, "half or more\npositive") for one in split.tuples[:2]), free],
        "PU": [Part(positives[:4], KNOWN, "positive"), free],
        "LLP": [
            Part(bag, GROUP, f"{(labels[bag] > 0).sum()} of {tuple_size}\npositive") for bag in bags
        ],
        "SU": [Part(pair, GROUP, "one class") for pair in (positives[-2:], negatives[-2:])]
        + [free],
        "UU": [
            Part(own, GROUP, f"prior {share}")
            for own, share in zip(sets, ("0.6", "0.4"), strict=True)
        ],
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
    for row, (name, own) in zip(axes, parts.items(), strict=True):
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontweight="bold")
        place = 0
        for part in own:
            for axis, index in zip(row[place:], part.images, strict=False):
                picture = pictures[index]
                picture = (
                    picture.mean(axis=-1)
                    if picture.ndim == 3 and picture.shape[-1] != 3
                    else picture
                )
                axis.imshow(
                    picture,
                    "gray",
                    vmin=0,
                    vmax=max(1, int(picture.max())),
                    interpolation="nearest",
                )
                axis.spines[:].set(visible=True, color=part.colour, linewidth=1.5)
            middle = row[place + (len(part.images) - 1) // 2]
            middle.set_xlabel(part.known, color=part.colour if part.colour != UNKNOWN else "0.25")
            place += len(part.images) + 1
    return figure


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
