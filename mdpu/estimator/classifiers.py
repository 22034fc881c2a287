"""The two classifiers: their laws, and what their parameters mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from mdpu.errors import UserError, check_choice
from mdpu.estimator.base import TupleEstimator
from mdpu.law import Law


@dataclass(kw_only=True, eq=False, repr=False)
class MDPUClassifier(TupleEstimator):
    """A classifier learned from tuples, at least half of whose members are positive, and unlabeled rows.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled rows, in (0, 1). By default it is estimated (`PriorProfile` has the
        limits); a sample that does not tell it is refused.
    dominant : {'positive', 'negative'}
        The class that at least half of each tuple's members are of.
    broken : float or 'estimate'
        Share of the tuples, in [0, 1), that break the rule. ``estimate`` finds it at a told `prior`, and takes it as 0
        unless its interval excludes 0. Pairs do not tell it: for any share other probabilities of the rows fit.
        Networks are trained shorter then, see `recipe`.
    learner : {'auto', 'network', 'student', 'linear', 'trees'} or estimator
        ``network`` trains what the parameters from `method` to `precision` say. ``student``: boosted trees on the soft
        labels of a kernel machine; any scikit-learn classifier with ``sample_weight`` and ``predict_proba`` takes their
        place. ``linear``: a linear model of the joint objective, which takes sparse rows. ``trees``: boosted trees of
        the joint objective. ``auto`` takes ``network`` for 1,000 tuples of pictures or more, or where one of its
        parameters is set, ``linear`` for sparse rows, and ``student`` for all else.
        Learners without a network take one thread.
    guess_prior : bool
        Whether a prior that the sample does not tell is guessed instead of refused.
    compare_prior : bool
        Whether `fit` compares a told prior with what the tuples say, and warns.
    unlabeled_is : {'pool', 'remainder'}
        Whether the unlabeled rows are draws from the pool, or what was left of it when the tuples had been taken out.
        In the second case the members are put back, and `prior` is that of the whole pool.
    standardize : bool
        Whether a network sees the columns of a table of floats with their outliers pulled in, centred and scaled. The
        other learners do this by themselves.
    method : str
        A file of ``mdpu/learn/methods`` that sees no labels and scores rows. ``bag-relu`` and the other methods on
        bags use what the members of a tuple say together; ``relu``, ``abs`` and ``ure`` are the paper's.
    loss : {'logistic', 'ramp', 'squared', 'hinge', 'sigmoid'}
        Of Table I. Methods on bags have a loss of their own and ignore it.
    network : str, Module or callable, optional
        By default `recipe` chooses it, as it does `n_epochs`, `batch_size`, `learning_rate` and `weight_decay`. A file
        of ``mdpu/learn/networks``; or a PyTorch module, which is copied and trained from the weights that it has; or a
        function from the shape of a row to a module. A module takes vectors as (N, d) and pictures as (N, C, H, W),
        uint8 values divided by 255, and returns (N, 1).
    hidden : tuple of int
        Units of each hidden layer of the networks ``mlp`` and ``components``; others ignore it.
    n_epochs : int, optional
        Number of epochs; with `early_stopping`, the largest number.
    early_stopping : bool
        Whether held-out bags choose the number of epochs (`mdpu.learn.stopping`). The classifier is trained twice then:
        on a part of the data, to choose, and on all of it for as many epochs.
    validation_fraction : float
        Share of tuples and unlabeled rows that early stopping holds out, in (0, 1).
    n_iter_no_change : int, optional
        Epochs without a better estimate after which the first of the two trainings ends; by default it does not.
    batch_size : int, optional
        Tuples of a minibatch.
    learning_rate, weight_decay : float, optional
        Of Adam; the weight decay is an L2 penalty.
    precision : {'fp32', 'tf32', 'bf16', 'auto'}
        Of the products. ``auto`` takes bf16 where the hardware multiplies it, which is faster; ``fp32`` gives the same
        model on more machines.
    device : {'auto', 'cpu', 'cuda'}
    prior_shift : float, optional
        Prior where the classifier will be used, if it is another than that of the unlabeled rows. It moves the
        scores by the difference of the log-odds of the two priors, and can be set after `fit`.
    callbacks : sequence of callable
        Called after each epoch of a network's training with the epoch, from 1, and its row of `history_` as a dict. An
        error in one ends `fit`. The first of the two trainings of `early_stopping` calls none.
    warm_start : bool
        Whether `fit` goes on from the last call's state until `n_epochs` epochs in all. Where the data are the same,
        the result is that of one call, bit for bit on a CPU. It excludes `early_stopping`.
    random_state : int, RandomState, str or None
        Of the initial weights and of the order of minibatches. A text names a trial as those of the pipeline are.
    verbose : bool
        Whether to show progress, on the standard error.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        -1 and +1.
    prior_ : float
        As it was given or estimated.
    prior_estimate_ : PriorProfile or None
        What the sample says of the positive class's prior, with its interval; ``plot()`` draws it. None if the prior
        was told and `compare_prior` is False.
    broken_, broken_estimate_ : float, Estimate or None
        The share of broken tuples that was assumed, and what the sample says of it if that was asked for.
    learner_ : Choice
        The learner and the reason for it.
    history_ : DataFrame
        Of networks, one row per epoch: ``epoch``, from 1, ``objective``, and what the method records.
    n_iter_ : int
        Epochs that a network was trained for.
    validation_history_ : DataFrame
        With early stopping, the estimate of each epoch: ``epoch`` and ``bag_risk``.
    model_ : mdpu.learn.fitting.FittedNetwork or callable
        What the library trained.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where rows were given as a frame.

    Notes
    -----
    The property ``module_`` is the trained network as a plain PyTorch module: from rows (N, ...) as they are,
    standardisation included, to the scores of `decision_function`.

    scikit-learn's tools cut `X` and `y` by rows, so `fit` takes the data as one array of rows too, with the number of
    its tuple for each; see `fit` and `join_groups`. In that form a `Pipeline` scales the rows, and `GridSearchCV`
    works with ``cv=TupleKFold()`` and ``scoring=negative_risk``.

    Examples
    --------
    Triples of digits are kept if at least two are even:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> images, digits = load_digits(return_X_y=True)
    >>> even, rng = digits % 2 == 0, np.random.default_rng(0)
    >>> groups = rng.integers(1200, size=(3000, 3))
    >>> tuples = images[groups[even[groups].sum(axis=1) >= 2]]
    >>> unlabeled = images[rng.integers(1200, size=2000)]
    >>> classifier = MDPUClassifier(random_state=0).fit(tuples, unlabeled)
    >>> classifier.predict(images[1200:1206])
    array([-1, -1, -1, -1, -1,  1])
    >>> print(f"{classifier.score(images[1200:], np.where(even[1200:], 1, -1)):.2f}")
    0.93
    """

    dominant: Literal["positive", "negative"] = "positive"

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size: at least half of the members are of the dominant class."""
        return self._broken(Law.dominant(size) if self.dominant == "positive" else Law.between(size, 0, size // 2))

    def _own_law(self, size: int) -> Law:
        return self._broken(Law.dominant(size))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        check_choice("dominant", self.dominant, ("positive", "negative"))
        return super()._fit(X, y, sample_weight)

    @property
    def _sign(self) -> int:
        return 1 if self.dominant == "positive" else -1


@dataclass(kw_only=True, eq=False, repr=False)
class TupleClassifier(TupleEstimator):
    """A classifier learned from tuples of any symmetric law and unlabeled rows.

    A random group of M rows with k positives is collected as a tuple with the weight w_k. Weights (0, 1, 0) are
    dissimilar pairs, (1, 0, 1) similar ones, (0, 1, 0, 0) triples with exactly one positive.

    Parameters
    ----------
    prior : float, optional
        Share of positives among the unlabeled rows, in (0, 1). By default it is estimated, see `PriorProfile`; a
        sample that does not tell it is refused.
    law : Law, array_like or callable
        The law, or its weights w_0 .. w_M; or a function from a tuple size to a law, such as ``Law.dominant``, for
        tuples of several sizes, from which networks do not learn.
    **parameters
        The others are those of `MDPUClassifier`.

    Attributes
    ----------
    classes_, prior_, prior_estimate_, learner_, model_
        As those of `MDPUClassifier`.
    """

    law: Any = (0, 1, 1)

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, counts: tuple[ArrayLike, ArrayLike] | None = None
    ) -> Self:
        """Train on tuples and unlabeled rows, or on tuples whose numbers of positives were observed within bounds.

        Parameters
        ----------
        X, y, sample_weight
            As for `MDPUClassifier.fit`. With `counts`, `y` may be left out where all groups were collected, whatever
            was observed of them: then the members are draws at the prior, which need not be told, and the log loss of
            the observations is minimised.
        counts : (low, high), optional
            The least and the largest number of positives in each tuple, numbers or integers (n,); they take the place
            of `law`. Equal ones are exact counts (label proportions), (1, size) and (0, 0) the positive and negative
            bags of multiple-instance learning. Which bounds were given may depend on the number only in that they hold
            it. Networks do not learn from them.

        Raises
        ------
        UserError
            As `MDPUClassifier.fit`, and if counts are impossible, say nothing, or overlap where `y` is left out.
        """
        return self._fit_or_restore(X, y, counts, sample_weight)

    def law_of(self, size: int) -> Law:
        """Return the law of the tuples of one size.

        Raises
        ------
        UserError
            If `law` is none, or one of another size, or one in which the order of members counts; or if the classifier
            was trained on counts.
        """
        if getattr(self, "_counts", None) is not None:
            raise UserError("the classifier was trained on counts, not on a law; scores without labels need a law")
        try:
            law = self.law(size) if callable(self.law) else self.law
            law = law if isinstance(law, Law) else Law(tuple(law))
        except (TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"law is {self.law!r}; a Law is needed, or the weights w_0 .. w_M, as (0, 1, 1)") from None
        if law.size != size:
            raise UserError(
                f"law is one of {law.size} members, but a tuple has {size}; give a function from the size, as "
                "Law.dominant, for tuples of several sizes"
            )
        if law.ordered:
            raise UserError(
                "the learners of the classifier take the members of a tuple in any order, which counts in this law; "
                "train a network by it with mdpu.learn.fit or mdpu.losses.TupleLoss"
            )
        return self._broken(law)
