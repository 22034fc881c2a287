"""Checks of the inference of readings: readings that are known, and datasets that were not used.

``benchmarks/readings.py`` prints them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from mdpu.pipeline.evaluate.choices import Reading
from mdpu.pipeline.evaluate.known import Papers
from mdpu.pipeline.evaluate.model import Model
from mdpu.pipeline.evaluate.panel import Panel
from mdpu.pipeline.evaluate.published import TRIALS


def drawn(panel: Panel, papers: int, offset: float, seed: int) -> Papers:
    """Publish three trials of readings that are drawn by their prior.

    In each paper, every method has an offset, normal with deviation `offset` in points.
    """
    random = np.random.default_rng(seed)
    model = Model(panel)
    truth = random.choice(len(panel.readings), papers, p=panel.prior)
    trials = draw_trials(model, truth, offset, random)
    means = trials.mean(axis=1)
    stds = trials.std(axis=1, ddof=1)
    return Papers(model.likelihood(means, stds).both, truth)


def draw_trials(
    model: Model,
    truth: NDArray[np.int64],
    offset: float,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Return trials (papers, TRIALS, cells) of the readings at places (papers,)."""
    papers = len(truth)
    root = np.linalg.cholesky(model.alike)
    cells = len(root)

    scale = model.variance[truth] * model.freedom
    deviation = np.sqrt(scale / random.chisquare(model.freedom, (papers, cells)))
    error = random.standard_normal((papers, cells)) @ root.T
    error *= np.sqrt(model.error[truth])
    offsets = offset * random.standard_normal((papers, len(model.methods)))
    luck = random.standard_normal((papers, TRIALS, cells)) @ root.T

    means = model.mean[truth] + error
    means += offsets[:, model.method]
    return means[:, None] + deviation[:, None] * luck


def recovery(panel: Panel, papers: Papers, power: float, level: float = 0.9) -> pd.DataFrame:
    """Count how often the true value of a choice is found.

    Returns
    -------
    DataFrame
        A row for each choice that the panel varies, and for all that gives more images: ``papers``;
        ``first``, the share in which the true value has the highest posterior; ``held``, in which
        the smallest set of values with `level` of the posterior holds it; ``size``, the mean number
        of values in that set; ``departing``, papers whose value is not the protocol's, and
        ``found``, the share of these in which it has the highest posterior.
    """
    weights = panel.posterior(papers.likelihood, power)
    rows = []
    for choice, values in values_by_choice(panel).items():
        names = list(dict.fromkeys(values))
        places = np.array([names.index(value) for value in values])
        shares = weights @ np.eye(len(names))[places]
        rows.append({"choice": choice, **recovered(shares, places[papers.truth], level)})
    return pd.DataFrame(rows)


def values_by_choice(panel: Panel) -> dict[str, list[Any]]:
    """Return the value of each reading for each choice that the panel varies."""
    values: dict[str, list[Any]] = {}
    for choice in panel.by_choice(panel.prior):
        values[choice] = [reading[choice] for reading in panel.readings]
    if "replacement" in values:  # the ways to more data are hard to tell apart
        values["more information"] = [gives_more(reading) for reading in panel.readings]
    return values


def gives_more(reading: Reading) -> str:
    """Return whether there are more images than under the protocol, ``yes`` or ``no``."""
    if reading["replacement"] == "without" or reading["unlabeled"] != "n":
        return "yes"
    return "no"


def recovered(shares: NDArray[np.float64], true: NDArray[np.int64], level: float) -> dict[str, Any]:
    """Return how often values are found.

    Parameters
    ----------
    shares : ndarray, shape (papers, values)
        Posterior of each value; the first is the protocol's.
    true : ndarray, shape (papers,)
        Place of the true value.
    level : float
        As in `recovery`.
    """
    order = np.argsort(-shares, axis=1, kind="stable")
    ranked = np.take_along_axis(shares, order, axis=1)
    in_set = np.cumsum(ranked, axis=1) - ranked < level
    rank = (order == true[:, None]).argmax(axis=1)
    first = rank == 0
    departs = true != 0

    found = np.nan
    if departs.any():
        found = first[departs].mean()
    return {
        "papers": len(true),
        "first": first.mean(),
        "held": in_set[np.arange(len(true)), rank].mean(),
        "size": in_set.sum(axis=1).mean(),
        "departing": int(departs.sum()),
        "found": found,
    }


def held_out_scores(panel: Panel, protocol: Reading, power: float) -> pd.DataFrame:
    """Predict the cells of each dataset from the readings' posterior by the rest, in nats a cell.

    ``mixture`` is of all readings by their posterior, ``best`` of the one with the highest, the
    place of which is ``reading``, and ``protocol`` of the protocol as it stands.
    """
    usual = panel.readings.index(dict(protocol))
    by_all = log_likelihood(panel)
    rows = []
    for dataset in panel.cells["dataset"].unique():
        held_out = (panel.cells["dataset"] == dataset).to_numpy()
        cells = held_out.sum()
        by_rest = log_likelihood(without(panel, held_out))
        gain = (by_all - by_rest) / cells
        weights = panel.posterior(by_rest, power)
        best = int(np.argmax(weights))
        rows.append(
            {
                "dataset": dataset,
                "reading": best,
                "mixture": special.logsumexp(cells * gain, b=weights) / cells,
                "best": gain[best],
                "protocol": gain[usual],
            }
        )
    return pd.DataFrame(rows)


def without(panel: Panel, held_out: NDArray[np.bool_]) -> Panel:
    """Return a panel of the other cells."""
    cells = panel.cells[~held_out].reset_index(drop=True)
    return Panel(panel.readings, cells, panel.trials[:, ~held_out])


def log_likelihood(panel: Panel) -> NDArray[np.float64]:
    """Return the log-likelihood (readings,) of what was published of a panel's cells."""
    return Model(panel).likelihood(*panel.published).both[0]
