"""
Without a prior
===============

The *prior* is the share of positives among single unlabeled images. Most methods need it, and a
wrong one costs accuracy. This lesson trains without it: tuples and unlabeled images together say
what it is.
"""

# %%
# The data
# --------
# These are pairs of handwritten digits, each with at least one even digit. The prior is 0.3. The
# classifier does not know it.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdpu.data import draw_split

images, digits = load_digits(return_X_y=True)
images = images / 16
labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
known = labels[:1200]
split = draw_split(known, 2, prior=0.3, n=500, n_unlabeled=1000, trial=0)
tuples = images[split.tuples]
unlabeled = images[split.unlabeled]

# %%
# Leave ``prior`` out
# -------------------
# The classifier then estimates it first. If the sample did not tell it, `fit` would say so and
# stop. The learner ``student`` is boosted trees, which train in a second.

from mdpu.estimator import MDPUClassifier

same = {"learner": "student", "random_state": 0}
classifier = MDPUClassifier(**same).fit(tuples, unlabeled)
estimate = classifier.prior_estimate_
print(f"estimated prior: {classifier.prior_:.3f},")
print(f"between {estimate.low:.3f} and {estimate.high:.3f}")
print(f"the verdict: {estimate.verdict}")

# %%
# A theorem says why this is possible: the members of a tuple, taken together, identify the prior,
# although each by itself does not. :doc:`/explanation/bags` has the proof.
#
# What a wrong prior costs
# ------------------------
# The figure shows the accuracy on the images that were set aside, for priors that you might have
# guessed. If the sample does not support a prior that you give, ``fit`` warns. Here it warns for
# three of the four, so the warnings are caught and the first is shown.

import textwrap
import warnings

new = images[1200:]
truth = labels[1200:]
guesses = [0.1, 0.3, 0.5, 0.7]
told = [MDPUClassifier(prior=guess, **same) for guess in guesses]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    reached = [one.fit(tuples, unlabeled).score(new, truth) for one in told]
print(f"{len(caught)} warnings, the first:")
print(textwrap.fill(str(caught[0].message), width=80))

# %%
# The dot is the estimate.

figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
axis.plot(guesses, 100 * np.array(reached), label="prior given")
accuracy = 100 * classifier.score(new, truth)
axis.plot(classifier.prior_, accuracy, "o", label="prior estimated")
axis.axvline(0.3, color="gray", linestyle=":", label="true prior")
axis.set(xlabel="Prior", ylabel="Accuracy (%)")
axis.legend()
plt.show()

# %%
# Another prior where the classifier is used
# ------------------------------------------
# The images to classify may hold another share of positives than the unlabeled ones did. Half of
# the new digits are even. ``prior_shift`` moves the scores to that prior. It can be set after the
# training.

print(f"share of even digits among the new images: {np.mean(truth == 1):.2f}")
before = np.mean(classifier.predict(new) == 1)
after = np.mean(classifier.set_params(prior_shift=0.5).predict(new) == 1)
print(f"called even: {before:.3f} at the prior of the training, {after:.3f} at 0.5")
