"""Laws, counts and labels of groups: what is read, what is refused, and that what the page says of
them is true.
"""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from mdpu.data import number_groups
from mdpu.errors import UserError
from mdpu.estimator import TupleClassifier
from mdpu.law import Law
from mdpu.own.counted import Counted
from mdpu.own.groups import read_groups
from mdpu.own.rules import Rule
from mdpu.own.study import study_groups
from mdpu.pipeline import cli
from mdpu.pipeline.files import read_csv
from mdpu.saving import load, save
from mdpu.scores import scores_without_labels

GROUPS = 150
SIZE = 4


def bags(sizes=SIZE, unlabeled=0):
    """Groups as they come, unlabeled rows, and the hidden labels; one column tells the classes
    apart.
    """
    generator = np.random.default_rng(0)
    names = [f"bag {number}" for number in range(GROUPS)]
    bag = [*np.repeat(names, sizes), *[None] * unlabeled]
    count = len(bag)
    labels = generator.random(count) < 0.4
    frame = pd.DataFrame({"size": generator.normal(size=count) + 3 * labels})
    frame["noise"] = generator.normal(size=count)
    frame["bag"] = bag
    by_bag = pd.Series(labels).groupby(frame["bag"])
    return frame.assign(positives=by_bag.transform("sum")), labels


def small(values, sizes=(2, 2), rows=None):
    names = pd.Series([*"abcdef"][: len(sizes)])
    if rows is None:
        rows = pd.Series(values, dtype=object).repeat(sizes)
    frame = pd.DataFrame({"told": [*rows, None]})
    frame["bag"] = [*names.repeat(sizes), None]
    frame["value"] = range(len(frame))
    return read_groups(frame, "bag", count="told")


def bounds(data):
    """Return the lowest and the highest counts of groups as lists."""
    low, high = data.counts
    return low.tolist(), high.tolist()


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([2, 0], [2, 0], [2, 0]),
        (["1-2", "0"], [1, 0], [2, 0]),
        (["1+", "0"], [1, 0], [2, 0]),
        (["0,5", "1"], [1, 2], [1, 2]),
        (["50%", "0 %"], [1, 0], [1, 0]),
        ([0.5, 1.0], [1, 2], [1, 2]),
    ],
)
def test_a_column_of_counts_is_read_in_every_form(values, low, high):
    data = small(values)
    assert bounds(data) == (low, high)
    assert "told" not in data.rows
    assert "told" in str(data.account)


def test_a_share_has_the_digits_that_it_is_written_with():
    data = small(["0.33", "0.7"], sizes=(3, 10))
    assert bounds(data) == ([1, 7], [1, 7])
    with pytest.raises(UserError, match=r"0\.4"):
        small(["0.4", "0.5"])


@pytest.mark.parametrize(
    ("values", "rows", "word"),
    [
        ([3, 0], None, "group a"),
        (["some", 0], None, "some"),
        ([1, 0], None, "--label"),
        ([2, 0], [2, 1, 0, 0], "group a"),
        ([2, 0], [2, None, None, None], "1 groups"),
    ],
)
def test_a_count_that_cannot_be_or_may_mean_something_else_is_refused(values, rows, word):
    with pytest.raises(UserError, match=word):
        small(values, rows=rows)


LABELLED = pd.DataFrame({"bag": [*"aaabbb"], "kept": ["yes"] * 3 + ["no"] * 3, "value": range(6)})


@pytest.mark.parametrize(
    ("law", "low", "high"),
    [
        ("at-least-1", [1, 0], [3, 0]),
        ("dominant", [2, 0], [3, 1]),
    ],
)
def test_labels_name_the_groups_that_keep_a_law(law, low, high):
    data = read_groups(LABELLED, "bag", label="kept", law=law)
    assert bounds(data) == (low, high)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "--law"),
        ({"law": "exactly-1"}, "one bound"),
        ({"law": "most"}, "most"),
    ],
)
def test_labels_need_a_law_of_one_bound(options, word):
    with pytest.raises(UserError, match=word):
        read_groups(LABELLED, "bag", label="kept", **options)


