"""A model card for a fitted classifier: what it learned from, how good it is without labels, and its limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpu import __version__
from mdpu.estimator.samples import read

CARD = """\
# {title}

`{name}` of mdpu {version}, for {features} features. Parameters: `{parameters}`

## Learned from

{n:,} tuples and {n_unlabeled:,} unlabeled rows. The label of no row was used.

{laws}

## Prior

{prior:.3f} of the unlabeled rows are positive: {interval}.

## Risk without labels

{risk}

## Limits

- The numbers hold where tuples follow the law and the unlabeled rows are drawn at the prior.
- Probabilities are those at the training prior; `prior_shift` moves them to another.
- An error rate over all rows hides those of groups within them. It is estimated: count it with true labels where errors
  harm somebody.
- Statements about groups were learned from; what is predicted of a single row was never stated by anyone.
- The file of the classifier can run code when it is loaded. Load it only from a source that you trust.
"""


def model_card(
    classifier: Any, X: Any, y: Any, *, held_out: tuple[Any, Any] | None = None, title: str = "A classifier from tuples"
) -> str:
    """Return a model card in Markdown, to stand beside the file of a saved classifier.

    `X` and `y` are what the `MDPUClassifier` or `TupleClassifier` was fitted on, in any form that ``fit`` takes; only
    their sizes are read. `held_out` are other tuples and unlabeled rows, from which the error rate is estimated.
    """
    (sizes, n_unlabeled), estimate = _sizes(X, y), classifier.prior_estimate_
    interval, risk = "told, and not compared with the sample", "Not estimated: no held-out tuples were given."
    if estimate is not None:
        bounds = f"{estimate.low:.3f} to {estimate.high:.3f}"
        interval = f"the sample says {bounds} ({estimate.level:.0%} interval, {estimate.verdict})"
    if held_out is not None:
        error, (held, rows) = classifier.risk_estimate(*held_out), _sizes(*held_out)
        risk = (
            f"{error.value:.3f} of the rows are called wrongly at the training prior ({error.level:.0%} interval "
            f"{error.low:.3f} to {error.high:.3f}), by {len(held):,} held-out tuples and {rows:,} unlabeled rows."
        )
    counts = zip(*np.unique(sizes, return_counts=True), strict=True)
    laws = [f"- {number:,} tuples of {size}: {_law(classifier, int(size))}" for size, number in counts]
    facts = {"n": len(sizes), "n_unlabeled": n_unlabeled, "features": classifier.n_features_in_, "version": __version__}
    facts |= {"name": type(classifier).__name__, "parameters": " ".join(repr(classifier).split()), "risk": risk}
    return CARD.format(title=title, laws="\n".join(laws), prior=classifier.prior_, interval=interval, **facts)


def _sizes(X: Any, y: Any) -> tuple[list[int], int]:
    """Return the size of each tuple and the number of unlabeled rows."""
    _, sample = read(X, y, lambda rows, **_: rows)
    return (sample.tuples >= 0).sum(axis=1).tolist(), len(sample.unlabeled)


def _law(classifier: Any, size: int) -> str:
    if hasattr(classifier, "dominant"):
        return f"at least half of the members are {classifier.dominant}"
    weights = ", ".join(f"{weight:g}" for weight in classifier.law_of(size).weights)
    return f"groups with 0 to {size} positives are collected with the weights {weights}"
