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
from mdpu.estimator import MDPUClassifier, TupleClassifier, TupleEstimator
from mdpu.law import Law
from mdpu.learners.choice import Choice
from mdpu.learners.features import Standardisation
from mdpu.learners.linear import CrossFit
from mdpu.learners.network import Network, NetworkScore
from mdpu.learners.student import LinearScore, StudentScore, Trees
from mdpu.methods import OWN_LOSS
from mdpu.networks import Preparation, make_network
from mdpu.prior import PriorProfile
from mdpu.settings import Settings, Task
from mdpu.train import Trained

FORMAT = 2
LAWS = ("dominant", "similar")  # functions from a size that a file names

KNOWN: tuple[type | str, ...] = (
    *(MDPUClassifier, TupleClassifier, Network, Choice, Law, PriorProfile, Task),
    *(Standardisation, LinearScore, StudentScore, NetworkScore, Trees, CrossFit, Preparation),
    *(TreePredictor, sparse.csr_matrix),
    "mdpu.own.columns.TableEncoder",  # by name: it is above the library
    "sklearn.tree._tree.Tree",  # a forged one does what a forged TreePredictor does
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
)


def save(classifier: Any, path: str | Path, *, trusted: Sequence[str] = ()) -> None:
    """Write a trained classifier, or a `Pipeline` that ends in one, to a file for `load`.

    Code and rows that only training needs are left out: callbacks, the module given as
    `Network.network`, a function given as `Network.loss`, counts, labelled rows of ``positive_by``,
    held-out scores.

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
    untrusted = _unknown(data, [*KNOWN, *trusted])
    if untrusted:
        raise UserError(
            f"the classifier holds {', '.join(untrusted)}, which load would refuse; take a learner "
            f"of scikit-learn, or give trusted={untrusted} to both save and load if you vouch for "
            "the file"
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
        untrusted = _unknown(Path(path).read_bytes(), types)
        if any(name.startswith("mdpu.") for name in untrusted):
            raise UserError(
                f"{path} holds {', '.join(untrusted)}, which this version does not have; read it "
                "with the version that wrote it"
            ) from None
        raise UserError(
            f"{path} holds {', '.join(untrusted)}, which is not trusted, so nothing of it was made"
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


def _unknown(data: bytes, trusted: Sequence[Any]) -> list[str]:
    """Return the names of the types in a file that are not trusted."""
    names = {
        type_or_name
        if isinstance(type_or_name, str)
        else f"{type_or_name.__module__}.{type_or_name.__name__}"
        for type_or_name in trusted
    }
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
    held: Any = copy.copy(classifier)
    vars(held).pop("_skl_callbacks", None)  # of set_callbacks
    held.model_ = _model_as_data(held.model_)
    if isinstance(held.model_, NetworkScore):
        held.history_ = None  # the model has it
    if isinstance(held.learner, Network):
        held.learner = copy.copy(held.learner)
        held.learner.callbacks = ()
        if callable(held.learner.network):
            held.learner.network = "given"
        if callable(held.learner.loss):
            held.learner.loss = OWN_LOSS
    held._counts = held._counts and ((), ())
    if isinstance(getattr(held, "positive_by", None), tuple):
        held.positive_by = None
    law = getattr(held, "law", None)
    if callable(law):
        if law not in [getattr(Law, name) for name in LAWS]:
            raise UserError(
                f"law is the function {law!r}, which a file cannot hold; give a Law, or its weights"
            )
        held.law = law.__name__
    return held


def _model_as_data(model: Any) -> Any:
    """Return what a learner learned, less what prediction does not need."""
    if isinstance(model, NetworkScore):
        trained = model.trained
        weights = {name: value.cpu().numpy() for name, value in trained.module.state_dict().items()}
        history = {str(name): column.to_numpy() for name, column in trained.history.items()}
        task = trained.task
        if callable(task.loss):
            task = replace(task, loss=OWN_LOSS)
        stored: Any = {**vars(trained), "task": task, "module": weights, "history": history}
        return replace(model, trained=stored)
    if isinstance(model, LinearScore):
        none: Any = np.empty(0)
        fit = replace(
            model.fit, tuple_scores=[], unlabeled_scores=none, tuple_folds=[], unlabeled_folds=none
        )
        return replace(model, fit=fit)
    if _holds_boosted_trees(model):
        student = copy.copy(model.student)
        del student._loss  # other versions of scikit-learn have it elsewhere
        return replace(model, student=student)
    return model


def _holds_boosted_trees(model: Any) -> bool:
    return isinstance(model, StudentScore) and isinstance(
        model.student, HistGradientBoostingClassifier
    )


def _from_data(held: Any, network: Any) -> Any:
    """Return the classifier that `_as_data` was given, less what it left out."""
    if not isinstance(held, TupleEstimator):
        raise UserError(f"the file holds a {type(held).__name__}, which is no classifier of tuples")
    law = getattr(held, "law", None)
    if isinstance(law, str) and law in LAWS:
        held.law = getattr(Law, law)
    if _holds_boosted_trees(held.model_):
        held.model_.student._loss = held.model_.student._get_loss(None)
    if isinstance(held.model_, NetworkScore):
        learner = held.learner if isinstance(held.learner, Network) else Network()
        trained = _trained(held.model_.trained, learner, network)
        held.model_ = replace(held.model_, trained=trained)
        held.history_ = trained.history
    return held


def _trained(stored: Any, learner: Network, network: Any) -> Trained:
    """Return the trained network that a file holds as data; `network` is the user's module."""
    named = learner.network
    if named == "given":
        if network is None:
            raise UserError(
                "the classifier was trained with a module of its own; give network=, that module"
            )
        learner.network = named = network
    if named is None:
        named = "mlp" if stored["preparation"].directions is None else "components"
    architecture = {"hidden": learner.hidden} if named in ("mlp", "components") else {}
    settings = Settings(network=named, architecture=architecture)
    with torch.random.fork_rng([]):
        module = make_network(settings, stored["preparation"], 1, 0)

    weights = {name: torch.from_numpy(np.array(part)) for name, part in stored["module"].items()}
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(
            f"the weights are those of another network: {printable(str(error))[:200]}"
        ) from None
    history = pd.DataFrame(stored["history"])
    return Trained(**stored | {"module": module.eval(), "history": history})
