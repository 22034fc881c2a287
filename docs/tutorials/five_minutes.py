"""
Five minutes: a classifier from tuples
======================================

You have groups of images, and know only one thing about each group: at least half of its images are
positive. You also have single images that nobody has looked at. This lesson trains a classifier
from the two. No image gets a label.

You need the package and matplotlib for the pictures::

    pip install . matplotlib

The code below runs in less than a minute on two cores.
"""

# %%
# The images
# ----------
# scikit-learn carries 1,797 handwritten digits of 8 by 8 pixels. Even digits are positive here, odd
# ones negative. The last 597 images stay aside, to see at the end how good the classifier is.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = images / 16  # grey values from 0 to 1
labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)

# %%
# The tuples
# ----------
# Your own tuples come from somewhere: a grower says that most fruits of a crate are ripe, a search
# engine returns pages of which most fit. Here they must be made, and that takes labels.
# ``draw_split`` draws 400 triples with at least two even digits each, and 800 single images as they
# come. The share of even digits among single images is the *prior*.

from mdpu.data import draw_split

PRIOR = 0.4
known = labels[:1200]
split = draw_split(known, 3, prior=PRIOR, n=400, n_unlabeled=800, trial=0)
tuples = images[split.tuples]
unlabeled = images[split.unlabeled]
print("tuples", tuples.shape, "and unlabeled images", unlabeled.shape)

# %%
# These are five of the triples, one in each column. A triple never says which of its digits are the
# even ones.

figure, axes = plt.subplots(3, 5, figsize=(5, 3.2), layout="constrained")
for column, members in enumerate(tuples[:5]):
    for row, member in enumerate(members):
        axes[row, column].imshow(member.reshape(8, 8), cmap="gray_r")
        axes[row, column].set_axis_off()
figure.suptitle("Five triples: in each column at least two even digits")
plt.show()

# %%
# The classifier
# --------------
# :class:`~mdpu.estimator.MDPUClassifier` has the interface of scikit-learn. It takes tuples and
# unlabeled images where other classifiers take images and labels.

from mdpu.estimator import MDPUClassifier

classifier = MDPUClassifier(prior=PRIOR, learner="network", random_state=0)
classifier.fit(tuples, unlabeled)

figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
axis.plot(classifier.history_["epoch"], classifier.history_["objective"])
axis.set(xlabel="Epoch", ylabel="Objective", title="Training")
plt.show()

# %%
# What it says about new images
# -----------------------------
# ``predict`` answers with +1 or -1, ``predict_proba`` with probabilities. Red frames mark the
# mistakes.

new = images[1200:]
truth = labels[1200:]
answers = classifier.predict(new)
probabilities = classifier.predict_proba(new)[:, 1]

figure, axes = plt.subplots(3, 8, figsize=(8, 4.2), layout="constrained")
for k, axis in enumerate(axes.flat):
    axis.imshow(new[k].reshape(8, 8), cmap="gray_r")
    axis.set(xticks=[], yticks=[], title=f"{100 * probabilities[k]:.0f} %")
    if answers[k] != truth[k]:
        axis.spines[:].set(color="red", linewidth=3)
figure.suptitle("Probability of an even digit")
plt.show()

# %%
# How good is it?
# ---------------
# With true labels you can count.

print(f"accuracy on {len(new)} new images: {100 * classifier.score(new, truth):.1f} %")

# %%
# Without labels you can still estimate. Tuples and unlabeled images that the classifier has not
# seen give an unbiased estimate of its error rate at the prior, with an interval.

held_out = draw_split(truth, 3, prior=PRIOR, n=150, n_unlabeled=300, trial=1)
estimate = classifier.risk_estimate(new[held_out.tuples], new[held_out.unlabeled])
print(f"error rate without labels: {estimate.value:.3f},")
print(f"between {estimate.low:.3f} and {estimate.high:.3f}")

# %%
# Where to go next
# ----------------
# - :ref:`sphx_glr_auto_tutorials_photographs.py`: pictures in colour, and a network that suits
#   them.
# - :ref:`sphx_glr_auto_tutorials_prior_unknown.py`: what to do if you do not know the prior.
# - :doc:`/how-to/estimator`: pipelines, grid searches, networks of your own.
