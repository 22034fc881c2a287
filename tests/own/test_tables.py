"""Tables as people have them: what is beyond doubt is read, what is in doubt names the option that
settles it.
"""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier
from mdpu.own.columns import TableEncoder
from mdpu.own.commands import fit_groups, predict_rows
from mdpu.own.groups import read_groups
from mdpu.own.reading import Reading
from mdpu.own.tables import read_table
from mdpu.own.values import tidy
from mdpu.saving import load


def read(tmp_path, lines, **options):
    path = tmp_path / "own.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_groups(path, "team", **options)


TEAMS = ["one", "one", "two", "two", "", ""]


def by_team(values, sep=","):
    """Return the lines of a table of two teams and two rows without a team."""
    rows = zip(TEAMS, values, strict=True)
    return [f"team{sep}value", *map(sep.join, rows)]


def column(tmp_path, values, **options):
    return read(tmp_path, by_team(values, sep=";"), **options).rows["value"].tolist()


def test_a_sign_that_may_divide_decimals_or_thousands_is_asked_for(tmp_path):
    values = ["1,234", "2,345", "3,456", "4,567", "5,678", "6,789"]
    with pytest.raises(UserError, match="--decimal"):
        column(tmp_path, values)
    assert column(tmp_path, values, decimal=",")[0] == 1.234
    assert column(tmp_path, values, decimal=".")[0] == 1234
    assert column(tmp_path, [*values[:5], "7,89"])[0] == 1.234


COVER = [["made in May", "by us"]]


def excel_book(**sheets):
    """Return a workbook of sheets, which are rows of cells by title."""
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return book


def test_dates_are_dates_in_both_forms_and_a_day_that_is_none_is_named(tmp_path):
    days = ["05.01.2020", "7.2.2020", "31.12.1969", "", "1.1.1970", "2.1.1970"]
    assert column(tmp_path, days)[:2] == [pd.Timestamp("2020-01-05"), pd.Timestamp("2020-02-07")]

    wrong = ["2020-01-05", "2020-13-01", *["2020-01-06"] * 4]
    assert column(tmp_path, wrong)[1] == "2020-13-01"


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["€ 1.234,50", "€ 12,30", "-€ 7,00"], [1234.5, 12.3, -7]),
        (["$1,234.50", "$12.30", "-$7.00"], [1234.5, 12.3, -7]),
        (["1.234,50 EUR", "12,30 EUR", "7,00"], [1234.5, 12.3, 7]),
        (["CHF 1'234.50", "CHF 12.30", "?"], [1234.5, 12.3, np.nan]),
    ],
)
def test_amounts_of_money_are_numbers(tmp_path, texts, numbers):
    assert np.allclose(column(tmp_path, texts * 2)[:3], numbers, equal_nan=True)


SLASHED = ["5/6/2024", "", "07/08/2022", "09/10/2021", "11/12/2020"]


def test_dates_with_slashes_are_asked_for_where_none_tells_what_stands_first(tmp_path):
    days = ["03/04/2025", *SLASHED]
    with pytest.raises(UserError, match="--dates"):
        column(tmp_path, days)
    assert column(tmp_path, days, dates="day-first")[0] == pd.Timestamp("2025-04-03")
    assert column(tmp_path, days, dates="month-first")[0] == pd.Timestamp("2025-03-04")


@pytest.mark.parametrize(
    ("settling", "date"),
    [
        ("25/04/2025", "2024-06-05"),
        ("04/25/2025", "2024-05-06"),
    ],
)
def test_a_date_with_slashes_that_has_one_reading_settles_the_others(tmp_path, settling, date):
    assert column(tmp_path, [settling, *SLASHED])[1] == pd.Timestamp(date)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (["12%", "0.13", "14%", "0.15", "16%", "0.17"], "percent"),
        (["$1.00", "€1.00", "$2.00", "$3.00", "$4.00", "$5.00"], "$ and in €"),
    ],
)
def test_what_keeps_a_column_from_being_numbers_is_said_once(tmp_path, values, word):
    data = read(tmp_path, by_team(values))
    assert data.rows["value"].tolist() == values

    account = str(data.account)
    assert account.count("value") == 1
    assert word in account


def test_a_sheet_is_named_or_the_others_are_counted(tmp_path):
    path = tmp_path / "own.xlsx"
    may = [["team", "value"], ["a", 1], ["a", 2], [None, 3]]
    june = [["team", "value"], ["b", 1], ["b", 2], [None, 3]]
    excel_book(Cover=COVER, May=may, June=june).save(path)

    for named in ("June", "june ", "3"):
        data = read_groups(path, "team", sheet=named)
        assert data.names == ["b"]
        assert "2 passed over" in str(data.account)

    with pytest.raises(UserError, match="mean June"):
        read_groups(path, "team", sheet="Jun")
    with pytest.raises(UserError, match="sheet"):
        read(tmp_path, ["team,value", "a,1", ",2"], sheet="June")


