"""Tuples that nobody drew by a law: votes of a court, sentences of reviews, segments of recordings of birds.

A docket is a group of votes, and its outcome says on which side at least half of them are. A review is a group of
polar sentences, and its stars say the same up to 3 %. A recording is a group of segments, and "the species is heard"
says that at least one of them is of it. All groups are collected, so the loss is the log loss of the outcome. One model
of members is learned from each kind of supervision: true ``labels``; the outcome, ``copied`` to all members; the
outcome by the ``joint`` law of independent members; the same with a normal random ``effect`` of deviation 1 that all
members of a group share, integrated out; the largest score, ``max``, as in a max-pooling network. ``shuffled`` is the
joint law on the same members, put into groups at random. The model is linear for votes and sentences, with a ridge that
held-out outcomes choose, and a network of 32 units for segments, with a step that they choose (for ``labels``: labels).

A line of the CSV is a trial: means over folds by group, and over the five most frequent species, of the accuracy and
AUC on members and of the outcome on groups, in %. The files are those of

- court: the Supreme Court Database, http://scdb.wustl.edu, release 2015 03, justice-centred by docket, as
  court-votes.csv.gz
- reviews: Taeckstroem and McDonald (2011), finegrained.txt, as review-sentences.txt
- birds: Briggs et al. (2012), in https://github.com/macarbonneau/MILSurvey, as birdsong-bags.csv (bag, species) and
  birdsong-segments.csv.gz (bag, species, f1 to f38)

    OMP_NUM_THREADS=1 python benchmarks/natural.py --folder natural --out results/reference/natural.csv
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mdpu.learners.joint import posteriors

RIDGES = (3e-3, 1e-3, 3e-4)
STEPS, EVERY = 100, 10
NODES, CHANCES = np.polynomial.hermite_e.hermegauss(5)
CHANCES = CHANCES / CHANCES.sum()
STARS = {"pos": True, "neg": False}
HEARD_WRONGLY = 0.02  # of recordings without such a segment, told: 0 to 9 % by species
KINDS = ("labels", "copied", "joint", "effect", "max", "shuffled")


@dataclass(frozen=True)
class Natural:
    """Features of members, their labels, the group of each, the outcomes; how outcomes are made; folds to test on."""

    x: Any
    labels: np.ndarray
    groups: np.ndarray
    outcomes: np.ndarray
    loss: Callable
    folds: int


# -- sets -------------------------------------------------------------------------------------------


def court(folder):
    """Return votes, liberal or not."""
    votes = pd.read_csv(folder / "court-votes.csv.gz", encoding="latin1", low_memory=False)
    votes = votes[votes.direction.isin([1, 2]) & votes.decisionDirection.isin([1, 2])].reset_index(drop=True)
    votes = votes[votes.groupby("docketId").docketId.transform("size").between(5, 9)]
    own = votes[["justice", "issueArea", "lcDispositionDirection"]].fillna(-1).astype(int).astype(str)
    own["area"] = own.justice + "/" + own.issueArea
    own["below"] = own.justice + "/" + own.lcDispositionDirection
    own["both"] = own.issueArea + "/" + own.lcDispositionDirection
    groups = pd.factorize(votes.docketId)[0]
    outcomes = votes.groupby(groups).decisionDirection.first().to_numpy() == 2
    x = OneHotEncoder(min_frequency=20).fit_transform(own)
    yield Natural(x, votes.direction.to_numpy() == 2, groups, outcomes, Majority(0.0), 1)


def reviews(folder):
    """Return polar sentences, positive or not."""
    texts, labels, groups, outcomes = [], [], [], []
    for block in (folder / "review-sentences.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        name, _, *lines = block.split("\n")
        stars = STARS.get(name.split("_")[1])
        polar = [line.split("\t", 1) for line in lines if line.split("\t")[0] in STARS]
        if stars is not None and polar:
            texts += [text for _, text in polar]
            labels += [STARS[kind] for kind, _ in polar]
            groups += [len(outcomes)] * len(polar)
            outcomes.append(stars)
    words = TfidfVectorizer(min_df=2, ngram_range=(1, 2), sublinear_tf=True).fit_transform(texts)
    yield Natural(words, np.array(labels), np.array(groups), np.array(outcomes), Majority(0.03), 5)


def birds(folder):
    """Return segments, of a species or not, for each of the five most frequent species."""
    segments = pd.read_csv(folder / "birdsong-segments.csv.gz").sort_values("bag", kind="stable")
    heard = pd.read_csv(folder / "birdsong-bags.csv").sort_values("bag").species.astype(str).str.split()
    x = StandardScaler().fit_transform(segments.filter(regex="^f")).astype(np.float32)
    groups = pd.factorize(segments.bag)[0]
    for species in heard.explode().value_counts().index[:5]:
        labels = segments.species.astype(str).str.split().map(lambda own, one=species: one in own)
        outcomes = heard.map(lambda own, one=species: one in own)
        yield Natural(x, labels.to_numpy(), groups, outcomes.to_numpy(), AtLeastOne(HEARD_WRONGLY), 5)


# -- losses: from scores of members to the mean log loss of groups, its slopes, and q of the outcome "true" ------------


@dataclass(frozen=True)
class Majority:
    """At least half of the members are positive, up to a broken share; ties say either."""

    broken: float

    def __call__(self, scores, groups, outcomes, deviation):
        """Return loss, slopes and q; groups are 0, 1, ... in any order."""
        order, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
        starts, q, slopes = np.cumsum(sizes) - sizes, np.empty(len(sizes)), np.zeros_like(scores)
        nodes, chances = (NODES, CHANCES) if deviation else (np.zeros(1), np.ones(1))
        for size in np.unique(sizes):
            k = np.arange(size + 1)
            passes = np.select([2 * k > size, 2 * k == size], [1 - self.broken, 0.5], self.broken)
            for outcome in (False, True):
                chosen = np.flatnonzero((sizes == size) & (outcomes == outcome))
                members = order[starts[chosen][:, None] + np.arange(size)]
                moved = scores[members][:, None] + deviation * nodes[:, None]  # (n, nodes, M)
                own, g = posteriors(passes if outcome else 1 - passes, moved)
                q[chosen] = own @ chances
                slopes[members] -= ((own * chances / q[chosen, None])[..., None] * (g - expit(moved))).sum(axis=1)
        return -np.log(q).mean(), slopes / len(sizes), np.where(outcomes, q, 1 - q)


@dataclass(frozen=True)
class AtLeastOne:
    """At least one member is positive, or the group is one of a broken share of those without any."""

    broken: float

    def __call__(self, scores, groups, outcomes, deviation):
        """Return loss, slopes and q."""
        nodes, chances = (NODES, CHANCES) if deviation else (np.zeros(1), np.ones(1))
        moved = scores + deviation * nodes[:, None]  # (nodes, N)
        none = np.exp([np.bincount(groups, -np.logaddexp(0, own)) for own in moved]) * (1 - self.broken)
        heard = np.clip(1 - chances @ none, 1e-9, 1 - 1e-9)
        by_none = np.where(outcomes, 1 / heard, -1 / (1 - heard)) * chances[:, None] * none  # -dlog q / dlog none
        slopes = -(by_none[:, groups] * expit(moved)).sum(axis=0)
        return -np.log(np.where(outcomes, heard, 1 - heard)).mean(), slopes / len(outcomes), heard


def largest(scores, groups, outcomes, deviation):
    """Return the same where the largest score is that of the group."""
    order = np.lexsort((scores, groups))
    top = order[np.cumsum(np.bincount(groups)) - 1]
    slopes, q = np.zeros_like(scores), expit(scores[top])
    slopes[top] = (q - outcomes) / len(outcomes)
    return np.logaddexp(0, np.where(outcomes, -1, 1) * scores[top]).mean(), slopes, q


# -- models: scores of all members, learned from some groups and chosen by others -----------------


def linear(x, fit, judge, seed):
    """Return scores of a linear model, its ridge chosen."""
    take, loss = fit

    def learn(ridge):
        def penalised(model):
            value, slopes, _ = loss(x[take] @ model[:-1] + model[-1])
            gradient = np.append(x[take].T @ slopes + 2 * ridge * model[:-1], slopes.sum())
            return value + ridge * model[:-1] @ model[:-1], gradient

        start = np.zeros(x.shape[1] + 1)
        model = minimize(penalised, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
        return x @ model[:-1] + model[-1]

    return min(map(learn, RIDGES), key=lambda scores: judge[1](scores[judge[0]])[0])


def network(x, fit, judge, seed):
    """Return scores of a network, its number of steps chosen."""
    torch.manual_seed(seed)
    take, loss = fit
    model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    rows, found = torch.from_numpy(x), []
    for step in range(STEPS):
        scores = model(rows[take])[:, 0]
        slopes = loss(scores.detach().double().numpy())[1]
        optimizer.zero_grad()
        scores.backward(torch.from_numpy(slopes).float())
        optimizer.step()
        if step % EVERY == EVERY - 1:
            with torch.no_grad():
                scores = model(rows)[:, 0].double().numpy()
            found.append((judge[1](scores[judge[0]])[0], scores))
    return min(found, key=lambda one: one[0])[1]


# -- trials -----------------------------------------------------------------------------------------


def measured(data, kind, trial, fold):
    """Return accuracy and AUC of members, and of groups, on the fifth of the groups that a fold is."""
    generator = np.random.default_rng(trial)
    part = (generator.integers(5, size=len(data.outcomes)) - fold)[data.groups] % 5
    groups, outcomes, loss = data.groups, data.outcomes, largest if kind == "max" else data.loss
    if kind == "shuffled":
        groups = groups.copy()
        for own in (part == 1, part > 1):
            groups[own] = generator.permutation(groups[own])
        positive, sizes = np.bincount(groups, data.labels), np.bincount(groups)
        half = np.where(2 * positive == sizes, generator.random(len(sizes)) < 0.5, 2 * positive > sizes)
        outcomes = positive > 0 if isinstance(loss, AtLeastOne) else half
    if kind in ("labels", "copied"):  # groups of one
        outcomes, groups = (data.labels if kind == "labels" else outcomes[groups]), np.arange(len(groups))
        loss = AtLeastOne(0.0)

    def some(chosen, groups=groups, outcomes=outcomes, loss=loss):
        numbers, own = np.unique(groups[chosen], return_inverse=True)
        return chosen, lambda scores: loss(scores, own, outcomes[numbers], float(kind == "effect"))

    take, held, test = (np.flatnonzero(own) for own in (part > 1, part == 1, part == 0))
    learn = network if isinstance(data.x, np.ndarray) else linear
    scores = learn(data.x, some(take), some(held), trial)[test]
    numbers, own = np.unique(data.groups[test], return_inverse=True)
    if kind == "copied":
        q = np.bincount(own, expit(scores)) / np.bincount(own)
    else:
        q = some(test, data.groups, data.outcomes, largest if kind == "max" else data.loss)[1](scores)[2]
    truths, answers = (data.labels[test], data.outcomes[numbers]), (expit(scores), q)
    pairs = zip(truths, answers, strict=True)
    return [
        100 * one for truth, chance in pairs for one in (np.mean((chance > 0.5) == truth), roc_auc_score(truth, chance))
    ]


def main():
    """Write the lines as they are made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=("birds", "reviews", "court"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name in arguments.sets:
        all_of = list({"court": court, "reviews": reviews, "birds": birds}[name](arguments.folder))
        for trial in range(arguments.trials):
            for kind in KINDS:
                found = [measured(one, kind, trial, fold) for one in all_of for fold in range(one.folds)]
                means = dict(
                    zip(("members", "members_auc", "groups", "groups_auc"), np.mean(found, axis=0), strict=True)
                )
                lines.append({"set": name, "kind": kind, "trial": trial, **means})
                pd.DataFrame(lines).to_csv(arguments.out, index=False, float_format="%.2f")


if __name__ == "__main__":
    main()
