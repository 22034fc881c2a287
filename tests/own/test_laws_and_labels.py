"""Laws, counts and labels of groups: what is read, what is refused, and that what the page says of
them is true.
"""

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
    each = np.broadcast_to(sizes, GROUPS)
    labels = generator.random(each.sum() + unlabeled) < 0.4
    frame = pd.DataFrame({"size": generator.normal(size=len(labels)) + 3 * labels})
    frame["noise"] = generator.normal(size=len(labels))
    frame["bag"] = [
        *np.repeat([f"bag {number}" for number in range(GROUPS)], each),
        *[None] * unlabeled,
    ]
    positives = pd.Series(labels).groupby(frame["bag"]).transform("sum")
    return frame.assign(positives=positives), labels


def small(values, sizes=(2, 2), rows=None):
    names = pd.Series([*"abcdef"][: len(sizes)]).repeat(sizes)
    if rows is None:
        rows = pd.Series(values, dtype=object).repeat(sizes)
    frame = pd.DataFrame(
        {"bag": [*names, None], "told": [*rows, None], "value": range(len(names) + 1)}
    )
    return read_groups(frame, "bag", count="told")


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
    assert [bound.tolist() for bound in data.counts] == [low, high]
    assert "told" not in data.rows and "told" in str(data.account)


def test_a_share_has_the_digits_that_it_is_written_with():
    data = small(["0.33", "0.7"], sizes=(3, 10))
    assert [bound.tolist() for bound in data.counts] == [[1, 7], [1, 7]]
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


def test_labels_name_the_groups_that_keep_a_law():
    frame = pd.DataFrame({"bag": [*"aaabbb"], "kept": ["yes"] * 3 + ["no"] * 3, "value": range(6)})
    data = read_groups(frame, "bag", label="kept", law="at-least-1")
    assert [bound.tolist() for bound in data.counts] == [[1, 0], [3, 0]]
    data = read_groups(frame, "bag", label="kept", law="dominant")
    assert [bound.tolist() for bound in data.counts] == [[2, 0], [3, 1]]
    for options, word in (
        ({}, "--law"),
        ({"law": "exactly-1"}, "one bound"),
        ({"law": "most"}, "most"),
    ):
        with pytest.raises(UserError, match=word):
            read_groups(frame, "bag", label="kept", **options)


def test_what_no_number_of_groups_tells_is_refused():
    similar = [2] * 100
    single = [1] * 100
    for law, sizes, prior, word in (
        ("similar", similar, None, "--positive-by"),
        ("similar", similar, 0.52, "too near"),
        ("between-1-2", [3] * 100, None, "--prior"),
        ("exactly-1", single, None, "--prior"),
        ("exactly-1", [3] * 100, 1 / 3, "TupleClassifier"),
    ):
        with pytest.raises(UserError, match=word):
            Rule(law).check_identified(sizes, prior, False, None)
    Rule("similar").check_identified(similar, None, False, "size")
    Rule("similar").check_identified(similar, 0.3, False, None)
    Rule("similar").check_identified([2] * 50 + [3] * 50, 0.3, False, None)
    Rule("exactly-1").check_identified([2] * 50 + [3] * 50, None, False, None)
    with pytest.raises(UserError, match="of which there are 7"):
        Rule("exactly-4").check([5] * 3 + [3] * 7, 10)


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


@pytest.mark.parametrize("known", ["exactly", "bags", "with unlabeled rows"])
def test_scores_from_counts_have_the_truth_in_their_intervals(known):
    """Of sixty draws, all but a few: a binomial count at 90 % falls below 45 once in ten thousand
    times.
    """
    generator = np.random.default_rng(1)
    recall = norm.sf(-0.4)
    false_alarms = norm.sf(1.1)
    truth = {
        "recall": recall,
        "auc": norm.cdf(1.5 / np.sqrt(2)),
        "balanced_accuracy": (recall + 1 - false_alarms) / 2,
        "precision": 0.3 * recall / (0.3 * recall + 0.7 * false_alarms),
    }
    inside = dict.fromkeys(truth, 0)
    for _ in range(60):
        sizes = generator.integers(2, 6, GROUPS)
        ids = np.repeat(np.arange(GROUPS), sizes)
        labels = generator.random(len(ids)) < 0.3
        high = low = np.bincount(ids, weights=labels, minlength=GROUPS).astype(int)
        if known == "bags":
            low, high = np.minimum(low, 1), np.where(low > 0, sizes, 0)
        if known == "with unlabeled rows":
            labels = np.append(labels, generator.random(200) < 0.3)
            ids = np.append(ids, [-1] * 200)
        scores = generator.normal(size=len(labels)) + 1.5 * labels - 1.1
        counted = Counted.of(number_groups(ids), Rule(counts=(low, high), column="told"), 0.3)
        for name, estimate in counted.measures(scores).items():
            inside[name] += estimate.low <= truth[name] <= estimate.high
    assert all(count >= 45 for count in inside.values()), inside


