"""Draw docs/_static/idea.svg, the picture at the top of the README and of the site.

    python docs/idea.py

The digits are scikit-learn's, and the probabilities those of a classifier that is trained here, as in the README.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrow, Rectangle
from sklearn.datasets import load_digits

from mdpu.estimator import MDPUClassifier

PICTURE = Path(__file__).resolve().parent / "_static" / "idea.svg"
ORANGE, BLUE = "#D55E00", "#0072B2"

images, digits = load_digits(return_X_y=True)
images, even, rng = images / 16, digits % 2 == 0, np.random.default_rng(0)
groups = rng.integers(1200, size=(3000, 3))
groups = groups[even[groups].sum(axis=1) >= 2]
unlabeled = rng.integers(1200, size=2000)
classifier = MDPUClassifier(random_state=0).fit(images[groups], images[unlabeled])
chances = classifier.predict_proba(images[1200:])[:, 1]

STYLE = {"font.family": "sans-serif", "font.size": 11, "svg.fonttype": "none", "svg.hashsalt": "idea"}
plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(7.6, 2.5))
figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)


def draw(place: int, left: float, bottom: float) -> None:
    """Draw one digit, one unit wide."""
    axis.imshow(images[place].reshape(8, 8), cmap="gray_r", extent=(left, left + 1, bottom, bottom + 1))


for column, members in enumerate(groups[:4]):
    for row, member in enumerate(members):
        draw(member, 1.7 * column, 2 + 1.1 * row)
    axis.add_patch(Rectangle((1.7 * column - 0.1, 1.9), 1.2, 3.4, fill=False, edgecolor=ORANGE, linewidth=2))
axis.text(-0.1, 5.65, "Groups: in each, at least half are even")
for column, member in enumerate(unlabeled[:6]):
    draw(member, 1.12 * column, -0.1)
axis.text(-0.1, 1.2, "Single images: nothing is known")
axis.add_patch(FancyArrow(7.5, 2.4, 1.6, 0, width=0.12, head_width=0.6, head_length=0.5, color=BLUE))
axis.text(8.25, 3.0, "MDPU", ha="center", color=BLUE, weight="bold")
for k in range(10):
    left, bottom = 10 + 1.8 * (k % 5), 3.7 if k < 5 else 1.2
    draw(1200 + k, left + 0.1, bottom)
    colour = BLUE if chances[k] > 0.5 else "black"
    axis.text(left + 0.6, bottom - 0.6, f"{100 * chances[k]:.0f} %", ha="center", color=colour)
axis.text(9.9, 5.65, "New images: probability of “even”")
axis.set(xlim=(-0.4, 19.2), ylim=(-0.4, 6.3), aspect="equal")
axis.set_axis_off()
figure.savefig(PICTURE, facecolor="white", metadata={"Date": None})
