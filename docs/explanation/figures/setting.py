"""Pairs and unlabeled images, drawn from handwritten digits as the pipeline draws them."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits

from mdpu.data import draw_split

PAIRS = 7
SINGLES = 14
images, digits = load_digits(return_X_y=True)
labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
split = draw_split(labels, 2, prior=0.4, n=PAIRS, n_unlabeled=SINGLES, trial=3)

figure, axis = plt.subplots(figsize=(7, 1.8), layout="constrained")
for row, members in ((1, split.tuples.ravel()), (0, split.unlabeled)):
    for k, member in enumerate(members):
        left = 1.2 * k if row == 0 else 1.1 * k + 0.2 * (k // 2)
        axis.imshow(
            images[member].reshape(8, 8),
            cmap="gray_r",
            extent=(left, left + 1, 1.7 * row, 1.7 * row + 1),
        )
        if row and k % 2 == 0:
            axis.add_patch(
                Rectangle(
                    (left - 0.05, 1.65), 2.2, 1.1, fill=False, edgecolor="#D55E00", linewidth=1.5
                )
            )
axis.text(0, 2.95, "Pairs: in each, at least one even digit")
axis.text(0, 1.15, "Unlabeled images: nothing is known of any")
axis.set(xlim=(-0.2, 17), ylim=(-0.1, 3.4))
axis.set_aspect("equal")
axis.set_axis_off()
