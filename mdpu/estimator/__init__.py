"""scikit-learn's face of the library: classifiers from tuples and unlabeled rows.

>>> classifier = MDPUClassifier(prior=0.4, random_state=0).fit(tuples, unlabeled)
>>> classifier.predict(rows)

`MDPUClassifier` takes tuples at least half of whose members are of one class, `TupleClassifier` tuples of any symmetric
law. ``docs/how-to/estimator.md`` has examples.
"""

from mdpu.estimator.classifiers import MDPUClassifier, TupleClassifier
from mdpu.estimator.networks import recipe, usable_methods

__all__ = ["MDPUClassifier", "TupleClassifier", "recipe", "usable_methods"]
