"""
Your own photographs
====================

This lesson starts from photographs: it cuts them into patches, groups the patches into tuples, and
trains a convolutional network. The two photographs come with scikit-learn; to use others, change
one line.

The question is whether a patch shows the temple or the flower. Suppose that crops were sorted by
eye, quickly: into groups of four, of which at least two show the temple.
"""

# %%
# From photographs to patches
# ---------------------------
# ``load_sample_image`` reads the two photographs. For photographs of your own, put pictures into a
# folder for each side and read them with Pillow: ``np.asarray(Image.open(path).convert("RGB"))``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

temple = load_sample_image("china.jpg")
flower = load_sample_image("flower.jpg")
photographs = {"Temple: positive": temple, "Flower: negative": flower}
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for axis, title in zip(axes, photographs, strict=True):
    axis.imshow(photographs[title])
    axis.set_title(title)
    axis.set_axis_off()
    axis.axvline(420, color="white", linestyle="--")
plt.show()

# %%
# Patches of 16 by 16 pixels left of the dashed line are for training. Those on the right are for
# the test, so no test patch overlaps with a training patch. Patches stay uint8, in the shape (N, H,
# W, C).

SIZE = 16
EDGE = 420


def cut(pictures, n, seed):
    """Return n patches of each picture, and the side of each."""
    how = {"patch_size": (SIZE, SIZE), "max_patches": n, "random_state": seed}
    patches = [extract_patches_2d(picture, **how) for picture in pictures]
    return np.concatenate(patches), np.repeat([1, -1], n).astype(np.int8)


train, sides = cut((temple[:, :EDGE], flower[:, :EDGE]), 1500, seed=0)
test, test_sides = cut((temple[:, EDGE:], flower[:, EDGE:]), 500, seed=1)
print(train.dtype, train.shape, test.shape)

# %%
# Groups of four
# --------------
# One patch in two shows the temple. The groups hold four patches, at least two of the temple.

from mdpu.data import draw_split

PRIOR = 0.5
split = draw_split(sides, 4, prior=PRIOR, n=300, n_unlabeled=1200, trial=0)
tuples = train[split.tuples]
unlabeled = train[split.unlabeled]

figure, axes = plt.subplots(4, 8, figsize=(6, 3.4), layout="constrained")
for column in range(8):
    for row in range(4):
        axes[row, column].imshow(tuples[column, row])
        axes[row, column].set_axis_off()
figure.suptitle("Eight groups, one in each column")
plt.show()

# %%
# A network for pictures
# ----------------------
# :class:`~mdpu.estimator.Network` takes any PyTorch module. It gets pictures as (N, C, H, W), with
# values from 0 to 1, and returns one score for each.

import torch
from torch import nn

from mdpu.estimator import MDPUClassifier, Network

torch.manual_seed(0)  # the classifier starts from the weights that the module has
network = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 4, 1),
)
learner = Network(network=network, n_epochs=40)
classifier = MDPUClassifier(prior=PRIOR, learner=learner, random_state=0)
classifier.fit(tuples, unlabeled)
accuracy = 100 * classifier.score(test, test_sides)
print(f"patches on the right, accuracy: {accuracy:.1f} %")

# %%
# A map of the photographs
# ------------------------
# Every patch of a grid gets its probability. Together they show what the classifier takes for the
# temple, also where it is wrong.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for axis, photograph in zip(axes, (temple, flower), strict=True):
    rows, columns = (length // SIZE for length in photograph.shape[:2])
    whole = photograph[: rows * SIZE, : columns * SIZE]
    grid = whole.reshape(rows, SIZE, columns, SIZE, 3).swapaxes(1, 2)
    chances = classifier.predict_proba(grid.reshape(-1, SIZE, SIZE, 3))[:, 1]
    place = {"extent": (0, columns, rows, 0)}
    axis.imshow(photograph, **place)
    colours = {"cmap": "coolwarm", "alpha": 0.6, "vmin": 0, "vmax": 1}
    shown = axis.imshow(chances.reshape(rows, columns), **place, **colours)
    axis.set_axis_off()
figure.colorbar(shown, ax=axes, label="Probability of the temple", shrink=0.8)
plt.show()
