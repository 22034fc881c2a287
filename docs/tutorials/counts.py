"""
Groups with a count
===================

Sometimes more is known than "at least half": of each group, how many members are positive. A shop knows how many items
of a parcel came back, not which. This is learning from label proportions, and each count is a law of its own.
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
unlabeled = images[rng.integers(1200, size=1500)]
print("groups with 0, 1, 2, 3 even digits:", np.bincount(counts))

# %%
# One classifier for each count
# -----------------------------
# ``Law.exactly(3, k)`` says that a group has k positives. Counts give the prior away, too: it is their mean divided by
# the size.

from mdpu.estimator import TupleClassifier
from mdpu.law import Law

prior = counts.mean() / 3
print(f"prior: {prior:.3f}")
new, truth = images[1200:], labels[1200:]
classifiers = []
for k in range(4):
    groups = images[members[counts == k]]
    one = TupleClassifier(
        prior,
        law=Law.exactly(3, k),
        learner="network",
        compare_prior=False,
        random_state=0,
    )
    classifiers.append(one.fit(groups, unlabeled))
    accuracy = 100 * one.score(new, truth)
    print(f"count {k}: {len(groups)} groups, accuracy {accuracy:.1f} %")

# %%
# Together
# --------
# Each estimates the same log-odds from other groups, so their mean is a better one.

scores = np.mean([one.decision_function(new) for one in classifiers], axis=0)
accuracy = np.mean(np.where(scores > 0, 1, -1) == truth)
print(f"all counts: accuracy {100 * accuracy:.1f} %")

# %%
# What if only the rule is known?
# -------------------------------
# The same groups, told apart only by whether at least two digits are even.

from mdpu.estimator import MDPUClassifier

dominant = images[members[counts >= 2]]
rule = MDPUClassifier(prior, learner="network", compare_prior=False, random_state=0)
rule.fit(dominant, unlabeled)
print(f"rule alone: accuracy {100 * rule.score(new, truth):.1f} %")

# %%
# In a training loop of your own, :class:`~mdpu.losses.TupleLoss` takes these laws, and one network can learn from the
# sum of the losses of all counts.
