"""
A table
=======

Measurements of 569 breast tumours come with scikit-learn: 30 numbers for each, of cells under a
microscope. Suppose that single results may not be passed on, but that a laboratory may say of a
pair of patients: at least one of the two tumours is malignant. This lesson learns from such pairs,
and asks how far the result can be trusted.
"""

# %%
# The pairs
# ---------
# Malignant tumours are positive. A third of the patients is set aside. The others are in 300 pairs,
# some of them several times; the unlabeled rows are patients as they come.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from mdpu.data import draw_split

table, benign = load_breast_cancer(return_X_y=True, as_frame=True)
labels = np.where(benign == 0, 1, -1).astype(np.int8)
order = np.random.default_rng(0).permutation(len(table))
table, labels = table.to_numpy()[order], labels[order]
train = slice(None, 380)
test = slice(380, None)

PRIOR = 0.35
split = draw_split(labels[train], 2, prior=PRIOR, n=300, n_unlabeled=600, trial=0)
tuples = table[split.tuples]
unlabeled = table[split.unlabeled]
print("tuples", tuples.shape, "and unlabeled rows", unlabeled.shape)

# %%
# Two learners
# ------------
# By default the classifier takes the student. Here two learners are compared by hand: boosted trees
# that learn from the answers of a kernel machine, and a linear model. Which is better can be asked
# without labels: of held-out pairs and random pairs, how many are put on the wrong side?

from functools import partial

from sklearn.model_selection import cross_val_score

from mdpu.data import join_groups
from mdpu.estimator import MDPUClassifier
from mdpu.scores import TupleKFold, negative_bag_risk

rows, groups = join_groups(tuples, unlabeled)
candidates = {}
for learner in ("student", "linear"):
    one = MDPUClassifier(PRIOR, learner=learner, compare_prior=False, random_state=0)
    risks = -cross_val_score(
        one,
        rows,
        groups,
        cv=TupleKFold(3),
        scoring=partial(negative_bag_risk, prior=PRIOR),
    )
    candidates[risks.mean()] = one.fit(tuples, unlabeled)
    accuracy = one.score(table[test], labels[test])
    print(
        f"{one.learner_.name}: risk of pairs without labels {risks.mean():.3f}, "
        f"accuracy with labels {100 * accuracy:.1f} %"
    )

# %%
# In practice there are no labels, so the risk without labels decides. On so few pairs it may decide
# wrongly.
#
# Mistakes that differ in cost
# ----------------------------
# A tumour that is overlooked costs more than a healthy patient who is asked to come again, say ten
# times as much. The threshold follows from pairs and unlabeled rows that were held out, without any
# label.

from mdpu.scores import least_cost_threshold

classifier = candidates[min(candidates)]
held_out = draw_split(labels[test], 2, prior=PRIOR, n=150, n_unlabeled=300, trial=1)
apart = table[test][held_out.tuples], table[test][held_out.unlabeled]
threshold = least_cost_threshold(classifier, *apart, false_negative=10)
scores = classifier.decision_function(table[test])
for cut in (0.0, threshold):
    overlooked = np.sum((scores <= cut) & (labels[test] == 1))
    called = np.sum((scores > cut) & (labels[test] == -1))
    print(f"threshold {cut:6.2f}: {overlooked} overlooked, {called} called in vain")

figure, axis = plt.subplots(figsize=(6, 2.6), layout="constrained")
bins = np.linspace(scores.min(), scores.max(), 30)
sides = [scores[labels[test] == side] for side in (-1, 1)]
axis.hist(sides, bins, stacked=True, label=["benign", "malignant"])
axis.axvline(0, color="black", linestyle=":", label="threshold 0")
axis.axvline(threshold, color="black", label="threshold of least cost")
axis.set(xlabel="Score", ylabel="Patients set aside")
axis.legend(loc="upper center")
plt.show()
