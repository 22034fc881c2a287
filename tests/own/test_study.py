"""A classifier from files by the command line, and its page in a browser."""

import warnings
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from blobs import TEST_IMAGES, TEST_LABELS, draw_blobs
from browsing import click, lay_out, set_up, violations, visit
from PIL import Image
from scipy.special import expit

from mdpu import scores
from mdpu.data import UNLABELED
from mdpu.estimator import MDPUClassifier, Network
from mdpu.own import page as own
from mdpu.own import study as classify
from mdpu.own.groups import read_groups
from mdpu.pipeline import cli
from mdpu.pipeline.files import read_csv

HOSTILE = "<script>alert(1)</script> & 'x'"
GROUPS = 240
BROKEN = 12
UNGROUPED = 400


def people():
    """Triples of which the last twelve break the rule, unlabeled rows at 0.4, categories, gaps,
    names; the labels.
    """
    generator = np.random.default_rng(0)
    triples = generator.random((2000, 3)) < 0.4
    kept = triples.sum(axis=1) >= 2
    triples = np.concatenate([triples[kept][: GROUPS - BROKEN], triples[~kept][:BROKEN]])
    labels = np.concatenate([triples.ravel(), generator.random(UNGROUPED) < 0.4])
    frame = pd.DataFrame(
        {
            HOSTILE: generator.normal(size=len(labels)) + 3 * labels,
            "noise": generator.normal(size=len(labels)),
        }
    )
    frame["kind"] = np.where(generator.random(len(labels)) < 0.2 + 0.6 * labels, "round", "flat")
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        generator.integers(900, size=len(labels)), "D"
    )
    frame["who"] = [f"person {row}" for row in range(len(labels))]
    frame.loc[generator.random(len(labels)) < 0.1, ["noise", "kind"]] = None
    numbers = np.arange(3 * GROUPS) // 3
    ids = [f"<b>group</b> {number}" for number in numbers] + [None] * UNGROUPED
    return frame.assign(team=ids), labels


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A folder with a table and what the command made of it, and the study that its page shows."""
    folder = tmp_path_factory.mktemp("own")
    people()[0].to_csv(folder / "people.csv", index=False)
    options = [
        "--group",
        "team",
        "--prior",
        "0.4",
        "--learner",
        "linear",
        "--out",
        str(folder / "model"),
    ]
    with mock.patch.object(own, "write_own_page", wraps=own.write_own_page) as written:
        assert cli.main(["fit", str(folder / "people.csv"), *options]) == 0
    return folder, written.call_args.args[0]


@pytest.fixture(scope="module")
def made(both):
    return both[0]


@pytest.fixture(scope="module")
def study(both):
    return both[1]


def test_new_rows_get_their_answers(made, capsys):
    frame, labels = people()
    frame["kind"] = frame["kind"].replace("flat", "never seen")
    # a column of their own, which stays
    frame["code"] = np.where(frame["noise"].isna(), np.nan, 123456789013)
    frame.to_parquet(made / "new.parquet")
    assert (
        cli.main(
            [
                "predict",
                str(made / "model"),
                str(made / "new.parquet"),
                "--out",
                str(made / "new.csv"),
            ]
        )
        == 0
    )
    answers = read_csv(made / "new.csv")
    assert (
        list(answers) == [*frame, "answer", "probability"] and answers["code"].max() == 123456789013
    )
    assert np.mean((answers["answer"] > 0) == labels) > 0.9
    assert ((answers["probability"] > 0.5) == (answers["answer"] > 0)).all()
    capsys.readouterr()
    for wrong, word in (
        (frame.drop(columns="noise"), "noise"),
        (frame.assign(noise="loud"), "loud"),
        (frame.assign(noise=np.inf), "infinite"),
        (frame.assign(answer=1), "answer"),
        (frame.head(0), "no rows"),
    ):
        wrong.to_parquet(made / "wrong.parquet")
        options = [str(made / "wrong.parquet"), "--out", str(made / "x.csv")]
        assert cli.main(["predict", str(made / "model"), *options]) == 2
        assert word in capsys.readouterr().err
        assert not (made / "x.csv").exists()


def test_what_is_said_without_labels_is_true(study):
    labels = people()[1]
    unlabeled = study.data.groups == UNLABELED
    answers = study.held_out > 0
    probabilities = expit(study.held_out)
    assert study.error.low < np.mean(answers[unlabeled] != labels[unlabeled]) < study.error.high
    assert [n for n, _ in study.curve] == [24, 48, 96, 192]
    assert [column.name for column in study.data.account.left_out] == ["who"]
    order = np.argsort(probabilities[unlabeled])
    shares = [
        labels[unlabeled][part].mean() for part in np.array_split(order, len(study.calibration))
    ]
    inside = (study.calibration["low"] - 0.03 <= shares) & (
        shares <= study.calibration["high"] + 0.03
    )
    assert inside.sum() >= 7 and study.calibration["rows"].sum() == UNGROUPED
    lost = study.importance.set_index("column")["loss"]
    assert lost.idxmax() == HOSTILE and lost[HOSTILE] > 0.1 and abs(lost["noise"]) < 0.02
    assert study.suspicion.number.low <= BROKEN <= study.suspicion.number.high


def test_the_page_has_the_account_and_says_which_row_of_the_file_is_suspicious(made, study):
    page = (made / "model" / "page.html").read_text(encoding="utf-8")
    account = study.data.account
    assert (account.files_read, account.rows, account.groups) == (1, 3 * GROUPS + UNGROUPED, GROUPS)
    for line in (f"rows read: {account.rows}", f"groups: {account.groups}", "left out: who"):
        assert line in page
    suspects = own._suspects(study, own._headings(study, study.importance["column"].tolist()))
    lines = (made / "people.csv").read_text(encoding="utf-8").splitlines()
    for group in suspects:
        for member in group["members"]:
            assert lines[member["line"] - 1].endswith(group["name"])
            # who, which the training left out
            assert member["values"][0] in lines[member["line"] - 1]


def test_the_planted_groups_are_the_most_suspicious(made):
    ranked = read_csv(made / "model" / "groups.csv")
    numbers = ranked["group"].str.rpartition(" ")[2].astype(int)
    assert len(ranked) == GROUPS and (numbers.head(2 * BROKEN) >= GROUPS - BROKEN).sum() >= 8
    assert ranked["probability"].is_monotonic_decreasing
    lines = (made / "people.csv").read_text(encoding="utf-8").splitlines()
    assert all(
        lines[line - 1].endswith(name)
        for line, name in zip(ranked["line"], ranked["group"], strict=True)
    )


@pytest.mark.parametrize("is_shown", [False, True])
def test_that_groups_break_the_rule_is_said_only_beyond_chance(is_shown, study, tmp_path):
    number = scores.Estimate(20.4, 7.0 if is_shown else 0.0, 45.0, 0.95)
    own.write_own_page(
        replace(study, suspicion=replace(study.suspicion, number=number)), tmp_path / "page.html"
    )
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("About 20 of 240 groups break the rule" in page) == is_shown
    assert ("not shown that any group breaks the rule" in page) != is_shown
    assert ("times likelier if broken" in page) != is_shown


def test_repeated_unlabeled_rows_stand_once(made):
    table = pd.read_csv(made / "people.csv")
    alone = table[table["team"].isna()]
    data = read_groups(pd.concat([table, alone, alone], ignore_index=True), "team")
    with pytest.warns(UserWarning, match=str(UNGROUPED)):
        pipeline = classify._estimator(data, ["noise"], MDPUClassifier(prior=0.4, learner="linear"))
        kept, rows = classify._without_repeats(data, pipeline.fit(data.rows, data.groups))
    assert (kept.groups == UNLABELED).sum() == UNGROUPED and len(
        kept.rows
    ) == 3 * GROUPS + UNGROUPED
    left_out = classify.with_columns(data, ["noise"]).account.left_out
    assert [column.name for column in left_out] == ["noise", "who"]
    assert {*rows} == {HOSTILE, "since", "kind_flat", "kind_round", "kind_missing"}


def test_a_prior_that_nothing_tells_ends_in_one_sentence(made, capsys):
    frame = people()[0].drop(columns=[HOSTILE, "kind"])
    frame.to_csv(made / "noise.csv", index=False)
    options = ["--group", "team", "--learner", "linear", "--out", str(made / "none")]
    assert cli.main(["fit", str(made / "noise.csv"), *options]) == 2
    *report, last = capsys.readouterr().err.splitlines()
    assert (
        last.startswith("error: ")
        and "prior" in last
        and any(f"{GROUPS} groups" in line for line in report)
    )
    assert not (made / "none").exists()


def test_of_many_columns_those_that_go_along_with_the_answers_are_looked_at(made, monkeypatch):
    monkeypatch.setattr(classify, "LOOKED_AT", 2)
    data = read_groups(people()[0], "team")
    searched = mock.Mock(wraps=classify.scores.without_repeats)
    monkeypatch.setattr(classify.scores, "without_repeats", searched)
    parameters = {"prior": 0.4, "compare_prior": False, "learner": "linear", "random_state": 0}
    study = classify.study_groups(data, **parameters)
    assert study.importance["column"].tolist() == [HOSTILE, "kind"] and study.n_columns == 4
    assert searched.call_count < 2 * classify.FOLDS  # once a fold, not once a column
    own.write_own_page(study, made / "some.html")
    sentence = "Of 4 columns, the 2 "
    assert sentence in (made / "some.html").read_text(encoding="utf-8")
    assert sentence not in (made / "model" / "page.html").read_text(encoding="utf-8")


def test_a_column_is_ranked_by_any_shape_and_the_largest_of_its_parts():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=500)
    noise = generator.normal(size=500)
    rows = np.stack([noise, np.abs(scores), scores > 1, scores + 3, np.ones(500)], axis=1)
    rows[::9, 1] = np.nan
    parts = {"noise": [0], "bowl": [1], "parts": [4, 2, 3], "constant": [4]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classify.rank_columns(rows, parts, scores + np.abs(scores))[:2] == ["parts", "bowl"]
        assert classify.rank_columns(rows, parts, scores)[-1] == "constant"


def test_folds_of_a_table_with_gaps_are_trained_where_the_network_is_chosen():
    data = read_groups(people()[0], "team")
    parameters = {"prior": 0.4, "compare_prior": False, "random_state": 0}
    study = classify.study_groups(data, learner=Network(n_epochs=2, hidden=(5,)), **parameters)
    assert data.report.missing and study.classifier.learner_.name == "network"
    assert np.isfinite(study.held_out).all()


def test_a_column_that_leaks_is_named_with_the_option_that_leaves_it_out(made, capsys):
    frame = people()[0].drop(columns=["who", "since"])
    grouped = frame["team"].notna()
    frame["channel survey"] = np.where(
        grouped, "phone", np.where(frame["noise"] > 0, "web", "phone")
    )
    frame.to_csv(made / "leak.csv", index=False)
    options = ["--group", "team", "--learner", "linear", "--out", str(made / "none")]
    assert cli.main(["fit", str(made / "leak.csv"), *options]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "--drop 'channel survey'" in last and "more" not in last.partition("leave out")[2]


def test_a_folder_of_pictures_becomes_a_classifier(tmp_path):
    images, labels = draw_blobs("train", 700)
    positive = np.flatnonzero(labels > 0)
    negative = np.flatnonzero(labels < 0)
    places = {
        f"album {n}/{k}": own[n]
        for n in range(60)
        for k, own in enumerate((positive, negative, positive[60:]))
    }
    places |= {f"{n}": n for n in range(500, 620)}
    for name, place in places.items():
        (tmp_path / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[place]).save(tmp_path / "photos" / f"{name}.png")
    (tmp_path / "new").mkdir()
    for place, image in enumerate(TEST_IMAGES):
        large = Image.fromarray(image).resize((12, 12), Image.Resampling.NEAREST)
        large.convert("RGB").save(tmp_path / "new" / f"{place:03}.png")
    options = ["--prior", "0.4", "--learner", "linear", "--out", str(tmp_path / "model")]
    assert cli.main(["fit", str(tmp_path / "photos"), *options]) == 0
    page = (tmp_path / "model" / "page.html").read_text()
    assert page.count('class="thumb"') == 60
    options = [str(tmp_path / "new"), "--out", str(tmp_path / "new.csv")]
    assert cli.main(["predict", str(tmp_path / "model"), *options]) == 0
    answers = read_csv(tmp_path / "new.csv")
    assert answers["file"][3] == "003.png"
    assert np.mean(answers["answer"] == TEST_LABELS) > 0.9


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def page(browser, made):
    set_up(browser)
    visit(browser, (made / "model" / "page.html").as_uri(), scripted=False)
    yield browser
    assert browser.get_log("browser") == []


@pytest.mark.slow
def test_the_page_is_whole_and_takes_names_as_text(page):
    assert "% of its answers are right" in page.find_element("id", "headline").text
    for link in page.find_elements("css selector", "nav a"):
        click(link)
        assert page.find_element("css selector", f"{link.get_attribute('hash')} h3").is_displayed()
    loaded = page.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [place for place in loaded if not place.startswith("data:")] == []
    assert not page.find_elements("tag name", "script")
    assert HOSTILE in page.find_element("id", "columns").text
    suspects = page.find_elements("css selector", "#suspicious tbody")
    assert len(suspects) == 20 and "<b>group</b>" in suspects[0].text
    broken = page.execute_script(
        "return [...document.images].filter(one => !one.naturalWidth || !one.alt).length"
    )
    assert broken == 0


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark"), (320, "light")])
def test_the_page_is_for_every_reader(page, checkers, width, scheme):
    set_up(page, width, scheme)
    lay_out(page)
    assert violations(page, checkers) == []
    root = "document.documentElement"
    assert page.execute_script(f"return {root}.scrollWidth <= {root}.clientWidth")
