"""Trained classifiers in files that hold data and names, but no code: ``save(classifier,
"file.skops")``, and `load`.

A file is a zip of arrays and JSON, written by `skops <https://skops.readthedocs.io>`_. Reading it
makes objects of known classes only, and calls nothing that the file could choose. A file that names
anything else is refused, and so is a classifier that would make such a file. Networks are on the
CPU, wherever they were trained.

scikit-learn follows the nodes of trees without a check, so a forged file can crash Python, or let
it read beyond them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from skops import io
from skops.io.exceptions import UntrustedTypesFoundException

from mdpu import __version__
from mdpu.errors import UserError, printable
from mdpu.estimator import Choice, MDPUClassifier, Network, TupleClassifier, TupleEstimator
from mdpu.law import Law
from mdpu.learners.features import Standardisation
from mdpu.learners.linear import CrossFit
from mdpu.learners.student import LinearScore, StudentScore, Trees
from mdpu.networks import Preparation, make_network
from mdpu.prior import PriorProfile
from mdpu.settings import Settings, Task
from mdpu.train import Trained

FORMAT = 1
LAWS = ("dominant", "similar")  # functions from a size that a file names

KNOWN: tuple[type | str, ...] = (
    *(MDPUClassifier, TupleClassifier, Network, Choice, Law, PriorProfile, Task),
    *(Standardisation, LinearScore, StudentScore, Trees, CrossFit, Preparation),
    *(TreePredictor, sparse.csr_matrix),
    "mdpu.own.columns.TableEncoder",  # by name: it is above the library
    "sklearn.tree._tree.Tree",  # a forged one does what a forged TreePredictor does
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
)


def save(classifier: Any, path: str | Path, *, trusted: Sequence[str] = ()) -> None:
    """Write a trained classifier, or a `Pipeline` that ends in one, to a file for `load`.

    Code and rows that only training needs are left out: callbacks, the module given as
    `Network.network`, counts, labelled rows of ``positive_by``, held-out scores.

    Parameters
    ----------
    classifier : MDPUClassifier, TupleClassifier or Pipeline
    path : str or Path
    trusted : sequence of str
        Further types that the file may hold, as the refusal names them; `load` needs them too.

    Raises
    ------
    UserError
        If it is not trained, or holds what such a file cannot, or what `load` would refuse.
    """
    check_is_fitted(classifier)
    last = classifier.steps[-1][1] if isinstance(classifier, Pipeline) else classifier
    if not isinstance(last, TupleEstimator):
        raise UserError(
            f"{type(last).__name__} is neither a classifier of tuples nor a Pipeline that ends in "
            "one"
        )
    held = {"format": FORMAT, "mdpu": __version__, "classifier": with_last(classifier, _as_data)}
    try:
        data = io.dumps(held)
    except Exception as error:  # skops raises different ones for what it cannot write
        raise UserError(
            f"the classifier holds what a file cannot: {printable(str(error))[:200]}"
        ) from error
    others = _unknown(data, [*KNOWN, *trusted])
    if others:
        raise UserError(
            f"the classifier holds {', '.join(others)}, which load would refuse; take a learner of "
            f"scikit-learn, or give trusted={others} to both save and load if you vouch for the "
            "file"
        )
    Path(path).write_bytes(data)


def load(path: str | Path, *, network: Any = None, trusted: Sequence[str] = ()) -> Any:
    """Return the classifier or the pipeline that `save` wrote, with its network on the CPU.

    Parameters
    ----------
    path : str or Path
    network : Module or callable, optional
        The user's module that the classifier was trained with, with any weights.
    trusted : sequence of str
        Further types that the file may hold, as the refusal names them, such as those of another
        package's classifier. Their contents are not checked: name them for files of your own.

    Raises
    ------
    UserError
        If the file is damaged or was made by a later version, or holds a type that is neither known
        nor trusted.
    """
    types = [*KNOWN, *trusted]
    try:
        held = io.load(Path(path), trusted=types)
        made_by = (held["format"], held["mdpu"])
        classifier = held["classifier"]
    except UntrustedTypesFoundException:
        others = _unknown(Path(path).read_bytes(), types)
        raise UserError(
            f"{path} holds {', '.join(others)}, which is not trusted, so nothing of it was made"
        ) from None
    except (
        Exception
    ) as error:  # of a zip, of JSON, of numpy or of a class whose attributes are others
        raise UserError(
            f"{path} is no file of a classifier, or damaged: {printable(str(error))[:200]}"
        ) from error
    if made_by[0] != FORMAT:
        raise UserError(
            f"{path} was written by version {made_by[1]} in another format; read it with that "
            "version"
        )
    return with_last(classifier, lambda last: _from_data(last, network))


def _unknown(data: bytes, trusted: Sequence[Any] = KNOWN) -> list[str]:
    """Return the names of the types in a file that are not trusted."""
    names = {one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in trusted}
    return sorted(set(io.get_untrusted_types(data=data)) - names)


def with_last(estimator: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a classifier, or of a pipeline that ends in one, with the classifier
    changed.
    """
    if not isinstance(estimator, Pipeline):
        return change(estimator)
    changed = copy.copy(estimator)
    vars(changed).pop("_skl_callbacks", None)
    changed.steps = [
        *estimator.steps[:-1],
        (estimator.steps[-1][0], change(estimator.steps[-1][1])),
    ]
    return changed


