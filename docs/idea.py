"""Draw docs/_static/idea.svg, the picture at the top of the README and of the site.

    python docs/idea.py

The digits are scikit-learn's, and the probabilities those of a classifier that is trained here, as
in the README.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrow, Rectangle
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from mdpu import MDPUClassifier

PICTURE = Path(__file__).resolve().parent / "_static" / "idea.svg"
ORANGE = "#D55E00"
BLUE = "#0072B2"
STYLE = {
    "font.family": "sans-serif",
    "font.size": 11,
    "svg.fonttype": "none",
    "svg.hashsalt": "idea",
}
NEW = slice(1200, None)  # digits that the classifier has not seen


def draw_image(axis: Axes, pixels: NDArray[np.float64], left: float, bottom: float) -> None:
    """Draw one image, one unit wide."""
    extent = (left, left + 1, bottom, bottom + 1)
    axis.imshow(pixels, cmap="gray_r", extent=extent)


def draw_groups(axis: Axes, groups: NDArray[np.float64]) -> None:
    """Draw the images of groups (groups, members, 8, 8), each as a column in a frame."""
    for column, members in enumerate(groups):
        left = 1.7 * column
        for row, pixels in enumerate(members):
            draw_image(axis, pixels, left, 2 + 1.1 * row)
        corner = (left - 0.1, 1.9)
        frame = Rectangle(corner, 1.2, 3.4, fill=False, edgecolor=ORANGE, linewidth=2)
        axis.add_patch(frame)
    axis.text(-0.1, 5.65, "Groups: in each, at least half are even")


def draw_unlabeled(axis: Axes, images: NDArray[np.float64]) -> None:
    """Draw single images in a row."""
    for column, pixels in enumerate(images):
        draw_image(axis, pixels, 1.12 * column, -0.1)
    axis.text(-0.1, 1.2, "Single images: nothing is known")


def draw_arrow(axis: Axes) -> None:
    """Draw what leads from groups and single images to answers."""
    arrow = FancyArrow(
        7.5,
        2.4,
        1.6,
        0,
        width=0.12,
        head_width=0.6,
        head_length=0.5,
        color=BLUE,
    )
    axis.add_patch(arrow)
    axis.text(8.25, 3.0, "MDPU", ha="center", color=BLUE, weight="bold")


def draw_answers(axis: Axes, images: NDArray[np.float64], shares: NDArray[np.float64]) -> None:
    """Draw images in two rows of five, each above its probability."""
    for place, (pixels, share) in enumerate(zip(images, shares, strict=True)):
        row, column = divmod(place, 5)
        left = 10 + 1.8 * column
        bottom = 1.2 if row else 3.7
        draw_image(axis, pixels, left + 0.1, bottom)
        colour = BLUE if share > 0.5 else "black"
        answer = f"{100 * share:.0f} %"
        axis.text(left + 0.6, bottom - 0.6, answer, ha="center", color=colour)
    axis.text(9.9, 5.65, "New images: probability of “even”")


def main() -> None:
    """Train the classifier and draw the picture."""
    digits = load_digits()
    images = digits.images / 16
    is_even = digits.target % 2 == 0
    rng = np.random.default_rng(0)
    groups = rng.integers(1200, size=(3000, 3))
    groups = groups[is_even[groups].sum(axis=1) >= 2]
    unlabeled = rng.integers(1200, size=2000)

    classifier = MDPUClassifier(random_state=0).fit(images[groups], images[unlabeled])
    shares = classifier.predict_proba(images[NEW])[:, 1]

    plt.rcParams.update(STYLE)
    figure, axis = plt.subplots(figsize=(7.6, 2.5))
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    draw_groups(axis, images[groups[:4]])
    draw_unlabeled(axis, images[unlabeled[:6]])
    draw_arrow(axis)
    draw_answers(axis, images[NEW][:10], shares[:10])
    axis.set(xlim=(-0.4, 19.2), ylim=(-0.4, 6.3), aspect="equal")
    axis.set_axis_off()
    figure.savefig(PICTURE, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
