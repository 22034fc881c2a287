"""
Noisy tuples
============

People who group things make mistakes. Here one triple in five breaks the rule: fewer than two of
its digits are even. If you know about how often that happens, give this share to the classifier.
"""

# %%
# Tuples, one in five of them wrong
# ---------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mdpu.data import draw_split
from mdpu.law import Law

images, digits = load_digits(return_X_y=True)
images = images / 16
labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
known = labels[:1200]
PRIOR = 0.3
WRONG = 0.2

sizes = {"prior": PRIOR, "n": 800, "n_unlabeled": 800, "trial": 0}
law = Law.dominant(3).broken(WRONG)
split = draw_split(known, law, **sizes)
tuples = images[split.tuples]
unlabeled = images[split.unlabeled]
even = (known[split.tuples] == 1).sum(axis=1)
print(f"{np.mean(even < 2):.0%} of the triples hold fewer than two even digits")

# %%
# Without and with the share
# --------------------------
# :class:`~mdpu.estimator.MDPUClassifier` trusts every tuple unless you give the share of those that
# are wrong. The law of the tuples is then the weight with which a group of 0, 1, 2 or 3 positives
# becomes a tuple. All classifiers here have the learner ``student``, which is boosted trees, so
# only their tuples and the share differ.

from mdpu.estimator import MDPUClassifier

weights = np.round(law.at(PRIOR).weights, 3)
print("weights by the number of positives:", weights)

same = {"learner": "student", "compare_prior": False, "random_state": 0}
believing = MDPUClassifier(PRIOR, **same).fit(tuples, unlabeled)
knowing = MDPUClassifier(PRIOR, broken=WRONG, **same).fit(tuples, unlabeled)

# %%
# What the mistakes cost
# ----------------------
# The last classifier sees equally many triples without mistakes.

clean = draw_split(known, 3, **sizes)
flawless = MDPUClassifier(PRIOR, **same)
flawless.fit(images[clean.tuples], images[clean.unlabeled])

new = images[1200:]
truth = labels[1200:]
classifiers = {
    "mistakes, every tuple believed": believing,
    "mistakes, their share known": knowing,
    "no mistakes": flawless,
}
accuracies = [100 * each.score(new, truth) for each in classifiers.values()]
for name, accuracy in zip(classifiers, accuracies, strict=True):
    print(f"{accuracy:5.1f} %  {name}")

figure, axis = plt.subplots(figsize=(6, 1.8), layout="constrained")
bars = axis.barh(list(classifiers)[::-1], accuracies[::-1])
axis.bar_label(bars, fmt="%.1f", padding=3)
axis.set(xlim=(50, 100), xlabel="Accuracy (%)")
plt.show()