SINGLES = [1] * 100


PAIRS = [2] * 100


TRIPLES = [3] * 100


PAIRS_AND_TRIPLES = [2] * 50 + [3] * 50


@pytest.mark.parametrize(
    ("law", "sizes", "prior", "word"),
    [
        ("similar", PAIRS, None, "--positive-by"),
        ("similar", PAIRS, 0.52, "too near"),
        ("between-1-2", TRIPLES, None, "--prior"),
        ("exactly-1", SINGLES, None, "--prior"),
        ("exactly-1", TRIPLES, 1 / 3, "TupleClassifier"),
    ],
)
def test_what_no_number_of_groups_tells_is_refused(law, sizes, prior, word):
    with pytest.raises(UserError, match=word):
        Rule(law).check_identified(sizes, prior, False, None)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(), "at least half of each group’s rows are positive"),
        (Rule(dominant="negative"), "at least half of each group’s rows are negative"),
        (Rule("at-least-1"), "at least one of each group’s rows is positive"),
        (Rule("exactly-2"), "exactly 2 of each group’s rows are positive"),
        (Rule("between-1-2"), "1 to 2 of each group’s rows are positive"),
        (Rule("similar"), "all of each group’s rows are of one class"),
    ],
)
def test_a_rule_is_a_sentence(rule, words):
    assert str(rule) == words


@pytest.mark.parametrize(
    ("law", "sizes", "prior", "positive_by"),
    [
        ("similar", PAIRS, None, "size"),
        ("similar", PAIRS, 0.3, None),
        ("similar", PAIRS_AND_TRIPLES, 0.3, None),
        ("exactly-1", PAIRS_AND_TRIPLES, None, None),
    ],
)
def test_what_groups_tell_is_not_refused(law, sizes, prior, positive_by):
    Rule(law).check_identified(sizes, prior, False, positive_by)


def test_groups_that_are_too_small_for_a_law_are_counted():
    with pytest.raises(UserError, match="of which there are 7"):
        Rule("exactly-4").check([5] * 3 + [3] * 7, 10)


def draw_counted(known, generator):
    """Draw groups of which counts are known, and scores and whatever else is `known` of them."""
    sizes = generator.integers(2, 6, GROUPS)
    ids = np.repeat(np.arange(GROUPS), sizes)
    labels = generator.random(len(ids)) < 0.3
    high = low = np.bincount(ids, weights=labels, minlength=GROUPS).astype(int)
    if known == "bags":
        low = np.minimum(low, 1)
        high = np.where(low > 0, sizes, 0)
    if known == "with unlabeled rows":
        labels = np.append(labels, generator.random(200) < 0.3)
        ids = np.append(ids, [-1] * 200)
    scores = generator.normal(size=len(labels)) + 1.5 * labels - 1.1
    rule = Rule(counts=(low, high), column="told")
    return Counted.of(number_groups(ids), rule, 0.3), scores


@pytest.mark.parametrize("known", ["exactly", "bags", "with unlabeled rows"])
def test_scores_from_counts_have_the_truth_in_their_intervals(known):
    """Of sixty draws, all but a few: a binomial count at 90 % falls below 45 once in ten thousand
    times.
    """
    recall = norm.sf(-0.4)
    false_alarms = norm.sf(1.1)
    truth = {
        "recall": recall,
        "auc": norm.cdf(1.5 / np.sqrt(2)),
        "balanced_accuracy": (recall + 1 - false_alarms) / 2,
        "precision": 0.3 * recall / (0.3 * recall + 0.7 * false_alarms),
    }
    generator = np.random.default_rng(1)
    inside = Counter()
    for _ in range(60):
        counted, scores = draw_counted(known, generator)
        for name, estimate in counted.measures(scores).items():
            inside[name] += estimate.low <= truth[name] <= estimate.high
    for name in truth:
        assert inside[name] >= 45


