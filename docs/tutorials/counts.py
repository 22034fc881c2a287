"""
Groups with a count
===================

Sometimes more is known than "at least half": of each group, how many members are positive. A shop knows how many items
of a parcel came back, not which. This is learning from label proportions. Nothing unlabeled is needed for it.
"""

# %%
# Groups and their counts
# -----------------------
# Triples of digits, and for each the number of even ones.

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
# ``counts`` takes the lowest and the highest number of positives of each group, here the same. The classifier needs no
# prior either.

from mdpu.estimator import MDPUClassifier, TupleClassifier

new, truth = images[1200:], labels[1200:]
classifier = TupleClassifier(random_state=0)
classifier.fit(images[members], counts=(counts, counts))
print(f"counts: accuracy {100 * classifier.score(new, truth):.1f} %")

# %%
# Less is enough. Here it is only known whether a group holds an even digit at all, as in multiple-instance learning.

low, high = np.where(counts > 0, 1, 0), np.where(counts > 0, 3, 0)
classifier.fit(images[members], counts=(low, high))
print(f"any or none: accuracy {100 * classifier.score(new, truth):.1f} %")

# %%
# What if only the rule is known?
# -------------------------------
# Of the same groups, those in which at least two digits are even, and unlabeled digits beside them.

dominant = images[members[counts >= 2]]
unlabeled = images[rng.integers(1200, size=1500)]
prior = counts.mean() / 3
rule = MDPUClassifier(prior, learner="student", compare_prior=False, random_state=0)
rule.fit(dominant, unlabeled)
print(f"rule alone: accuracy {100 * rule.score(new, truth):.1f} %")

# %%
# In a training loop of your own, :class:`~mdpu.losses.TupleLoss` takes a sequence of laws, and the place of each tuple's
# law as ``kinds``.
