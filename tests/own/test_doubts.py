"""What the command and its page say where groups come from places, are broken, or tell no prior."""

import re
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from placed_groups import labels_of_groups

from mdpu.own import page as pages
from mdpu.own import study as studies
from mdpu.own.doubts import doubts_of
from mdpu.own.groups import read_groups
from mdpu.pipeline import cli

PRIOR = 0.4
GROUPS = 200
UNGROUPED = 300


@pytest.fixture(autouse=True)
def few_models(monkeypatch):
    """A study without its learning curve, which takes most of its time."""
    monkeypatch.setattr(studies, "large_parts", lambda parts, n_groups: [1])


def table(size=3, variance=0.0, broken=0.0, apart=3.0, n=GROUPS, prior=PRIOR):
    """Groups from places and unlabeled rows, with two columns that tell classes, and their
    labels.
    """
    rng = np.random.default_rng(0)
    members = labels_of_groups(rng, n, size, 200 * n, prior, variance, broken)
    unlabeled = rng.random(UNGROUPED) < prior
    labels = np.append(members.ravel(), unlabeled)

    noise = rng.normal(size=(len(labels), 2))
    columns = noise + np.outer(labels, [apart, apart / 2])
    frame = pd.DataFrame(columns, columns=["income", "age"])
    teams = [f"team {k}" for k in range(n)]
    frame["team"] = [*np.repeat(teams, size), *[None] * UNGROUPED]
    return frame, labels


def studied(frame, prior=PRIOR, **parameters):
    data = read_groups(frame, "team")
    return studies.study_groups(data, prior=prior, learner="linear", random_state=0, **parameters)


def commanded(frame, folder, *more):
    """The study of a table that the command was given."""
    source = folder / "people.csv"
    frame.to_csv(source, index=False)
    options = ["--group", "team", "--prior", str(PRIOR), "--learner", "linear", *more]
    with mock.patch.object(pages, "write_own_page", wraps=pages.write_own_page) as written:
        command = ["fit", str(source), *options, "--out", str(folder / "model")]
        assert cli.main(command) == 0
    return written.call_args.args[0]


def true_rate(study, labels):
    is_right = (study.held_out > 0) == labels
    return is_right[study.data.groups == -1].mean()


def kinds(study):
    return {doubt.kind for doubt in doubts_of(study)}


def text_of(study, kind):
    """Return the only doubt of a kind."""
    (text,) = [doubt.text for doubt in doubts_of(study) if doubt.kind == kind]
    return text


def page_of(study, folder):
    path = folder / "page.html"
    pages.write_own_page(study, path)
    text = path.read_text(encoding="utf-8")
    return re.sub(r"<[^>]*>|\s+", " ", text)


def test_groups_by_the_rule_raise_no_doubt_of_places(tmp_path):
    study = studied(table()[0])
    assert not kinds(study) & {"places", "columns", "constant"}
    assert not study.from_places
    assert "About" in page_of(study, tmp_path)


def test_the_command_names_places_and_gives_no_single_number(tmp_path, capsys):
    frame, labels = table(variance=0.6)
    study = commanded(frame, tmp_path)
    said = capsys.readouterr().err
    assert "warning: rows of a group are more alike than the rule allows" in said
    truth = true_rate(study, labels)
    assert study.from_places
    assert 1 - study.error.value > truth
    assert 1 - study.shown.high <= truth <= 1 - study.shown.low
    page = (tmp_path / "model" / "page.html").read_text(encoding="utf-8")
    assert "more cannot be said" in page
    assert "shares of positives differ" in page
    assert "precision: of the rows called positive" not in page


def test_columns_in_which_a_group_is_alike_are_named():
    frame, _ = table()
    rng = np.random.default_rng(1)
    frame["town"] = rng.normal(size=len(frame))
    frame.loc[: 3 * GROUPS - 1, "town"] += 3 * np.repeat(rng.normal(size=GROUPS), 3)
    study = studied(frame)
    assert study.places.columns_differ
    assert study.alike[0] == "town"
    assert "town" in text_of(study, "columns")


def test_a_prior_that_the_data_do_not_know_is_neither_confirmed_nor_refuted(tmp_path):
    frame, _ = table(n=40, apart=0.0, prior=0.7)
    study = studied(frame, prior=0.7)
    assert "neither confirm nor refute the prior 0.7" in text_of(study, "prior")
    assert "70.0 %" in text_of(study, "constant")
    assert "neither confirm nor refute" in page_of(study, tmp_path)


def test_a_prior_that_was_not_compared_raises_no_doubt_of_it():
    study = studied(table(n=60)[0], compare_prior=False)
    assert study.classifier.prior_estimate_ is None
    assert "prior" not in kinds(study)


def test_broken_groups_count_in_the_interval_and_can_be_given(tmp_path):
    frame, labels = table(broken=0.15)
    study = studied(frame)
    assert study.suspicion.number.low > 0
    assert study.shown.low < study.error.low
    assert 1 - study.shown.high <= true_rate(study, labels) <= 1 - study.shown.low
    option = re.search(r"--broken ([0-9.]+)", text_of(study, "broken"))
    share = float(option[1])
    assert 0.05 < share < 0.3
    assert "allows for that" in page_of(study, tmp_path)

    told = commanded(frame, tmp_path, "--broken", str(share))
    assert told.classifier.broken == share
    assert told.with_broken is None
    assert told.shown == told.error


def test_a_share_of_broken_groups_is_checked(tmp_path, capsys):
    source = tmp_path / "people.csv"
    frame, _ = table(n=40)
    frame.to_csv(source, index=False)
    options = ["--group", "team", "--prior", str(PRIOR), "--broken", "1.5"]
    assert cli.main(["fit", str(source), *options, "--out", str(tmp_path / "model")]) == 2
    assert "broken is 1.5" in capsys.readouterr().err


def test_known_numbers_of_positives_leave_nothing_to_compare_with():
    frame, labels = table(n=60)
    counts = labels[: 3 * 60].reshape(60, 3).sum(axis=1)
    frame["positives"] = pd.Series(np.repeat(counts, 3)).astype("Int64")
    data = read_groups(frame, "team", count="positives")
    study = studies.study_groups(data, learner="linear", random_state=0)
    assert study.places is None
    assert study.with_broken is None
    assert study.shown == study.error