def test_a_fold_without_a_group_of_one_kind_says_nothing_of_columns():
    """Four negative groups of forty are in four folds of five at most."""
    generator = np.random.default_rng(0)
    positive = np.repeat(np.arange(40) >= 4, 4)
    frame = pd.DataFrame({"size": generator.normal(size=160) + 3 * positive})
    frame["bag"] = np.repeat([f"bag {number}" for number in range(40)], 4)
    frame["label"] = positive.astype(int)
    data = read_groups(frame, "bag", label="label", law="at-least-1")
    study = study_groups(data, learner="linear", curve_parts=(1,), random_state=0)
    assert study.importance["loss"].item() > 0.1


def test_groups_that_are_all_alike_tell_nothing():
    ones = np.ones(2, int)
    with pytest.raises(UserError, match="same share"):
        Counted.of(number_groups([0, 0, 1, 1]), Rule(counts=(ones, ones)), 0.5)


def test_the_reader_gives_a_law_as_python_takes_it():
    frame, _ = bags(unlabeled=300)
    data = read_groups(frame.drop(columns="positives"), "bag", law="at-least-1")
    assert data.law == Law.at_least(SIZE, 1)
    assert data.counts is None


def test_the_reader_gives_counts_as_python_takes_them():
    frame, labels = bags()
    data = read_groups(frame, "bag", count="positives")
    classifier = TupleClassifier(learner="linear", random_state=0)
    classifier.fit(data.members(data.rows), counts=data.counts)
    answers = classifier.predict(data.rows)
    assert np.mean((answers > 0) == labels) > 0.9


def bags_with_one_positive():
    """Pairs and triples of which one is positive, unlabeled rows, and the hidden labels."""
    sizes = np.arange(GROUPS) % 2 + 2
    frame, labels = bags(sizes, unlabeled=300)
    is_kept = frame.pop("positives").isin([np.nan, 1])
    return frame[is_kept], labels[is_kept]


def test_a_law_for_groups_of_several_sizes_is_a_name_that_a_file_keeps(tmp_path):
    frame, _ = bags_with_one_positive()
    data = read_groups(frame, "bag", law="exactly-1")
    rows = data.rows.to_numpy()
    classifier = TupleClassifier(prior=0.4, law=data.law, learner="linear", random_state=0)
    classifier.fit(rows, data.groups)

    path = tmp_path / "own.skops"
    save(classifier, path)
    loaded = load(path)

    assert loaded.law_of(3) == Law.exactly(3, 1)
    for measure in (TupleClassifier.risk_estimate, scores_without_labels):
        expected = measure(classifier, rows, data.groups)
        assert measure(loaded, rows, data.groups) == expected


@pytest.mark.slow
@pytest.mark.parametrize("told", ["bags", "a law for groups of several sizes"])
def test_the_command_learns_from_other_rules_and_says_so(told, tmp_path, capsys):
    if told == "bags":
        frame, labels = bags()
        frame["label"] = (frame.pop("positives") > 0).astype(int)
        options = ["--label", "label", "--law", "at-least-1"]
        words = "at least one of a group’s rows is positive"
    else:
        frame, labels = bags_with_one_positive()
        options = ["--law", "exactly-1", "--prior", "0.4"]
        words = "exactly one of each group’s rows is positive"
    source = tmp_path / "own.csv"
    frame.to_csv(source, index=False)

    model = tmp_path / "model"
    options += ["--group", "bag", "--learner", "linear", "--out", str(model)]
    assert cli.main(["fit", str(source), *options]) == 0
    assert words in capsys.readouterr().err
    page = (model / "page.html").read_text(encoding="utf-8")
    assert words in page
    assert "at least half" not in page

    out = tmp_path / "new.csv"
    assert cli.main(["predict", str(model), str(source), "--out", str(out)]) == 0
    assert words in capsys.readouterr().err
    answers = read_csv(out)["answer"]
    assert np.mean((answers > 0) == labels) > 0.85
    assert load(model / "classifier.skops")[-1].classes_.tolist() == [-1, 1]
