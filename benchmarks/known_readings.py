"""Checks of the inference of readings, which ``benchmarks/readings.py`` prints: known readings, unused datasets."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import special

from mdpu.pipeline.evaluate.published import TRIALS
from mdpu.pipeline.evaluate.readings import Model, Panel, Papers, Reading


def drawn(panel: Panel, papers: int, offset: float, seed: int) -> Papers:
    """Publish three trials of readings that are drawn by their prior, from the distribution of each cell.

    Every method has an offset of its own in a paper, normal with deviation `offset` in points.
    """
    random, model = np.random.default_rng(seed), Model(panel)
    truth = random.choice(len(panel.readings), papers, p=panel.prior)
    cells, root = len(panel.cells), np.linalg.cholesky(model.alike)
    deviation = np.sqrt(model.variance[truth] * model.freedom / random.chisquare(model.freedom, (papers, cells)))
    error = np.sqrt(model.error[truth]) * (random.standard_normal((papers, cells)) @ root.T)
    offsets = offset * random.standard_normal((papers, len(model.methods)))[:, model.method]
    noise = deviation[:, None] * (random.standard_normal((papers, TRIALS, cells)) @ root.T)
    trials = (model.mean[truth] + error + offsets)[:, None] + noise
    return Papers(model.likelihood(trials.mean(axis=1), trials.std(axis=1, ddof=1)).both, truth)


def recovery(panel: Panel, papers: Papers, power: float, level: float = 0.9) -> pd.DataFrame:
    """Count how often the true value of a choice is found.

    Returns
    -------
    DataFrame
        A row for each choice that the panel varies, and for all that gives more images: ``papers``; ``first``, the
        share in which the true value has the highest posterior; ``held``, in which the smallest set of values with
        `level` of the posterior holds it; ``size``, the mean number of values in that set; ``departing``, papers whose
        value is not the protocol's, and ``found``, the share of these in which it has the highest posterior.
    """
    weights, rows = panel.posterior(papers.likelihood, power), []
    labels = {choice: [reading[choice] for reading in panel.readings] for choice in panel.by_choice(panel.prior)}
    if "replacement" in labels:  # the ways to more data are hard to tell apart
        more = [reading["replacement"] == "without" or reading["unlabeled"] != "n" for reading in panel.readings]
        labels["more information"] = ["yes" if one else "no" for one in more]
    for choice, own in labels.items():
        of = np.array([[one == value for value in dict.fromkeys(own)] for one in own], float)
        shares, true = weights @ of, of[papers.truth].argmax(axis=1)
        order = np.argsort(-shares, axis=1, kind="stable")
        ranked = np.take_along_axis(shares, order, axis=1)
        inside = np.cumsum(ranked, axis=1) - ranked < level
        place = (order == true[:, None]).argmax(axis=1)
        first, departs = place == 0, true != 0
        rows.append(
            {
                "choice": choice,
                "papers": len(true),
                "first": first.mean(),
                "held": inside[np.arange(len(true)), place].mean(),
                "size": inside.sum(axis=1).mean(),
                "departing": int(departs.sum()),
                "found": first[departs].mean() if departs.any() else np.nan,
            }
        )
    return pd.DataFrame(rows)


def held_out_scores(panel: Panel, protocol: Reading, power: float) -> pd.DataFrame:
    """Predict the cells of each dataset from the readings' posterior by the others, in nats a cell.

    ``mixture`` is of all readings by their posterior, ``best`` of the one with the highest, the place of which is
    ``reading``, and ``protocol`` of the protocol as it stands.
    """
    whole, rows = Model(panel).likelihood(*panel.published).both[0], []
    for dataset in panel.cells["dataset"].unique():
        rest = (panel.cells["dataset"] != dataset).to_numpy()
        others = Panel(panel.readings, panel.cells[rest].reset_index(drop=True), panel.trials[:, rest])
        known = Model(others).likelihood(*others.published).both[0]
        weights, gain = panel.posterior(known, power), (whole - known) / (~rest).sum()
        best, usual = int(np.argmax(weights)), gain[panel.readings.index(dict(protocol))]
        mixture = special.logsumexp((~rest).sum() * gain, b=weights) / (~rest).sum()
        row = {"dataset": dataset, "reading": best, "mixture": mixture, "best": gain[best], "protocol": usual}
        rows.append(row)
    return pd.DataFrame(rows)
