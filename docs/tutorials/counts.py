"""
Groups with a count
===================

Sometimes you know more about a group than "at least half": you know how many of its members are
positive. A shop, for example, knows how many items of a parcel came back, but not which. This is
learning from label proportions. It needs no unlabeled data.
"""

# %%
# Groups and their counts
# -----------------------
# These are triples of digits, and for each the number of even ones.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

images, digits = load_digits(return_X_y=True)
images = images / 16
labels = np.where(digits % 2 == 0, 1, -1)

rng = np.random.default_rng(0)
members = rng.integers(1200, size=(1500, 3))
counts = (labels[members] == 1).sum(axis=1)
print("groups with 0, 1, 2, 3 even digits:", np.bincount(counts))

# %%
# Counts, or bounds on them
# -------------------------
# ``counts`` takes the lowest and the highest number of positives of each group. Here they are the
# same. The classifier does not need the prior either.

from mdpu.estimator import MDPUClassifier, TupleClassifier

new = images[1200:]
truth = labels[1200:]
classifier = TupleClassifier(learner="student", random_state=0)
classifier.fit(images[members], counts=(counts, counts))
reached = {"exact count": 100 * classifier.score(new, truth)}
print(f"counts: accuracy {reached['exact count']:.1f} %")

# %%
# Less is enough: for example whether a group has an even digit at all, as in multiple-instance
# learning.

low = np.where(counts > 0, 1, 0)
high = np.where(counts > 0, 3, 0)
classifier.fit(images[members], counts=(low, high))
reached["any or none"] = 100 * classifier.score(new, truth)
print(f"any or none: accuracy {reached['any or none']:.1f} %")

# %%
# What if only the rule is known?
# -------------------------------
# Take the same groups, keep those in which at least two digits are even, and add unlabeled digits.

dominant = images[members[counts >= 2]]
unlabeled = images[rng.integers(1200, size=1500)]
prior = counts.mean() / 3
rule = MDPUClassifier(prior, learner="student", compare_prior=False, random_state=0)
rule.fit(dominant, unlabeled)
reached["at least two"] = 100 * rule.score(new, truth)
print(f"rule alone: accuracy {reached['at least two']:.1f} %")

# %%
# Here the rule alone is nearly as good as the counts.

figure, axis = plt.subplots(figsize=(5, 2), layout="constrained")
bars = axis.barh(list(reached)[::-1], list(reached.values())[::-1])
axis.bar_label(bars, fmt="%.1f", padding=3)
axis.set(xlim=(50, 100), xlabel="Accuracy (%)", title="What is known of each group")
plt.show()

# %%
# In a training loop of your own, give :class:`~mdpu.losses.TupleLoss` a sequence of laws, and for
# each tuple the index of its law as ``kinds``.
