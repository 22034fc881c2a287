"""
Noisy tuples
============

Whoever groups things makes mistakes. Here one triple in five breaks the rule: fewer than two of its digits are even.
If you know about how often that happens, say so.
"""

# %%
# Tuples, one in five of them wrong
# ---------------------------------

import numpy as np
from sklearn.datasets import load_digits

from mdpu.data import draw_split
from mdpu.law import Law

images, digits = load_digits(return_X_y=True)
images = images / 16
labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
known, PRIOR, WRONG = labels[:1200], 0.3, 0.2

sizes = {"prior": PRIOR, "n": 800, "n_unlabeled": 800, "trial": 0}
law = Law.dominant(3).broken(WRONG)
split = draw_split(known, law, **sizes)
tuples, unlabeled = images[split.tuples], images[split.unlabeled]
even = (known[split.tuples] == 1).sum(axis=1)
print(f"{np.mean(even < 2):.0%} of the triples hold fewer than two even digits")

# %%
# Without and with the share
# --------------------------
# :class:`~mdpu.estimator.MDPUClassifier` believes every tuple unless you give the share of those that are wrong. The
# law of the tuples is then the weight with which a group of 0, 1, 2 or 3 positives becomes a tuple.

from mdpu.estimator import MDPUClassifier

weights = np.round(law.at(PRIOR).weights, 3)
print("weights by the number of positives:", weights)

same = {"compare_prior": False, "random_state": 0}
believing = MDPUClassifier(PRIOR, **same).fit(tuples, unlabeled)
knowing = MDPUClassifier(PRIOR, broken=WRONG, **same).fit(tuples, unlabeled)

# %%
# What the mistakes cost
# ----------------------
# The last classifier saw as many triples without mistakes.

clean = draw_split(known, 3, **sizes)
flawless = MDPUClassifier(PRIOR, **same)
flawless.fit(images[clean.tuples], images[clean.unlabeled])

new, truth = images[1200:], labels[1200:]
classifiers = {
    "mistakes, every tuple believed": believing,
    "mistakes, their share known": knowing,
    "no mistakes": flawless,
}
for name, classifier in classifiers.items():
    print(f"{100 * classifier.score(new, truth):5.1f} %  {name}")
