"""
Five kinds of tuples
====================

"At least half are positive" is one rule by which groups are collected.
:class:`~mdpu.estimator.TupleClassifier` learns from groups by other rules, too: give it the rule as
the *law* of the tuples. Here a digit is positive if it is even. The learner ``student`` is boosted
trees.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdpu.data import draw_split
from mdpu.estimator import TupleClassifier
from mdpu.law import Law

images, digits = load_digits(return_X_y=True)
images = images / 16
labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)

laws = {
    "at least two of three are even": Law.dominant(3),
    "at least one of three is even": Law.at_least(3, 1),
    "exactly one of three is even": Law.exactly(3, 1),
    "both are even, or neither is": Law.similar(2),
    "one or two of three are even": Law.between(3, 1, 2),
}

same = {"learner": "student", "compare_prior": False, "random_state": 0}
reached = {}
for name, law in laws.items():
    split = draw_split(labels[:1200], law, prior=0.4, n=800, n_unlabeled=800, trial=0)
    classifier = TupleClassifier(0.4, law=law, **same)
    classifier.fit(images[split.tuples], images[split.unlabeled])
    reached[name] = 100 * classifier.score(images[1200:], labels[1200:])
    print(f"{reached[name]:5.1f} %  {name}")

figure, axis = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = axis.barh(list(reached)[::-1], list(reached.values())[::-1])
axis.bar_label(bars, fmt="%.1f", padding=3)
axis.set(xlim=(50, 100), xlabel="Accuracy (%)")
plt.show()

# %%
# You can ask what a law identifies before you train. "all" means the classes and the prior.
# "mirror" means that the tuples look the same if the classes are swapped. Then only the prior, here
# 0.4, tells which class is which.

for name, law in laws.items():
    print(f"{law.identifies().what:6}  {name}")
