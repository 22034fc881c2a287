"""Tables of the classifiers, their learners and their pages, from the files of
results/reference.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from rows import markdown, read, with_interval

SETS = {
    "magic": "MAGIC",
    "cancer": "breast cancer",
    "reviews": "review sentences",
    "mnist": "MNIST",
}
PLACES = {
    "clean": "by the rule",
    "shares 0.1": "places, 0.1",
    "shares 0.25": "places, 0.25",
    "shares 0.5": "places, 0.5",
    "both": "places, 0.25, alike in a column",
    "feature": "alike in a column, equal shares",
    "broken 0.05": "5 % broken",
    "broken 0.1": "10 % broken",
    "few": "few",
}


INTERVALS = {
    "prior": "interval of the prior",
    "risk": "error rate",
    "risk, prior estimated": "error rate, prior estimated",
    "auc": "AUC",
    "balanced_accuracy": "balanced accuracy",
    "precision": "precision",
    "recall": "recall",
}


def coverage(learner: str) -> str:
    """Return how often intervals of a learner cover in each setting, and how wide that of the prior
    is where it is known.
    """
    rows = read("coverage.csv")
    rows = rows[rows["learner"] == learner]
    setting = ["set", "law", "sizes", "prior", "n", "broken", "copies"]
    body = []
    for values, intervals in rows.groupby([*setting, "first"], sort=False):
        key = dict(zip(setting, values, strict=False))
        intervals = intervals.set_index("interval")
        shares = (100 * intervals["covers"] / intervals["repetitions"]).reindex(INTERVALS)
        of_prior, *of_scores = ["–" if pd.isna(share) else f"{share:.1f}" for share in shares]
        known = intervals.loc["prior"]
        width = "–" if pd.isna(known.known_width) else f"{known.known_width:.2f}"
        body.append(
            [
                _setting_words(key),
                key["sizes"].replace(" ", ", "),
                str(key["prior"]),
                f"{key['n']:,}",
                of_prior,
                f"{known.known_covers} of {known.known}",
                width,
                *of_scores,
            ]
        )
    first, *others = INTERVALS.values()
    known_columns = ["known that cover", "width of the known"]
    return markdown(["set", "M", "prior", "n", first, *known_columns, *others], body)


def _setting_words(setting: dict[str, Any]) -> str:
    words = SETS.get(setting["set"], setting["set"])
    if setting["law"] == "one":
        words += ", exactly one"
    if setting["broken"]:
        words += f", {100 * setting['broken']:.0f} % broken"
    if setting["copies"] > 1:
        words += f", unlabeled rows {setting['copies']} times"
    return words


ENDS = {"before": ("by_rule_low", "by_rule_high"), "now": ("low", "high")}


def judged_pages() -> pd.DataFrame:
    """Return the pages of places.csv with what came out: which say something, which hold the truth
    and which promise more than that, before groups were judged and now.
    """
    rows = read("places.csv")
    rows = rows[rows["low"].notna()]
    fits = rows["verdict"] != "does not fit"
    possible = rows["by_rule_high"].ge(0) & rows["by_rule_low"].le(1)
    rows["said_before"] = fits & possible
    rows["said_now"] = ~rows["refused"].astype(bool)
    for when, (low, high) in ENDS.items():
        rows[f"holds_{when}"] = rows["truth"].between(rows[low], rows[high])
        rows[f"promises_{when}"] = rows["truth"] < rows[low]
    return rows


def places() -> dict[str, str]:
    """Return how often the intervals of pages hold where groups come from places, are broken or
    few, as a table and as numbers of sentences.
    """
    pages = judged_pages()
    body = []
    for (way, told), of_way in pages.groupby(["way", "told"], sort=False):
        words = "told" if told else "estimated"
        line = [PLACES[way], words, *_holding(of_way), *_promising(of_way)]
        line.append(f"{of_way['from_places'].astype(bool).sum()} of {len(of_way)}")
        for low, high in ENDS.values():
            width = of_way[high].clip(0, 1) - of_way[low].clip(0, 1)
            line.append(f"{100 * width.median():.0f}")
        body.append(line)

    heads = ["groups", "prior", "holds, before, A", "before, B", "now, A", "now, B"]
    heads += ["promises more, before", "now", "seen as places", "median width, before", "now"]
    stated = pages[pages["said_now"]]
    missed = stated[~stated["holds_now"]]
    broken = stated[stated["way"].str.startswith("broken")]
    is_worse = pages["truth"] < pages["constant"]
    has_word = pages["doubts"].fillna("").str.contains("not shown to be better|neither confirm")
    return {
        "places": markdown(heads, body),
        "places-tables": str(pages["set"].nunique()),
        "places-pages": str(len(stated)),
        "places-missed": f"{len(missed)} miss",
        "places-promise": str(missed["promises_now"].sum()),
        "places-splice": str((missed["set"] == "splice").sum()),
        "places-broken": f"{broken['promises_now'].sum()} of {len(broken)}",
        "places-worse": f"{has_word[is_worse].sum()} of {is_worse.sum()}",
        "places-better": f"{has_word[~is_worse].sum()} of {(~is_worse).sum()}",
    }


def _holding(pages: pd.DataFrame) -> list[str]:
    """Return how many pages hold the truth of those that say something, before and now, by half."""
    cells = []
    for when in ENDS:
        for half in ("A", "B"):
            stated = pages[pages[f"said_{when}"] & (pages["half"] == half)]
            cells.append(f"{stated[f'holds_{when}'].sum()} of {len(stated)}")
    return cells


def _promising(pages: pd.DataFrame) -> list[str]:
    """Return how many pages promise more than the truth, before and now."""
    return [str(pages.loc[pages[f"said_{when}"], f"promises_{when}"].sum()) for when in ENDS]


LEARNERS = ("student", "linear", "network", "abs", "copied", "uu", "labels")


def learners() -> dict[str, str]:
    """Return accuracies of learners by cell, and how far the default is from each."""
    cell = ["set", "sizes", "prior", "n"]
    rows = read("learners.csv")
    by_trial = rows.pivot(index=[*cell, "trial"], columns="learner", values="accuracy")
    means = by_trial.groupby(level=cell).mean()
    body = []
    for key, trials in by_trial.groupby(level=cell):
        name, sizes, prior, n = key
        n_known = trials["default"].notna().sum()
        accuracies = [accuracy(means.loc[key, learner]) for learner in ("default", *LEARNERS)]
        setting = [SETS.get(name, name), sizes.replace(" ", ", "), str(prior), f"{n:,}"]
        known = float(prior)
        constant = f"{100 * max(known, 1 - known):.1f}"
        body.append([*setting, f"{n_known} of {len(trials)}", *accuracies, constant])

    named = [f"`{name}`" for name in LEARNERS]
    head = ["set", "M", "prior", "n", "known", "default", *named, "constant"]
    return {"learners": markdown(head, body), "learners-paired": learners_paired(rows, by_trial)}


def accuracy(percent: float) -> str:
    """Return an accuracy as a table shows it."""
    return "–" if pd.isna(percent) else f"{percent:.1f}"


def learners_paired(rows: pd.DataFrame, by_trial: pd.DataFrame) -> str:
    """Return how far the default, told the prior, is from other learners; paired by cell."""
    cell = ["set", "sizes", "prior", "n"]
    named = rows[rows["learner"] == "default"].drop_duplicates(cell).set_index(cell)["chosen"]
    told = [row[named[key[:-1]]] for key, row in by_trial.iterrows()]
    by_trial = by_trial.assign(told=told)
    means = by_trial.groupby(level=cell).mean()
    without_prior = by_trial["told"] - by_trial["default"]
    leads = {"itself without the prior, where known": without_prior.groupby(level=cell).mean()}
    for name in LEARNERS:
        leads[f"`{name}`"] = means["told"] - means[name]
    best = means[list(LEARNERS[:3])].max(axis=1)
    leads["the best of the three learners"] = means["told"] - best

    body = []
    for name, lead in leads.items():
        n_cells = str(lead.notna().sum())
        body.append([name, n_cells, with_interval(lead.dropna()), f"{lead.min():.1f}"])
    return markdown(["the default less", "cells", "points", "lowest cell"], body)


# Those that compare learners by held-out losses.
COMPARING = ("least loss on a quarter", "left by one error", "stacking")
# Sets on which a network was better than the student.
FEW_OF_EACH = ("letter", "segment", "vowel")
# Rules of `learner="auto"` and what a document calls them.
RULES = {
    "auto": "the default",
    "student": "`student`",
    "linear": "`linear`",
    "network": "`network`",
    "by kind": "`student`, for pictures `network`",
    "mean, alike": "mean of the probabilities",
    "mean, default twice": "mean, `student` (pictures: `network`) twice",
    "least loss on a quarter": "least loss on a quarter of the tuples",
    "left by one error": "`student`, unless another is better by a standard error",
    "stacking": "weights by out-of-fold loss",
}


def default_rules() -> dict[str, str]:
    """Return how far each rule of the default is from the best learner of a draw, by half."""
    draws = read("default_rules.csv")
    folds = draws[draws["rule"] == "stacking"][["draw", "set"]]
    rules_on_all = [rule for rule in RULES if (draws["rule"] == rule).sum() > len(folds)]
    return {
        "default-rules": rules_by_half(draws, rules_on_all),
        "default-rules-kinds": rules_by_kind(draws),
        "default-rules-folds": rules_by_folds(draws),
        "default-rules-draws": f"{len(draws[['draw', 'set']].drop_duplicates())} draws",
        "default-rules-draws-folds": f"{len(folds)} of them",
        "default-rules-sets": str(draws["set"].nunique()),
    }


def rules_by_half(draws: pd.DataFrame, rules: list[str]) -> str:
    """Return the regret of rules on each half of the sets, and what a fit takes."""
    body = []
    for rule in rules:
        of_rule = draws[draws["rule"] == rule]
        line = [RULES[rule]]
        for half in ("A", "B"):
            regret = of_rule.loc[of_rule["half"] == half, "regret"]
            below = 100 * (regret < -4).mean()
            line += [f"{regret.mean():.2f}", f"{regret.min():.1f}", f"{below:.0f} %"]
        less = of_rule.loc[of_rule["half"] == "B", "less_student"]
        line.append(f"{less.mean():+.2f} ± {less.sem():.2f}")
        line.append(f"{of_rule['seconds'].mean():.1f}")
        body.append(line)
    of_half = ["mean", "worst", "more than 4 below"]
    head = ["rule", *(f"A: {name}" for name in of_half), *(f"B: {name}" for name in of_half)]
    return markdown([*head, "B: less `student`", "s"], body)


def rules_by_folds(draws: pd.DataFrame) -> str:
    """Return the regret of the rules that compare learners, on the draws in which each was also
    trained on four folds, and the student's there.
    """
    in_folds = draws[draws["rule"] == "stacking"][["draw", "set"]]
    compared = draws.merge(in_folds, on=["draw", "set"])
    counts = compared.groupby("rule").size()
    body = []
    for rule in ("student", *COMPARING):
        line = [RULES[rule]]
        for half in ("A", "B"):
            of_half = compared[(compared["rule"] == rule) & (compared["half"] == half)]
            less = of_half["less_student"]
            line += [f"{of_half['regret'].mean():.2f}", f"{of_half['regret'].min():.1f}"]
            line.append(f"{less.mean():+.2f} ± {less.sem():.2f}")
        seconds = compared.loc[compared["rule"] == rule, "seconds"].mean()
        body.append([*line, f"{seconds:.1f}"])
    assert counts[list(COMPARING)].nunique() == 1, "a rule lacks draws"
    of_half = ["mean", "worst", "less `student`"]
    heads = [f"{half}: {name}" for half in ("A", "B") for name in of_half]
    return markdown(["rule", *heads, "s"], body)


def rules_by_kind(draws: pd.DataFrame) -> str:
    """Return the mean regret of single learners and the default, by kind of data and n."""
    sizes = pd.cut(draws["n"], [0, 300, 1000, 5000], labels=["to 300", "to 1,000", "to 5,000"])
    rules = ["auto", "student", "linear", "network"]
    body = []
    for (kind, size), cell in draws.groupby([draws["kind"], sizes], observed=True):
        regrets = cell.groupby("rule")["regret"].mean().reindex(rules)
        shown = ["–" if pd.isna(regret) else f"{regret:.2f}" for regret in regrets]
        body.append([str(kind), str(size), str((cell["rule"] == "auto").sum()), *shown])
    return markdown(["kind", "n", "draws", *(RULES[rule] for rule in rules)], body)


def student_bases() -> str:
    """Return how far other ways to make a student are from the default one, by half of the sets."""
    draws = read("student_bases.csv")
    ways = [name.removesuffix("_s") for name in draws if name.endswith("_s")]
    body = []
    for way in ways:
        lead = draws[way] - draws["student"]
        line = [way]
        for half in ("A", "B"):
            of_half = lead[draws["half"] == half]
            line.append(f"{of_half.mean():+.2f} ± {of_half.sem():.2f}")
            line.append(f"{of_half.min():.1f}")
        few = lead[draws["set"].isin(FEW_OF_EACH)]
        body.append([*line, f"{few.mean():+.2f}", f"{draws[f'{way}_s'].mean():.1f}"])
    heads = ["A: mean", "A: lowest", "B: mean", "B: lowest", "letter, segment, vowel", "s"]
    return markdown(["in place of the student", *heads], body[1:])


def tables() -> dict[str, str]:
    """Return every table and number of the classifiers by its name."""
    draws = read("student_bases.csv")
    return {
        "coverage": coverage("auto"),
        "coverage-linear": coverage("linear"),
        **places(),
        "student-bases": student_bases(),
        "student-draws": f"{len(draws)} draws from {draws['set'].nunique()} tables",
        **learners(),
        **default_rules(),
    }
