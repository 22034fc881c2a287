"""Measures without labels while a network trains, from scores of tuples that it did not learn from.

A run goes wrong where the model's own prior stays away from the told one, where the law that the tuples fit is another
than the told one, or where the likelihood falls: its peak is where training should stop.
"""

import torch

from mdpu.law import TINY, count_law

STEPS = 100


def fitted_counts(tuples, unlabeled):
    """Return the shares of tuples with 0 to M positives, (M + 1,), that fit best, whatever the law.

    Scores (n, M) say how likely members are with k positives among them against a random group; expectation
    maximisation finds the shares.
    """
    own = count_law(tuples.sigmoid(), (-tuples).sigmoid())  # (n, M + 1)
    prior = unlabeled.sigmoid().mean().expand(tuples.shape[1])
    ratios = own / count_law(prior, 1 - prior).clamp(min=TINY)
    shares = torch.full_like(ratios[0], 1 / len(ratios[0]))
    for _ in range(STEPS):
        parts = shares * ratios
        shares = (parts / parts.sum(dim=1, keepdim=True).clamp(min=TINY)).mean(dim=0)
    return shares


@torch.no_grad()
def watch(law, prior, tuples, unlabeled):
    """Return what held-out scores, log-odds (n, M) and (n_unlabeled,), say of the model, by name.

    ``likelihood`` is the mean log-likelihood of tuples against bags of unlabeled instances, log q - log Z, in nats: 0
    for a constant model, at best `Law.joint_information`. ``model_prior`` is the mean of r over the unlabeled ones.
    ``law_gap`` is the total variation, from 0 to 1, between the told law of the number of positives and the fitted one.
    """
    tuples, unlabeled = tuples.double(), unlabeled.double()
    own = unlabeled.sigmoid().mean().clamp(TINY, 1 - TINY)
    told, members = law.at(own.item()), own.expand(law.size)
    q, Z = told.passes(tuples.sigmoid(), (-tuples).sigmoid())[0], told.passes(members, 1 - members)[0]
    counts = torch.from_numpy(law.counts(prior))
    return {
        "likelihood": (q.clamp(min=TINY).log().mean() - Z.clamp(min=TINY).log()).item(),
        "model_prior": own.item(),
        "law_gap": ((fitted_counts(tuples, unlabeled).cpu() - counts).abs().sum() / 2).item(),
    }