def test_groups_that_are_all_alike_tell_nothing():
    with pytest.raises(UserError, match="same share"):
        Counted.of(
            number_groups([0, 0, 1, 1]), Rule(counts=(np.ones(2, int), np.ones(2, int))), 0.5
        )


def test_python_takes_what_the_reader_gives():
    frame, labels = bags(unlabeled=300)
    data = read_groups(frame.drop(columns="positives"), "bag", law="at-least-1")
    assert data.law == Law.at_least(SIZE, 1) and data.counts is None
    data = read_groups(frame.iloc[: GROUPS * SIZE], "bag", count="positives")
    classifier = TupleClassifier(learner="linear", random_state=0)
    classifier.fit(data.members(data.rows), counts=data.counts)
    answers = classifier.predict(frame[["size", "noise"]])
    assert np.mean((answers > 0) == labels) > 0.9


def test_a_law_for_groups_of_several_sizes_is_a_name_that_a_file_keeps(tmp_path):
    frame, _ = bags(np.arange(GROUPS) % 2 + 2, unlabeled=300)
    frame = frame[frame.pop("positives").isin([np.nan, 1])]
    data = read_groups(frame, "bag", law="exactly-1")
    rows = data.rows.to_numpy()
    classifier = TupleClassifier(prior=0.4, law=data.law, learner="linear", random_state=0)
    classifier.fit(rows, data.groups)
    save(classifier, tmp_path / "own.skops")
    loaded = load(tmp_path / "own.skops")
    assert loaded.law_of(3) == Law.exactly(3, 1)
    for measure in (TupleClassifier.risk_estimate, scores_without_labels):
        assert measure(loaded, rows, data.groups) == measure(classifier, rows, data.groups)


@pytest.mark.slow
@pytest.mark.parametrize("told", ["bags", "a law for groups of several sizes"])
def test_the_command_learns_from_other_rules_and_says_so(told, tmp_path, capsys):
    sizes = np.arange(GROUPS) % 2 + 2
    if told == "bags":
        frame, labels = bags()
        frame["label"] = (frame.pop("positives") > 0).astype(int)
        options = ["--label", "label", "--law", "at-least-1"]
        words = "at least one of a group’s rows is positive"
    else:
        frame, labels = bags(sizes, unlabeled=300)
        kept = frame.pop("positives").isin([np.nan, 1])
        frame, labels = frame[kept], labels[kept]
        options = ["--law", "exactly-1", "--prior", "0.4"]
        words = "exactly one of each group’s rows is positive"
    frame.to_csv(tmp_path / "own.csv", index=False)
    out = tmp_path / "model"
    command = [
        "fit",
        str(tmp_path / "own.csv"),
        "--group",
        "bag",
        "--learner",
        "linear",
        "--out",
        str(out),
    ]
    assert cli.main([*command, *options]) == 0
    assert words in capsys.readouterr().err
    page = (out / "page.html").read_text(encoding="utf-8")
    assert words in page and "at least half" not in page
    assert (
        cli.main(
            ["predict", str(out), str(tmp_path / "own.csv"), "--out", str(tmp_path / "new.csv")]
        )
        == 0
    )
    assert words in capsys.readouterr().err
    answers = read_csv(tmp_path / "new.csv")
    assert np.mean((answers["answer"] > 0) == labels) > 0.85
    assert load(out / "classifier.skops")[-1].classes_.tolist() == [-1, 1]