def _as_data(classifier: TupleEstimator) -> Any:
    """Return a copy of a classifier that holds data alone."""
    own: Any = copy.copy(classifier)
    vars(own).pop("_skl_callbacks", None)  # of set_callbacks
    model = own.model_
    if isinstance(model, Trained):
        weights = {name: value.cpu().numpy() for name, value in model.module.state_dict().items()}
        history = {str(name): column.to_numpy() for name, column in model.history.items()}
        own.model_ = {**vars(model), "module": weights, "history": history}
        own.history_ = None
    elif isinstance(model, LinearScore):
        none: Any = np.empty(0)
        fit = replace(
            model.fit, tuple_scores=[], unlabeled_scores=none, tuple_folds=[], unlabeled_folds=none
        )
        own.model_ = replace(model, fit=fit)
    elif isinstance(model, StudentScore) and isinstance(
        model.student, HistGradientBoostingClassifier
    ):
        own.model_ = replace(model, student=copy.copy(model.student))
        del own.model_.student._loss  # other versions of scikit-learn have it elsewhere
    if isinstance(own.learner, Network):
        own.learner = copy.copy(own.learner)
        own.learner.callbacks = ()
        own.learner.network = "given" if callable(own.learner.network) else own.learner.network
    own._counts = own._counts and ((), ())
    if isinstance(getattr(own, "positive_by", None), tuple):
        own.positive_by = None
    if callable(law := getattr(own, "law", None)):
        if law not in [getattr(Law, name) for name in LAWS]:
            raise UserError(
                f"law is the function {law!r}, which a file cannot hold; give a Law, or its weights"
            )
        own.law = law.__name__
    return own


def _from_data(own: Any, network: Any) -> Any:
    """Return the classifier that `_as_data` was given, less what it left out."""
    if not isinstance(own, TupleEstimator):
        raise UserError(f"the file holds a {type(own).__name__}, which is no classifier of tuples")
    if isinstance(law := getattr(own, "law", None), str) and law in LAWS:
        own.law = getattr(Law, own.law)
    if isinstance(own.model_, StudentScore) and isinstance(
        own.model_.student, HistGradientBoostingClassifier
    ):
        own.model_.student._loss = own.model_.student._get_loss(None)
    if not isinstance(own.model_, dict):
        return own
    stored = own.model_
    learner = own.learner if isinstance(own.learner, Network) else Network()
    named = learner.network or ("mlp" if stored["preparation"].directions is None else "components")
    if named == "given":
        if network is None:
            raise UserError(
                "the classifier was trained with a module of its own; give network=, that module"
            )
        learner.network = named = network
    architecture = {"hidden": learner.hidden} if named in ("mlp", "components") else {}
    with torch.random.fork_rng([]):
        module = make_network(
            Settings(network=named, architecture=architecture), stored["preparation"], 1, 0
        )
    try:
        module.load_state_dict(
            {name: torch.from_numpy(np.array(value)) for name, value in stored["module"].items()}
        )
    except RuntimeError as error:
        raise UserError(
            f"the weights are those of another network: {printable(str(error))[:200]}"
        ) from None
    own.history_ = pd.DataFrame(stored["history"])
    own.model_ = Trained(**stored | {"module": module.eval(), "history": own.history_})
    return own
