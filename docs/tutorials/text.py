"""
Texts
=====

Texts become sparse rows of word frequencies, and a classifier learns from those. The texts here are
real and already on your disk: the help of two libraries. The question is whether a text comes from
pandas, about tables, or from SciPy, about mathematics. Suppose that somebody skimmed groups of
three and kept those that are mostly about tables.
"""

# %%
# The texts
# ---------
# The first paragraph of every public class, function and method. Words that give the library away
# are taken out.

import inspect
import re
import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas
from scipy import linalg, optimize, signal, stats


def paragraphs(*places):
    """Return the first paragraphs of the help of what some modules hold."""
    texts = set()
    for place in places:
        for name, thing in inspect.getmembers(place, callable):
            words = (inspect.getdoc(thing) or "").split("\n\n")[0]
            words = re.sub(r"pandas|DataFrame|Series|scipy|numpy", " ", words)
            if not name.startswith("_") and len(words) > 40:
                texts.add(" ".join(words.split()))
    return sorted(texts)


tables = paragraphs(pandas, pandas.DataFrame, pandas.Series, pandas.Index)
mathematics = paragraphs(linalg, optimize, signal, stats)
texts = np.array(tables + mathematics, dtype=object)
labels = np.repeat([1, -1], [len(tables), len(mathematics)]).astype(np.int8)
order = np.random.default_rng(0).permutation(len(texts))
texts, labels = texts[order], labels[order]
known = len(texts) * 2 // 3
print(len(tables), "texts on tables and", len(mathematics), "on mathematics, such as")
print(*(textwrap.shorten(text, 80) for text in texts[:3]), sep="\n")

# %%
# Rows and tuples
# ---------------
# ``TfidfVectorizer`` makes a sparse row of each text. Sparse rows cannot be stacked to tuples, so
# they stay one matrix, and a :class:`~mdpu.data.TupleData` names the rows of each tuple.

from sklearn.feature_extraction.text import TfidfVectorizer

from mdpu.data import TupleData, draw_split

rows = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit_transform(texts)
split = draw_split(labels[:known], 3, prior=0.4, n=600, n_unlabeled=1200, trial=0)
sample = TupleData(split.tuples, split.unlabeled)
print(rows.shape, "rows;", sample.tuples.shape, "indices of tuples")

# %%
# The classifier
# --------------
# By default sparse rows are learned from by a linear model, whose probabilities teach boosted trees
# on 100 directions. ``learner_`` says what was trained.

from mdpu.estimator import MDPUClassifier

classifier = MDPUClassifier(prior=0.4, random_state=0).fit(rows, sample)
print(classifier.learner_)
accuracy = classifier.score(rows[known:], labels[known:])
print(f"texts that were set aside, accuracy: {100 * accuracy:.1f} %")

# %%
# What it is least and most sure of
# ---------------------------------

scores = classifier.decision_function(rows[known:])
figure, axis = plt.subplots(figsize=(6, 2.4), layout="constrained")
sides = [scores[labels[known:] == side] for side in (-1, 1)]
axis.hist(sides, 40, stacked=True, label=["mathematics", "tables"])
axis.axvline(0, color="black", linestyle=":")
axis.set(xlabel="Score", ylabel="Texts set aside")
axis.legend()
plt.show()

for title, place in (("mathematics", scores.argmin()), ("tables", scores.argmax())):
    print(textwrap.shorten(f"{title}: {texts[known:][place]}", 80))
