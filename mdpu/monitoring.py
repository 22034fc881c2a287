"""What to watch without labels while a network trains, in any loop, by scores that it did not learn from.

>>> watch(law, 0.4, network(held_out_tuples), network(held_out_unlabeled))
{'likelihood': 0.31, 'model_prior': 0.41, 'law_gap': 0.02}

A run goes wrong where the model's own prior stays away from the told one, where the law that the tuples fit is another
than the told one, or where the likelihood falls. ``docs/how-to/your-loop.md`` shows both kinds of run.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mdpu.law import TINY, Law, count_law
from mdpu.scores import joint

STEPS = 100


def likelihood(law: Law, tuples: Tensor, unlabeled: Tensor) -> float:
    """Return the mean log-likelihood of tuples against bags of unlabeled instances, log q - log Z, in nats.

    Z is that of the model's own prior, so the model is a density whatever the told prior. What a constant model reaches
    is 0, and the best `Law.joint_information`. Its peak is where training should stop.

    Parameters
    ----------
    law : Law
    tuples : Tensor, shape (n, M)
        Scores, log-odds, of tuples that the network was not trained on.
    unlabeled : Tensor, shape (n_unlabeled,)
        Scores of such unlabeled instances.
    """
    told = law.at(min(max(model_prior(unlabeled), TINY), 1 - TINY))
    q = joint(told, tuples.double())[0].clamp(min=TINY)
    members = unlabeled.new_full((law.size,), model_prior(unlabeled), dtype=torch.float64)
    return float(q.log().mean() - told.passes(members, 1 - members)[0].clamp(min=TINY).log())


def model_prior(unlabeled: Tensor) -> float:
    """Return the model's own class prior, the mean of r over unlabeled scores (n_unlabeled,)."""
    return float(unlabeled.double().sigmoid().mean())


def fitted_counts(tuples: Tensor, unlabeled: Tensor) -> Tensor:
    """Return the shares of tuples with 0 to M positives, (M + 1,), that fit best, whatever the law.

    The model says how likely members (n, M) are with k positives among them against a random group, by their scores;
    expectation maximisation finds the shares.
    """
    own = count_law(tuples.double().sigmoid(), (-tuples.double()).sigmoid())  # (n, M + 1)
    prior = tuples.new_full((tuples.shape[1],), model_prior(unlabeled), dtype=torch.float64)
    ratios = own / count_law(prior, 1 - prior).clamp(min=TINY)
    shares = torch.full_like(ratios[0], 1 / len(ratios[0]))
    for _ in range(STEPS):
        parts = shares * ratios
        shares = (parts / parts.sum(dim=1, keepdim=True).clamp(min=TINY)).mean(dim=0)
    return shares


def law_gap(law: Law, prior: float, tuples: Tensor, unlabeled: Tensor) -> float:
    """Return how far the told law and the fitted one lie apart, as the number of positives in a tuple shows it.

    It is the total variation, from 0 to 1, between what the told law and prior say of that number (Lemma 5) and
    `fitted_counts`.
    """
    return float(np.abs(fitted_counts(tuples, unlabeled).cpu().numpy() - law.counts(prior)).sum() / 2)


@torch.no_grad()
def watch(law: Law, prior: float, tuples: Tensor, unlabeled: Tensor) -> dict[str, float]:
    """Return `likelihood`, `model_prior` and `law_gap` by name, for a log; parameters are theirs."""
    return {
        "likelihood": likelihood(law, tuples, unlabeled),
        "model_prior": model_prior(unlabeled),
        "law_gap": law_gap(law, prior, tuples, unlabeled),
    }
