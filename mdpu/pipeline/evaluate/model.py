"""How probable what the paper prints is under a reading, by our own trials: a normal law and
Student's.

``docs/explanation/readings.md`` explains the model, and ``benchmarks/readings.py`` prints what
comes out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy  # which loads scipy.special when it is used
from numpy.typing import NDArray

from mdpu.pipeline.evaluate.comparison import Array
from mdpu.pipeline.evaluate.panel import Panel
from mdpu.pipeline.evaluate.published import TRIALS
from mdpu.pipeline.plan import ROW

FACTOR = 0.2  # deviation of the logarithm of the factor of all published deviations
FACTORS = np.linspace(-2.5, 2.5, 11)  # values of that logarithm, in deviations
SCALE = 1.0  # of the half-normal priors of tau and kappa, in points
GRID = np.array([0.1, 0.3, 0.6, 1.0, 1.6, 2.6, 4.2, 6.8])  # of tau and kappa
# Degrees of freedom that the pooled variance may count for in a cell's.
FREEDOMS = np.array([3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0])
ROUNDING = 0.005  # the least deviation in percent, because the paper rounds to 0.01


class Likelihood(NamedTuple):
    """Logarithms of the likelihoods of papers (papers, readings), and what goes with the means'
    part.
    """

    mean: Array
    std: Array  # zero where a paper has one trial
    unshifted: Array  # of the means, with the least kappa alone: methods have hardly any offsets
    tau: Array  # posterior means given the reading, in points
    kappa: Array

    @property
    def both(self) -> Array:
        """The likelihoods of means and deviations together."""
        return self.mean + self.std


class Model:
    """Predicts a published mean and deviation of `trials` trials from ours, for each reading and
    cell of a panel.

    A cell's variance is shrunk to that of its method in its reading. Its mean borrows from other
    ways to report the same runs: otherwise a reading whose trials scatter less would predict any
    paper best. Trials of one split correlate over the methods.
    """

    def __init__(self, panel: Panel, trials: int = TRIALS) -> None:
        self.panel = panel
        self.n_published = trials
        # the methods' names, and each cell's place among them
        self.methods, self.method = np.unique(panel.cells["method"], return_inverse=True)
        same_method = self.method[:, None] == self.method
        self._same_method = same_method.astype(float)

        self.freedom, self.variance = self._pool_variances()
        self.mean, self.error = self._borrow_means()
        same_row = _share_row(panel)
        self.correlation = self._correlate(same_row)
        self.alike = np.where(same_row, self.correlation, 0)
        self.alike = self.alike + np.eye(len(same_row))

        # Student's t has this variance; a normal distribution stands in for it.
        variance = self.variance * self.freedom / (self.freedom - 2)
        spread = variance / trials + self.error
        roots = np.sqrt(spread[:, :, None] * spread[:, None, :])
        self.covariance = roots * self.alike  # of published minus our means

    def _pool_variances(self) -> tuple[float, Array]:
        """Return the degrees of freedom of the cells' variances, and these, shrunk to their
        method's in its reading.
        """
        counted = self.panel.trials.shape[2] - 1  # degrees of freedom of a cell's variance alone
        pool = self._same_method / self._same_method.sum(axis=0)
        squares = self.panel.trials.var(axis=2, ddof=1)
        pooled = squares @ pool
        freedom = _prior_freedom(squares, pool, counted) + counted
        weighted = (freedom - counted) * pooled + counted * squares
        return freedom, weighted / freedom

    def _borrow_means(self) -> tuple[Array, Array]:
        """Return the means of the cells in each reading, each by all that its runs report, and
        their variances.
        """
        values = self.panel.trials
        mean = values.mean(axis=2)
        error = np.empty(values.shape[:2])
        places = self._by_training()  # (T, E)
        by_training = values[places]  # (T, E, C, S)
        for number in range(len(self.methods)):
            cells = np.flatnonzero(self.method == number)
            estimated, variance = _estimate_means(by_training[:, :, cells].transpose(0, 2, 3, 1))
            for column, of_value in enumerate(places.T):
                mean[np.ix_(of_value, cells)] = estimated[:, :, column]
                error[np.ix_(of_value, cells)] = variance[column]
        return mean, error

    def _by_training(self) -> NDArray[np.int_]:
        """Return the places of the readings that report the same runs, a row each; ``epochs`` is
        how they do it.
        """
        readings = self.panel.readings
        values = list(dict.fromkeys(reading["epochs"] for reading in readings))
        places: dict[str, dict[str, int]] = {}
        for place, reading in enumerate(readings):
            training = str([value for choice, value in reading.items() if choice != "epochs"])
            places.setdefault(training, {})[reading["epochs"]] = place
        rows = []
        for by_value in places.values():
            rows.append([by_value[value] for value in values])
        return np.array(rows)

    def _correlate(self, same_row: NDArray[np.bool_]) -> float:
        """Return how the trials of one split correlate over the methods."""
        values = self.panel.trials
        centred = values - values.mean(axis=2, keepdims=True)
        scaled = centred / np.sqrt(self.variance)[:, :, None]
        products = np.einsum("rcs,rds->cd", scaled, scaled)
        squares = np.diag(products)
        both = np.sqrt(np.outer(squares, squares))[same_row].sum()
        if not both:
            return 0.0
        return float(np.clip(products[same_row].sum() / both, 0, 0.9))

    def likelihood(self, means: Array, stds: Array | None = None) -> Likelihood:
        """Return the likelihood of papers, each with published means and deviations of all cells,
        (papers, cells).
        """
        weight = _log_prior()
        logs = self._densities(np.atleast_2d(means))  # (tau, kappa, P, R)
        logs += weight[:, None, None, None]
        logs += weight[:, None, None]

        mean = scipy.special.logsumexp(logs, axis=(0, 1))
        shares = np.exp(logs - mean)
        unshifted = scipy.special.logsumexp(logs[:, 0], axis=0)
        std = np.zeros_like(mean)
        if stds is not None:
            std = self._of_stds(stds)
        return Likelihood(
            mean=mean,
            std=std,
            unshifted=unshifted - weight[0],
            tau=np.tensordot(GRID, shares.sum(axis=1), 1),
            kappa=np.tensordot(GRID, shares.sum(axis=0), 1),
        )

    def _densities(self, means: Array) -> Array:
        """Return the logarithms of the normal density of published means by tau and kappa, (tau,
        kappa, P, R).
        """
        cells = means.shape[1]
        gaps = means[:, None] - self.mean  # (P, R, C)
        residual = np.swapaxes(gaps, 0, 1).swapaxes(1, 2)  # (R, C, P)
        logs = np.empty((len(GRID), len(GRID), len(means), len(self.mean)))
        for i, tau in enumerate(GRID):
            for j, kappa in enumerate(GRID):
                unexplained = tau**2 * np.eye(cells)
                offsets = kappa**2 * self._same_method
                covariance = self.covariance + unexplained + offsets
                logs[i, j] = _log_density(residual, covariance).T
        return logs

    def _of_stds(self, stds: Array) -> Array:
        """Return the likelihood of the deviations' logarithms, with a factor that all cells share
        (papers, readings).

        With a prior of one half, the paper divides by the number of trials, not by one less.
        """
        counted = self.n_published - 1  # degrees of freedom of a published variance
        printed = np.maximum(np.atleast_2d(stds), ROUNDING)
        squares = printed[:, None] ** 2 / self.variance  # (P, R, C)
        usual = FACTOR * FACTORS
        shrunk = usual + np.log(counted / self.n_published) / 2
        normal = -(FACTORS**2) / 2
        weights = normal - scipy.special.logsumexp(normal) - np.log(2)

        terms = []
        for shifts in (usual, shrunk):
            for shift, weight in zip(shifts, weights, strict=True):
                log = self._log_ratio_density(squares / np.exp(2 * shift), counted)
                of_deviation = log + np.log(2)
                terms.append(of_deviation.sum(axis=2) + weight)
        return np.asarray(scipy.special.logsumexp(terms, axis=0))

    def _log_ratio_density(self, ratio: Array, counted: int) -> Array:
        """Return the logarithm of the density of the logarithm of an F ratio, of a published
        variance by ours.
        """
        half = counted / 2
        rest = self.freedom / 2
        beta = scipy.special.betaln(half, rest)
        norm = half * np.log(counted / self.freedom) - beta
        tail = (half + rest) * np.log1p(counted * ratio / self.freedom)
        return np.asarray(norm + half * np.log(ratio) - tail)

    def scores(self, means: Array) -> Array:
        """Return published minus our means in standard errors, (readings, cells), without tau and
        kappa.
        """
        variances = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.asarray((means - self.mean) / np.sqrt(variances))


def _log_prior() -> Array:
    """Return the logarithm of the prior of tau and kappa on their grid."""
    density = np.exp(-((GRID / SCALE) ** 2) / 2)
    prior = density * np.gradient(GRID)
    return np.log(prior / prior.sum())


def _log_density(residual: Array, covariance: Array) -> Array:
    """Return the logarithm of the normal density of residuals (R, C, P), of each reading and paper,
    (R, P).
    """
    cells = residual.shape[1]
    root = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(root, residual)
    square = (whitened**2).sum(axis=1)
    diagonal = np.diagonal(root, axis1=1, axis2=2)
    volume = np.log(diagonal).sum(axis=1)
    constant = cells / 2 * np.log(2 * np.pi)
    return np.asarray(-square / 2 - volume[:, None] - constant)


def _share_row(panel: Panel) -> NDArray[np.bool_]:
    """Return which two cells are of different methods in one row, (cells, cells)."""
    rows = panel.cells.groupby(list(ROW), sort=False).ngroup().to_numpy()
    return (rows[:, None] == rows[None, :]) & ~np.eye(len(rows), dtype=bool)


def _prior_freedom(squares: Array, pool: Array, counted: int) -> float:
    """Return how many degrees of freedom the pooled variance counts, by how much more cells differ
    than by chance.

    The moments of the logarithms of variances give it (Smyth, 2004).
    """
    logs = np.log(np.maximum(squares, 1e-6))
    differing = ((logs - logs @ pool) ** 2).sum(axis=1).mean() / (len(pool) - np.trace(pool))
    chance = scipy.special.polygamma(1, FREEDOMS / 2) + scipy.special.polygamma(1, counted / 2)
    return float(FREEDOMS[np.abs(chance - differing).argmin()])


def _estimate_means(values: Array) -> tuple[Array, Array]:
    """Return the means of a method's cells by all that their runs report, (T, C, E), and their
    variances (E).

    `values` are trials (T, C, S, E): of trainings, cells and seeds, by value of the choice
    ``epochs``. Its values are of the same runs, so their means share noise: they are estimated
    together, as one normal vector of each cell whose covariances between cells and within one are
    those of the method over all trainings.
    """
    trainings, cells, trials, _ = values.shape
    centre = values.mean(axis=2)
    noise = values - centre[:, :, None]
    within = np.einsum("tcse,tcsf->ef", noise, noise)
    within /= trainings * cells * (trials - 1)
    spread = centre - centre.mean(axis=1, keepdims=True)
    between = np.einsum("tce,tcf->ef", spread, spread)
    between /= trainings * (cells - 1)

    sizes, axes = np.linalg.eigh(between - within / trials)
    between = (axes * np.maximum(sizes, 0)) @ axes.T  # the nearest that is a covariance
    trust = between @ np.linalg.pinv(between + within / trials, hermitian=True)
    estimated = centre - spread + spread @ trust.T
    return estimated, np.diag(between - trust @ between)
