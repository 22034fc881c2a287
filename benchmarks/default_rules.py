"""The candidate rules of `learner="auto"` on the draws of ``default_learner.py``.

A line of the CSV is a rule on a draw: its accuracy in %, and processor seconds of its trainings. It
prints, by half and kind of data, accuracy in points less the best single learner of the draw (mean,
worst, share more than 4 below), the mean less `student` with its standard error over draws, and
seconds. Only half A may choose a rule.

    python benchmarks/default_rules.py draws.csv
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, softmax

from mdpu.learners.choice import PICTURES_FROM

LEARNERS = ("student", "linear", "network")
DRAW = ("draw", "set", "half", "kind", "law", "size", "prior", "told", "n")
PRIOR_ON_STUDENT = 8.0  # bags that the start of the stacking weights counts as


def accuracy_of(probability, labels, prior):
    """Return the accuracy in %, weighted so that the share of positives is the prior."""
    positive = labels > 0
    right = (probability > 0.5) == positive
    return 100 * float(prior * right[positive].mean() + (1 - prior) * right[~positive].mean())


def left_if_better(losses, default):
    """Return the learner of least loss, unless it is within a standard error of the default one."""
    best = min(losses, key=lambda name: losses[name].mean())
    difference = losses[default] - losses[best]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return best if difference.mean() > error else default


def stacked(losses, default):
    """Return weights of the learners that mix their bag likelihoods best, with a prior on the
    default one.
    """
    names = list(losses)
    likelihoods = np.exp(-np.stack(list(losses.values())))
    start = np.full(len(names), 0.1 / (len(names) - 1))
    start[names.index(default)] = 0.9

    def objective(free):
        weights = softmax(free)
        fit = np.log(weights @ likelihoods).sum()
        return -fit - PRIOR_ON_STUDENT * start @ np.log(weights)

    best = minimize(objective, np.log(start))
    return dict(zip(names, softmax(best.x), strict=True))


def named_by_default(line):
    """Return the learner that ``auto`` names for a draw, by `mdpu.learners.choice`."""
    if line["kind"] == "pictures" and line["n"] >= PICTURES_FROM:
        return "network"
    return "student"


def rules_of(line, kept):
    """Return the accuracy and the number of trainings' seconds of each rule."""
    names = [name for name in LEARNERS if name in kept]
    probability = {name: expit(kept[name].astype(float)) for name in names}
    default = "network" if line["kind"] == "pictures" else "student"
    once = {name: line[f"{name}_s"] for name in names}
    every = sum(once.values())

    def mixed(weights):
        mean = sum(weights[name] * probability[name] for name in weights) / sum(weights.values())
        return accuracy_of(mean, kept["labels"], line["prior"])

    alike = dict.fromkeys(names, 1.0)
    rules = {name: (line[name], once[name]) for name in names}
    rules["by kind"] = (line[default], once[default])
    named = named_by_default(line)
    rules["auto"] = (line[named], once[named])
    rules["mean, alike"] = (mixed(alike), every)
    rules["mean, default twice"] = (mixed({**alike, default: 2.0}), every)
    if not line["folds"]:
        return rules

    losses = {name: kept[f"{name} by bag"] for name in names}
    chosen = left_if_better(losses, default)
    rules["least loss on a quarter"] = (line["auto"], 0.75 * every + once[line["chosen"]])
    rules["left by one error"] = (line[chosen], 3 * every + once[chosen])
    rules["stacking"] = (mixed(stacked(losses, default)), 4 * every)
    return rules


def lines_of(paths):
    """Yield the path of a file and a line, for each line of each file."""
    for path in paths:
        for line in pd.read_csv(path).dropna(subset=["student"]).to_dict("records"):
            yield path, line


def lines_of_rules(paths):
    """Yield a line per draw and rule, with the accuracy in points less two others."""
    for path, line in lines_of(paths):
        with np.load(path.with_suffix("") / f"{line['draw']}-{line['set']}.npz") as kept:
            rules = rules_of(line, dict(kept))
        best = max(rules[name][0] for name in LEARNERS if name in rules)
        for rule, (accuracy, seconds) in rules.items():
            yield {
                **{name: line[name] for name in DRAW},
                "rule": rule,
                "accuracy": accuracy,
                "seconds": seconds,
                "regret": accuracy - best,
                "less_student": accuracy - rules["student"][0],
            }


def summarised(rules):
    """Return the measures of each rule by half and kind of data."""
    everything = rules.assign(kind="all")
    grouped = pd.concat([everything, rules]).groupby(["half", "kind", "rule"], sort=False)
    return grouped.agg(
        draws=("regret", "size"),
        sets=("set", "nunique"),
        mean=("regret", "mean"),
        worst=("regret", "min"),
        below_4=("regret", lambda regret: 100 * (regret < -4).mean()),
        less_student=("less_student", "mean"),
        error=("less_student", "sem"),
        seconds=("seconds", "mean"),
    )


def main():
    """Write the CSV, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("draws", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("results/reference/default_rules.csv"))
    arguments = parser.parse_args()
    rules = pd.DataFrame(lines_of_rules(arguments.draws))
    rules.round(3).to_csv(arguments.out, index=False)
    print(summarised(rules).round(2).to_string())


if __name__ == "__main__":
    main()