def test_a_table_that_two_separators_divide_is_asked_for(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("\n".join(["a;b,c;d", *["1;2,3;4"] * 6]))
    with pytest.raises(UserError, match="--sep"):
        read_table(path)

    by_semicolons = ["a", "b,c", "d"]
    assert [*read_table(path, reading=Reading(sep=";")).frame] == by_semicolons
    assert [*read_table(path, ["d"]).frame] == by_semicolons


def test_values_that_keep_a_column_from_being_numbers_are_named(tmp_path):
    values = ["1", "2", "3", "4", "5", "broken"]
    account = str(read(tmp_path, by_team(values)).account)
    assert "--missing" in account
    assert "broken" in account
    assert np.isnan(column(tmp_path, values, missing=["broken"])[-1])


def test_groups_that_may_be_lost_are_named(tmp_path):
    lines = ["team,value", "a ,1", " a,2", "b,3", "B,4", "NA,5", ",6"]
    account = read(tmp_path, lines).account
    assert account.names_written == 5
    assert account.groups == 4
    for name in ("NA", "'b' and 'B'"):
        assert sum(name in note for note in account.notes) == 1
    assert read(tmp_path, lines, missing=["NA"]).account.groups == 3


def test_names_are_filled_downwards_only_if_asked(tmp_path):
    lines = ["team,value", "a,1", ",2", "b,3", ",4"]
    assert "--fill" in str(read(tmp_path, [*lines, "c,5", ",6"]).account)

    filled = read(tmp_path, [*lines, "-1,5", ",6"], fill=True)
    assert filled.report.sizes == {2: 2}
    assert filled.report.n_unlabeled == 2
    assert "names filled downwards: 2 rows" in filled.account.notes

    with pytest.raises(UserError, match="-1"):
        read(tmp_path, [*lines, *[",5"] * 6], fill=True)


def test_several_columns_name_a_group_together():
    frame = pd.DataFrame(
        {
            "school": ["x", "x", "y", "y", None],
            "class": [1, 2, 1, 1, None],
            "value": range(5),
        }
    )
    names = ["x / 1", "x / 2", "y / 1"]
    assert read_groups(frame, ["school", "class"]).names == names

    keys = [("x", 1), ("x", 2), ("y", 1), ("y", 1), (None, np.nan)]
    assert read_groups(frame.assign(team=keys), "team").names == names


def test_a_group_of_which_one_of_several_names_is_missing_is_refused():
    frame = pd.DataFrame(
        {"school": ["x", "x", None, None], "class": [1, 1, 2, None], "value": range(4)}
    )
    with pytest.raises(UserError, match="school and class"):
        read_groups(frame, ["school", "class"])

    keys = [("x", 1), ("x", 1), ("y", np.nan), None]
    with pytest.raises(UserError, match="nan"):
        read_groups(frame.assign(team=keys), "team")


def test_integers_of_a_database_stay_apart(tmp_path):
    ids = [1_700_000_000_000_000_000 + place for place in range(4)]
    frame = pd.DataFrame({"value": range(5)})
    frame["team"] = pd.array([*ids, None], "Int64")
    path = tmp_path / "own.parquet"
    frame.to_parquet(path)

    assert read_groups(path, "team").names == list(map(str, ids))
    with pytest.raises(UserError, match="Int64"):
        read_groups(frame.astype({"team": float}), "team")


def test_an_index_that_names_the_groups_is_found(tmp_path):
    frame = pd.DataFrame({"team": [*"aab", None], "value": range(4)}).set_index("team")
    frame.to_parquet(tmp_path / "own.parquet")
    for source in (frame, tmp_path / "own.parquet"):
        assert read_groups(source, "team").names == ["a", "b"]


def test_the_sheet_and_the_header_are_those_of_the_column_that_is_asked_for(tmp_path):
    path = tmp_path / "own.xlsx"
    rows = [
        ["Measured in May"],
        [None, "Size", None, "Place"],
        ["team", "a", "b", "x"],
        ["team 1", 1, 2, 3],
        [None, 4, 5, 6],
    ]
    book = excel_book(Cover=COVER, Data=rows)
    book["Data"].merge_cells("B2:C2")
    book.save(path)

    data = read_groups(path, "team")
    assert [*data.rows] == ["a", "b", "x"]
    assert data.names == ["team 1"]
    account = str(data.account)
    assert "Data was read" in account
    assert "above the header: 2" in account


def test_numbers_beside_texts_of_numbers_are_the_numbers_that_they_are(tmp_path):
    path = tmp_path / "own.xlsx"
    rows = [
        ["team", "comma", "mark"],
        ["a", "1,25", 1.125],
        ["a", 2.125, "k. A."],
        ["b", "1.003,5", 2.25],
        [None, 7, 3],
    ]
    excel_book(Data=rows).save(path)

    read = read_groups(path, "team").rows
    assert read["comma"].tolist() == [1.25, 2.125, 1003.5, 7]
    assert read["mark"].tolist()[::2] == [1.125, 2.25]


def test_a_last_row_that_sums_up_the_others_is_asked_about(tmp_path):
    total = "Total,6"
    last = read(tmp_path, ["team,value", "a,1", "a,2", ",3", total])
    assert "called Total" in str(last.account)

    first = read(tmp_path, ["team,value", total, "a,1", "a,2", ",3"])
    assert "called Total" not in str(first.account)


def test_a_column_that_numbers_the_rows_is_left_out():
    numbers = np.arange(40)
    frame = pd.DataFrame(
        {
            "Nr.": 3 * numbers + 7,
            "value": numbers / 4,
            "wave": numbers % 5,
        }
    )
    columns = TableEncoder().fit(frame).columns()
    assert [column.name for column in columns if not column.used] == ["Nr."]

    in_another_order = TableEncoder().fit(frame[::-1]).columns()
    assert all(column.used for column in in_another_order)


def test_merged_cells_of_excel_have_the_name_of_the_first(tmp_path):
    path = tmp_path / "own.xlsx"
    rows = [["team", "value"], ["a", 1], [None, 2], ["b", 3], [None, 4], [None, 5]]
    book = excel_book(Data=rows)
    book["Data"].merge_cells("A2:A3")
    book["Data"].merge_cells("A4:A5")
    book.save(path)

    report = read_groups(path, "team").report
    assert report.sizes == {2: 2}
    assert report.n_unlabeled == 1


EVERY_TYPE = pd.DataFrame(
    {
        "money": [decimal.Decimal("1.25"), None, decimal.Decimal("3")],
        "wait": pd.to_timedelta([1, None, 2], unit="D"),
        "day": [datetime.date(2020, 1, 1), None, datetime.date(1970, 1, 2)],
        "zoned": pd.to_datetime(["2020-01-01", None, "1970-01-02"], utc=True),
        "flag": pd.array([True, None, False], "boolean"),
        "count": pd.array([1, None, 3], "Int8"),
        "kind": pd.Categorical(["x", None, "y"]),
        "town": ["x", "y", "x"],
        "town_x": [1, 2, 3],
        "list": [[1], [2], [3]],
    }
)


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("money", 1.25, 3),
        ("wait", 1, 2),
        ("day", 18262, 1),
        ("zoned", 18262, 1),
        ("flag", 1, 0),
        ("count", 1, 3),
        ("town_x", 1, 3),
    ],
)
def test_columns_of_numbers_dates_and_truths_become_numbers(name, first, last):
    values = TableEncoder().fit(EVERY_TYPE).transform(EVERY_TYPE)[name].tolist()
    assert values[0] == first
    assert values[2] == last


