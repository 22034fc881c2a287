"""Tuples that nobody drew by a law: votes of a court, and sentences of reviews. Their members depend on each other.

A docket is a group of votes, whose outcome says on which side at least half of them are. A review is a group of polar
sentences, whose stars say the same up to 3 %. All groups are collected, so the loss is the log loss of the outcome. One
linear model of votes or sentences is learned from each kind of supervision: true labels; the outcome, copied to all
members; the outcome by the joint law of independent members; the same with a normal random effect that all members of a
group share, integrated out, of deviation 1 and 2 (learned from outcomes, it ends at 0). ``shuffled`` is the joint law
on the same members, put into groups at random. The ridge is chosen by the outcomes of held-out groups, of labels by
those of members. Accuracies on members of groups set aside, mean and standard deviation of the trials, in %.

    OMP_NUM_THREADS=1 python benchmarks/natural.py --folder natural
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder

from mdpu.learners.joint import posteriors

RIDGES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
DEVIATIONS = {"effect 1": 1.0, "effect 2": 2.0}
STARS = {"pos": True, "neg": False}


def court(folder):
    """Return features of votes, whether each is liberal, the docket of each, and whether its outcome is."""
    votes = pd.read_csv(folder / "court-votes.csv.gz", encoding="latin1", low_memory=False)
    votes = votes[votes.direction.isin([1, 2]) & votes.decisionDirection.isin([1, 2])].reset_index(drop=True)
    votes = votes[votes.groupby("docketId").docketId.transform("size").between(5, 9)]
    own = votes[["justice", "issueArea", "lcDispositionDirection"]].fillna(-1).astype(int).astype(str)
    own["area"] = own.justice + "/" + own.issueArea
    own["below"] = own.justice + "/" + own.lcDispositionDirection
    own["both"] = own.issueArea + "/" + own.lcDispositionDirection
    groups = pd.factorize(votes.docketId)[0]
    outcomes = votes.groupby(groups).decisionDirection.first().to_numpy() == 2
    return OneHotEncoder(min_frequency=20).fit_transform(own), votes.direction.to_numpy() == 2, groups, outcomes, 0.0


def reviews(folder):
    """Return the same of polar sentences; positive and negative reviews."""
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
    return words, np.array(labels), np.array(groups), np.array(outcomes), 0.03


def parts_of(groups, outcomes, broken):
    """Return the members of groups, by size and outcome, with the chance of it for each number of positives."""
    order = np.argsort(groups, kind="stable")
    numbers, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    parts = []
    for size in np.unique(sizes):
        k = np.arange(size + 1)
        passes = np.select([2 * k > size, 2 * k == size], [1 - broken, 0.5], broken)
        for outcome in (False, True):
            chosen = (sizes == size) & (outcomes[numbers] == outcome)
            members = order[starts[chosen][:, None] + np.arange(size)]
            parts.append((members, passes if outcome else 1 - passes))
    return [part for part in parts if len(part[0])]


def log_loss(scores, parts, deviation):
    """Return the mean of -log q over groups, and its derivative by scores, given the random effect's deviation."""
    value, by_score, n = 0.0, np.zeros_like(scores), sum(len(members) for members, _ in parts)
    nodes = NODES if deviation else np.zeros(1)
    chances = NODE_WEIGHTS / NODE_WEIGHTS.sum() if deviation else np.ones(1)
    for members, passes in parts:
        shifted = scores[members][:, None] + deviation * nodes[:, None]  # (n, nodes, M)
        q, g = posteriors(passes, shifted)
        mixed = q @ chances
        slopes = (q * chances / mixed[:, None])[..., None] * (g - expit(shifted)) / n
        value -= np.log(mixed).sum() / n
        by_score -= np.bincount(members.ravel(), slopes.sum(axis=1).ravel(), len(scores))
    return value, by_score


def learn(x, parts, ridge, deviation):
    """Return weights and intercept of a linear model with a ridge."""

    def penalised(model):
        value, by_score = log_loss(x @ model[:-1] + model[-1], parts, deviation)
        gradient = np.append(x.T @ by_score + 2 * ridge * model[:-1], by_score.sum())
        return value + ridge * model[:-1] @ model[:-1], gradient

    start = np.zeros(x.shape[1] + 1)
    return minimize(penalised, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}).x


def accuracy(x, labels, groups, outcomes, broken, kind, trial):
    """Return the accuracy on the members of a fifth of the groups."""
    generator = np.random.default_rng(trial)
    fold = generator.integers(5, size=len(outcomes))[groups]
    if kind == "shuffled":
        groups = groups.copy()
        for part in (fold == 1, fold > 1):
            groups[part] = generator.permutation(groups[part])
        share = np.bincount(groups, labels) / np.bincount(groups)
        outcomes = np.where(share == 0.5, generator.random(len(share)) < 0.5, share > 0.5)
    if kind in ("labels", "copied"):  # groups of one
        outcomes, groups = (labels if kind == "labels" else outcomes[groups]), np.arange(len(labels))
        broken = 0.0
    take = [np.flatnonzero(part) for part in (fold > 1, fold == 1, fold == 0)]
    fit, judge = (parts_of(groups[own], outcomes, broken) for own in take[:2])
    deviation = DEVIATIONS.get(kind, 0.0)
    models = [learn(x[take[0]], fit, ridge, deviation) for ridge in RIDGES]
    losses = [log_loss(x[take[1]] @ model[:-1] + model[-1], judge, deviation)[0] for model in models]
    best = models[int(np.argmin(losses))]
    return np.mean((x[take[2]] @ best[:-1] + best[-1] > 0) == labels[take[2]])


def main():
    """Print a line of a Markdown table for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=3)
    arguments = parser.parse_args()
    kinds = ("labels", "copied", "joint", *DEVIATIONS, "shuffled")
    columns = ("set", "groups", "members", "larger class", *kinds)
    print(f"| {' | '.join(columns)} |\n| --- {'| ---: ' * 9}|")
    for name, read in (("court", court), ("reviews", reviews)):
        x, labels, groups, outcomes, broken = read(arguments.folder)
        cells = [name, len(outcomes), len(labels), f"{100 * max(labels.mean(), 1 - labels.mean()):.1f}"]
        for kind in kinds:
            found = [accuracy(x, labels, groups, outcomes, broken, kind, trial) for trial in range(arguments.trials)]
            cells.append(f"{100 * np.mean(found):.1f} ± {100 * np.std(found, ddof=1):.1f}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
