"""Measures without labels while a network trains, from scores of tuples that it did not learn from.

A run goes wrong where the model's own prior stays away from the told one, where the law that the
tuples fit is another than the told one, or where the likelihood falls: its peak is where training
should stop.
"""

import torch

from mdpu.law import TINY, count_law

STEPS = 100


def fitted_counts(tuples, unlabeled):
    """Return the shares of tuples with 0 to M positives, (M + 1,), that fit best, whatever the law.

    Scores (n, M) say how likely members are with k positives among them against a random group;
    expectation maximisation finds the shares.
    """
    prior = unlabeled.sigmoid().mean().expand(tuples.shape[1])
    of_tuples = count_law(tuples.sigmoid(), (-tuples).sigmoid())  # (n, M + 1)
    of_groups = count_law(prior, 1 - prior)  # (M + 1,)
    ratios = of_tuples / of_groups.clamp(min=TINY)

    shares = torch.full_like(ratios[0], 1 / len(ratios[0]))
    for _ in range(STEPS):
        parts = shares * ratios  # (n, M + 1)
        total = parts.sum(dim=1, keepdim=True)
        shares = (parts / total.clamp(min=TINY)).mean(dim=0)
    return shares


@torch.no_grad()
def watch(law, prior, tuples, unlabeled):
    """Return what held-out scores, log-odds (n, M) and (n_unlabeled,), say of the model, by name.

    ``likelihood`` is the mean log-likelihood of tuples against bags of unlabeled instances, log q -
    log Z, in nats: 0 for a constant model, at best `Law.joint_information`. ``model_prior`` is the
    mean of r over the unlabeled ones. ``law_gap`` is the total variation, from 0 to 1, between the
    told law of the number of positives and the fitted one.
    """
    tuples = tuples.double()
    unlabeled = unlabeled.double()
    model_prior = unlabeled.sigmoid().mean().clamp(TINY, 1 - TINY)

    told = law.at(model_prior.item())
    members = model_prior.expand(law.size)
    q, *_ = told.passes(tuples.sigmoid(), (-tuples).sigmoid())
    Z, *_ = told.passes(members, 1 - members)
    likelihood = q.clamp(min=TINY).log().mean() - Z.clamp(min=TINY).log()

    counts = fitted_counts(tuples, unlabeled).cpu()
    gaps = counts - torch.from_numpy(law.counts(prior))
    return {
        "likelihood": likelihood.item(),
        "model_prior": model_prior.item(),
        "law_gap": gaps.abs().sum().item() / 2,
    }