def test_every_type_of_a_column_has_a_place():
    encoder = TableEncoder().fit(EVERY_TYPE)
    rows = encoder.transform(EVERY_TYPE)
    assert rows.columns.is_unique
    for name, source in zip(rows, encoder.sources(), strict=True):
        assert name.startswith(source)

    columns = encoder.columns()
    assert len(columns) == EVERY_TYPE.shape[1]
    (left_out,) = [column for column in columns if not column.used]
    assert left_out.name == "list"
    assert left_out.reason
    assert left_out.remedy


def test_cells_that_are_lists_are_kept_as_they_are():
    data = read_groups(EVERY_TYPE.assign(team=["a", "b", None]), "team")
    assert data.rows["list"].tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("kind", [int, decimal.Decimal, str])
def test_numbers_that_are_too_long_to_be_kept_are_names(kind, tmp_path):
    place = np.arange(40)
    ids = 7_300_000_000_000_000_000 + 17 * (place % 37)
    frame = pd.DataFrame({"id": map(kind, ids.tolist()), "value": place % 7})
    frame["team"] = ["a"] * 3 + [None] * 37
    path = tmp_path / "own.parquet"
    frame.to_parquet(path)

    for source in (frame, path):
        rows = read_groups(source, "team").rows
        assert rows["id"].nunique() == 37
        left_out = TableEncoder().fit(rows).columns()[0]
        assert not left_out.used
        assert "digits" in left_out.reason
        assert left_out.remedy


def test_a_column_that_counts_the_rows_for_want_of_a_name_is_left_out(tmp_path):
    frame = pd.DataFrame({"team": ["a", "a", "b", None], "value": [4, 2, 3, 1]})
    frame.to_csv(tmp_path / "own.csv")  # with its index
    encoder = TableEncoder().fit(read_groups(tmp_path / "own.csv", "team").rows)
    assert [column.used for column in encoder.columns()] == [False, True]


