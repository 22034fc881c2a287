"""A classifier from files by the command line, and its page in a browser."""

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
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network
from mdpu.own import page as own
from mdpu.own import study as studies
from mdpu.own.commands import with_columns
from mdpu.own.cross_validation import FOLDS
from mdpu.own.groups import read_groups
from mdpu.own.importance import rank_columns
from mdpu.own.study import study_groups
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
    keeps = triples.sum(axis=1) >= 2
    triples = np.concatenate([triples[keeps][: GROUPS - BROKEN], triples[~keeps][:BROKEN]])
    labels = np.append(triples.ravel(), generator.random(UNGROUPED) < 0.4)

    count = len(labels)
    frame = pd.DataFrame(
        {
            HOSTILE: generator.normal(size=count) + 3 * labels,
            "noise": generator.normal(size=count),
        }
    )
    is_round = generator.random(count) < 0.2 + 0.6 * labels
    frame["kind"] = np.where(is_round, "round", "flat")
    days = pd.to_timedelta(generator.integers(900, size=count), "D")
    frame["since"] = pd.Timestamp("2020-01-01") + days
    frame["who"] = [f"person {row}" for row in range(count)]
    frame.loc[generator.random(count) < 0.1, ["noise", "kind"]] = None

    numbers = np.arange(3 * GROUPS) // 3
    teams = [f"<b>group</b> {number}" for number in numbers]
    return frame.assign(team=teams + [None] * UNGROUPED), labels


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A folder with a table and what the command made of it, and the study that its page shows."""
    folder = tmp_path_factory.mktemp("own")
    frame, _ = people()
    options = ["--prior", "0.4"]
    with mock.patch.object(own, "write_own_page", wraps=own.write_own_page) as written:
        assert fit(frame, folder / "people.csv", folder / "model", *options) == 0
    return folder, written.call_args.args[0]


@pytest.fixture(scope="module")
def made(both):
    return both[0]


@pytest.fixture(scope="module")
def study(both):
    return both[1]


def fit(frame, path, out, *options):
    """Write a table of teams, let the command learn from it, and return its exit status."""
    frame.to_csv(path, index=False)
    usual = ["--group", "team", "--learner", "linear", "--out", str(out)]
    return cli.main(["fit", str(path), *usual, *options])


def predict(frame, path, model, out):
    """Write a table of new rows, let the command predict, and return its exit status."""
    frame.to_parquet(path)
    return cli.main(["predict", str(model), str(path), "--out", str(out)])


def test_new_rows_get_their_answers(made):
    frame, labels = people()
    frame["kind"] = frame["kind"].replace("flat", "never seen")
    # a column of their own, which stays
    frame["code"] = np.where(frame["noise"].isna(), np.nan, 123456789013)

    assert predict(frame, made / "new.parquet", made / "model", made / "new.csv") == 0

    answers = read_csv(made / "new.csv")
    assert list(answers) == [*frame, "answer", "probability"]
    assert answers["code"].max() == 123456789013
    is_positive = answers["answer"] > 0
    assert np.mean(is_positive == labels) > 0.9
    assert is_positive.equals(answers["probability"] > 0.5)


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda frame: frame.drop(columns="noise"), "noise"),
        (lambda frame: frame.assign(noise="loud"), "loud"),
        (lambda frame: frame.assign(noise=np.inf), "infinite"),
        (lambda frame: frame.assign(answer=1), "answer"),
        (lambda frame: frame.head(0), "no rows"),
    ],
)
def test_new_rows_that_cannot_be_answered_end_in_one_sentence(made, capsys, spoil, word):
    frame, _ = people()
    out = made / "x.csv"
    assert predict(spoil(frame), made / "wrong.parquet", made / "model", out) == 2
    assert word in capsys.readouterr().err
    assert not out.exists()


def test_what_is_said_without_labels_is_true(study):
    unlabeled = study.data.groups == UNLABELED
    labels = people()[1][unlabeled]
    scores = study.held_out[unlabeled]
    error = np.mean((scores > 0) != labels)
    assert study.error.low < error < study.error.high

    bins = np.array_split(np.argsort(expit(scores)), len(study.calibration))
    shares = np.array([labels[rows].mean() for rows in bins])
    is_above = study.calibration["low"] - 0.03 <= shares
    is_below = shares <= study.calibration["high"] + 0.03
    assert (is_above & is_below).sum() >= 7
    assert study.calibration["rows"].sum() == UNGROUPED
    assert study.suspicion.number.low <= BROKEN <= study.suspicion.number.high


def test_a_study_has_a_learning_curve_and_ranks_columns(study):
    assert [n for n, _ in study.curve] == [24, 48, 96, 192]
    assert [column.name for column in study.data.account.left_out] == ["who"]
    lost = study.importance.set_index("column")["loss"]
    assert lost.idxmax() == HOSTILE
    assert lost[HOSTILE] > 0.1
    assert abs(lost["noise"]) < 0.02


def lines_of(made):
    """Return the lines of the table, so that line n is at n."""
    return ["", *(made / "people.csv").read_text(encoding="utf-8").splitlines()]


def test_the_page_has_the_account(made, study):
    page = (made / "model" / "page.html").read_text(encoding="utf-8")
    account = study.data.account
    assert account.files_read == 1
    assert account.rows == 3 * GROUPS + UNGROUPED
    assert account.groups == GROUPS
    for line in (f"rows read: {account.rows}", f"groups: {account.groups}", "left out: who"):
        assert line in page


def test_the_page_says_which_row_of_the_file_is_suspicious(made, study):
    headings = own._headings(study, study.importance["column"].tolist())
    suspects = own._suspects(study, headings)
    lines = lines_of(made)
    for group in suspects:
        for member in group["members"]:
            line = lines[member["line"]]
            assert line.endswith(group["name"])
            # who, which the training left out
            assert member["values"][0] in line


def test_the_planted_groups_are_the_most_suspicious(made):
    ranked = read_csv(made / "model" / "groups.csv")
    assert len(ranked) == GROUPS
    assert ranked["probability"].is_monotonic_decreasing
    numbers = ranked["group"].str.rpartition(" ")[2].astype(int)
    assert (numbers.head(2 * BROKEN) >= GROUPS - BROKEN).sum() >= 8

    lines = lines_of(made)
    for line, name in zip(ranked["line"], ranked["group"], strict=True):
        assert lines[line].endswith(name)


@pytest.mark.parametrize("is_shown", [False, True])
def test_that_groups_break_the_rule_is_said_only_beyond_chance(is_shown, study, tmp_path):
    low = 7.0 if is_shown else 0.0
    number = scores.Estimate(20.4, low, 45.0, 0.95)
    suspicion = replace(study.suspicion, number=number)
    path = tmp_path / "page.html"
    own.write_own_page(replace(study, suspicion=suspicion), path)

    page = path.read_text(encoding="utf-8")
    assert ("About 20 of 240 groups break the rule" in page) == is_shown
    assert ("not shown that any group breaks the rule" in page) != is_shown
    assert ("times likelier if broken" in page) != is_shown


def test_repeated_unlabeled_rows_stand_once(made):
    table = pd.read_csv(made / "people.csv")
    alone = table[table["team"].isna()]
    thrice = pd.concat([table, alone, alone], ignore_index=True)
    data = read_groups(thrice, "team")
    classifier = MDPUClassifier(prior=0.4, learner="linear")

    with pytest.warns(UserWarning, match=str(UNGROUPED)):
        pipeline = studies._estimator(data, ["noise"], classifier).fit(data.rows, data.groups)
        kept, rows = studies._without_repeats(data, pipeline)

    assert (kept.groups == UNLABELED).sum() == UNGROUPED
    assert len(kept.rows) == 3 * GROUPS + UNGROUPED
    assert {*rows} == {HOSTILE, "since", "kind_flat", "kind_round", "kind_missing"}


def test_columns_that_are_dropped_are_left_out(study):
    left_out = with_columns(study.data, ["noise"]).account.left_out
    assert [column.name for column in left_out] == ["noise", "who"]


def test_a_prior_that_nothing_tells_ends_in_one_sentence(made, capsys):
    frame, _ = people()
    noise = frame.drop(columns=[HOSTILE, "kind"])
    assert fit(noise, made / "noise.csv", made / "none") == 2
    *report, last = capsys.readouterr().err.splitlines()
    assert last.startswith("error: ")
    assert "prior" in last
    assert any(f"{GROUPS} groups" in line for line in report)
    assert not (made / "none").exists()


PARAMETERS = {"prior": 0.4, "compare_prior": False, "random_state": 0}


def test_of_many_columns_those_that_go_along_with_the_answers_are_looked_at(made, monkeypatch):
    frame, _ = people()
    searched = mock.Mock(wraps=scores.without_repeats)
    monkeypatch.setattr(scores, "without_repeats", searched)

    data = read_groups(frame, "team")
    study = study_groups(data, most_columns=2, learner="linear", **PARAMETERS)

    assert study.importance["column"].tolist() == [HOSTILE, "kind"]
    assert study.n_columns == 4
    assert searched.call_count < 2 * FOLDS  # once a fold, not once a column
    own.write_own_page(study, made / "some.html")
    sentence = "Of 4 columns, the 2 "
    assert sentence in (made / "some.html").read_text(encoding="utf-8")
    assert sentence not in (made / "model" / "page.html").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("error")
def test_a_column_is_ranked_by_any_shape_and_the_largest_of_its_parts():
    generator = np.random.default_rng(0)
    scores = generator.normal(size=500)
    noise = generator.normal(size=500)
    bowl = np.abs(scores)
    constant = np.ones(500)
    rows = np.column_stack([noise, bowl, scores > 1, scores + 3, constant])
    rows[::9, 1] = np.nan
    parts = {"noise": [0], "bowl": [1], "parts": [4, 2, 3], "constant": [4]}

    ranked = rank_columns(rows, parts, scores + bowl)
    assert ranked[:2] == ["parts", "bowl"]
    assert rank_columns(rows, parts, scores)[-1] == "constant"


def test_folds_of_a_table_with_gaps_are_trained_where_the_network_is_chosen():
    frame, _ = people()
    data = read_groups(frame, "team")
    network = Network(n_epochs=2, hidden=(5,))
    study = study_groups(data, learner=network, **PARAMETERS)
    assert data.report.missing
    assert study.classifier.learner_.name == "network"
    assert np.isfinite(study.held_out).all()


def test_a_column_that_leaks_is_named_with_the_option_that_leaves_it_out(made, capsys):
    frame = people()[0].drop(columns=["who", "since"])
    is_web = frame["team"].isna() & (frame["noise"] > 0)
    frame["channel survey"] = np.where(is_web, "web", "phone")
    assert fit(frame, made / "leak.csv", made / "none") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "--drop 'channel survey'" in last
    assert "more" not in last.partition("leave out")[2]


def save_albums(folder):
    """Save albums of three pictures, two of them positive, and pictures beside them."""
    images, labels = draw_blobs("train", 700)
    positive = np.flatnonzero(labels > 0)
    negative = np.flatnonzero(labels < 0)
    places = {str(place): place for place in range(500, 620)}
    for number in range(60):
        members = (positive[number], negative[number], positive[60 + number])
        for place, member in enumerate(members):
            places[f"album {number}/{place}"] = member
    for name, place in places.items():
        path = folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[place]).save(path)


def save_large_pictures(folder, images):
    """Save pictures in colour, of twice the size."""
    folder.mkdir()
    for place, image in enumerate(images):
        large = Image.fromarray(image).resize((12, 12), Image.Resampling.NEAREST)
        large.convert("RGB").save(folder / f"{place:03}.png")


def test_a_folder_of_pictures_becomes_a_classifier(tmp_path):
    photos = tmp_path / "photos"
    model = tmp_path / "model"
    save_albums(photos)
    options = ["--prior", "0.4", "--learner", "linear", "--out", str(model)]
    assert cli.main(["fit", str(photos), *options]) == 0
    page = (model / "page.html").read_text()
    assert page.count('class="thumb"') == 60

    new = tmp_path / "new"
    out = tmp_path / "new.csv"
    save_large_pictures(new, TEST_IMAGES)
    assert cli.main(["predict", str(model), str(new), "--out", str(out)]) == 0
    answers = read_csv(out)
    assert answers["file"][3] == "003.png"
    assert np.mean(answers["answer"] == TEST_LABELS) > 0.9


def test_pictures_of_one_channel_are_shown(tmp_path):
    images, labels = draw_blobs("own", 700)
    positive = np.flatnonzero(labels > 0)[:120].reshape(60, 2)
    path = tmp_path / "pictures.npz"
    np.savez(path, tuples=images[positive][..., None], unlabeled=images[500:620][..., None])
    options = ["--prior", "0.4", "--learner", "linear", "--out", str(tmp_path / "model")]
    assert cli.main(["fit", str(path), *options]) == 0
    assert 'class="thumb"' in (tmp_path / "model" / "page.html").read_text()


def test_few_different_unlabeled_rows_end_in_one_sentence(made):
    frame, _ = people()
    data = read_groups(frame.head(3 * GROUPS + 4), "team")
    with pytest.raises(UserError, match="4 different unlabeled rows"):
        study_groups(data, prior=0.4)


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