def test_a_tidy_frame_stays_as_it_is(tmp_path):
    frame = pd.DataFrame(
        {
            "a": ["1,5", "2,5"],
            "day": ["2020-01-01", None],
            "kind": [" x", "y"],
            "true": ["True", "false"],
        }
    )
    once, _ = tidy(frame)
    twice, notes = tidy(once)
    pd.testing.assert_frame_equal(once, twice)
    assert not notes


def test_new_rows_have_to_be_those_of_the_training():
    numbers = np.arange(40)
    frame = pd.DataFrame({"kind": ["yes", "no"] * 20, "size": numbers / 2})
    frame["day"] = pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d")
    encoder = TableEncoder().fit(frame)

    with pytest.raises(UserError, match="column day"):
        encoder.transform(frame.assign(day=numbers + 18262))
    with pytest.raises(UserError, match="mean Day"):
        encoder.transform(frame.rename(columns={"day": "Day"}))

    with pytest.warns(UserWarning, match="column kind"):
        encoder.transform(frame.assign(kind=[1, 0] * 20))
    with pytest.warns(UserWarning, match="mean yes"):
        encoder.transform(frame.assign(kind="YES"))
    with pytest.warns(UserWarning, match="column size"):
        encoder.transform(frame.assign(size=numbers + 1000))


def table_of_triples():
    """Return a table of 100 dominant triples and 200 unlabeled rows with columns of three types."""
    generator = np.random.default_rng(0)
    positive = generator.random(800) < 0.45
    triples = generator.integers(800, size=(400, 3))
    dominant = triples[positive[triples].sum(axis=1) >= 2][:100]
    places = np.append(dominant.ravel(), np.arange(200))
    positive = positive[places]

    size = generator.normal(size=len(places)) + 2 * positive
    is_round = generator.random(len(places)) < 0.3 + 0.4 * positive
    days = pd.date_range("2020-01-01", periods=800).strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "size": size.round(3),
            "kind": np.where(is_round, "round", "flat"),
            "day": days[places],
            "team": [f"g{place // 3}" for place in range(300)] + [None] * 200,
        }
    )


def test_the_preprocessing_is_part_of_the_classifier_and_of_its_file(tmp_path):
    frame = table_of_triples()
    table = tmp_path / "own.csv"
    frame.to_csv(table, index=False)
    parameters = {"prior": 0.45, "learner": "linear", "random_state": 0}

    folder = tmp_path / "model"
    fit_groups(table, folder, "team", ["day"], {}, **parameters)
    command = load(folder / "classifier.skops")
    expected = command.predict_proba(read_groups(table, "team").rows)

    data = read_groups(frame, "team")
    without_team = frame.drop(columns="team")
    pipeline = make_pipeline(TableEncoder(drop=("day",)), MDPUClassifier(**parameters))
    for learned in (data.rows, without_team):
        python = clone(pipeline).fit(learned, data.groups)
        for rows in (data.rows, without_team):
            assert np.array_equal(python.predict_proba(rows), expected)

    answers = tmp_path / "answers.parquet"
    predict_rows(folder, table, answers, {})
    written = pd.read_parquet(answers)
    assert np.array_equal(written["answer"], python.predict(data.rows))
    assert np.array_equal(written["probability"], expected[:, 1].round(9))


def test_dates_of_two_forms_stay_text(tmp_path):
    days = ["25/04/2025", "04/25/2025", *SLASHED[1:]]
    assert column(tmp_path, days)[0] == "25/04/2025"


def test_dates_with_slashes_may_have_the_year_first(tmp_path):
    assert column(tmp_path, ["2025/04/03"] * 6)[0] == pd.Timestamp("2025-04-03")


@pytest.mark.parametrize(("first", "is_read"), [("1.5", True), ("", False), ("1", False)])
def test_a_row_of_units_has_no_number(tmp_path, first, is_read):
    """It is passed over with a line. A first row with a number in it is a row like others, but 1
    is the unit of a column without one.
    """
    lines = ["group,width,height,weight", f",mm,mm,{first}"]
    lines += [f"g{row // 2},{row}.5,{row},{2 * row}" for row in range(6)]
    lines += [f",{row}.5,{row},{2 * row}" for row in range(6)]
    path = tmp_path / "sizes.csv"
    path.write_text("\n".join(lines), encoding="utf-8")

    groups = read_groups(path, "group")

    assert len(groups.rows) == 12 + is_read
    passed_over = [note for note in groups.account.notes if "units (mm, mm)" in note]
    assert len(passed_over) == 1 - is_read
