"""Tables as people have them: what is beyond doubt is read, what is in doubt names the option that
settles it.
"""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from mdpu.errors import UserError
from mdpu.own.columns import TableEncoder
from mdpu.own.groups import read_groups
from mdpu.own.tables import Reading, read_table, tidy

TEAMS = ["one", "one", "two", "two", "", ""]


def read(tmp_path, lines, **options):
    path = tmp_path / "own.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_groups(path, "team", **options)


def column(tmp_path, values, sep=";", **options):
    lines = [
        f"team{sep}value",
        *(f"{team}{sep}{value}" for team, value in zip(TEAMS, values, strict=True)),
    ]
    return read(tmp_path, lines, **options).rows["value"].tolist()


def test_a_sign_that_may_divide_decimals_or_thousands_is_asked_for(tmp_path):
    values = ["1,234", "2,345", "3,456", "4,567", "5,678", "6,789"]
    with pytest.raises(UserError, match="--decimal"):
        column(tmp_path, values)
    assert column(tmp_path, values, decimal=",")[0] == 1.234
    assert column(tmp_path, values, decimal=".")[0] == 1234
    assert column(tmp_path, [*values[:5], "7,89"])[0] == 1.234


def test_dates_are_dates_in_both_forms_and_a_day_that_is_none_is_named(tmp_path):
    days = ["05.01.2020", "7.2.2020", "31.12.1969", "", "1.1.1970", "2.1.1970"]
    assert column(tmp_path, days)[:2] == [pd.Timestamp("2020-01-05"), pd.Timestamp("2020-02-07")]
    wrong = ["2020-01-05", "2020-13-01", *["2020-01-06"] * 4]
    assert column(tmp_path, wrong)[1] == "2020-13-01"


def test_dates_with_slashes_are_read_where_one_tells_what_stands_first(tmp_path):
    days = ["03/04/2025", "5/6/2024", "", "07/08/2022", "09/10/2021", "11/12/2020"]
    with pytest.raises(UserError, match="--dates"):
        column(tmp_path, days)
    assert column(tmp_path, days, dates="day-first")[0] == pd.Timestamp("2025-04-03")
    assert column(tmp_path, days, dates="month-first")[0] == pd.Timestamp("2025-03-04")
    assert column(tmp_path, ["25/04/2025", *days[1:]])[1] == pd.Timestamp("2024-06-05")
    assert column(tmp_path, ["04/25/2025", *days[1:]])[1] == pd.Timestamp("2024-05-06")
    assert column(tmp_path, ["25/04/2025", "04/25/2025", *days[2:]])[0] == "25/04/2025"
    assert column(tmp_path, ["2025/04/03"] * 6)[0] == pd.Timestamp("2025-04-03")


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


def test_what_keeps_a_column_from_being_numbers_is_said_once(tmp_path):
    for values, word in (
        (["12%", "0.13", "14%", "0.15", "16%", "0.17"], "percent"),
        (["$1.00", "€1.00", "$2.00", "$3.00", "$4.00", "$5.00"], "$ and in €"),
    ):
        data = read(tmp_path, ["team;value", *map(";".join, zip(TEAMS, values, strict=True))])
        assert data.rows["value"].tolist() == values
        assert str(data.account).count("value") == 1 and word in str(data.account)


def test_a_sheet_is_named_or_the_others_are_counted(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    book.active.append(["made in May", "by us"])
    for title, name in (("May", "a"), ("June", "b")):
        sheet = book.create_sheet(title)
        for row in (["team", "value"], [name, 1], [name, 2], [None, 3]):
            sheet.append(row)
    book.save(tmp_path / "own.xlsx")
    for named in ("June", "june ", "3"):
        data = read_groups(tmp_path / "own.xlsx", "team", sheet=named)
        assert data.names == ["b"] and "2 passed over" in str(data.account)
    with pytest.raises(UserError, match="mean June"):
        read_groups(tmp_path / "own.xlsx", "team", sheet="Jun")
    with pytest.raises(UserError, match="sheet"):
        read(tmp_path, ["team,value", "a,1", ",2"], sheet="June")


def test_a_table_that_two_separators_divide_is_asked_for(tmp_path):
    lines = ["a;b,c;d", *["1;2,3;4"] * 6]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    with pytest.raises(UserError, match="--sep"):
        read_table(tmp_path / "own.csv")
    assert [*read_table(tmp_path / "own.csv", reading=Reading(sep=";")).frame] == ["a", "b,c", "d"]
    assert [*read_table(tmp_path / "own.csv", ["d"]).frame] == ["a", "b,c", "d"]


def test_values_that_keep_a_column_from_being_numbers_are_named(tmp_path):
    values = ["1", "2", "3", "4", "5", "broken"]
    data = read(
        tmp_path,
        ["team,value", *(f"{team},{own}" for team, own in zip(TEAMS, values, strict=True))],
    )
    assert "--missing" in str(data.account) and "broken" in str(data.account)
    assert np.isnan(column(tmp_path, values, missing=["broken"])[-1])


def test_groups_that_may_be_lost_are_named(tmp_path):
    rows = [("a ", 1), (" a", 2), ("b", 3), ("B", 4), ("NA", 5), ("", 6)]
    lines = ["team,value", *(f"{team},{value}" for team, value in rows)]
    data = read(tmp_path, lines)
    assert (data.account.names_written, data.account.groups) == (5, 4)
    assert sum("NA" in note for note in data.account.notes) == 1
    assert sum("'b' and 'B'" in note for note in data.account.notes) == 1
    assert read(tmp_path, lines, missing=["NA"]).account.groups == 3


def test_names_are_filled_downwards_only_if_asked(tmp_path):
    lines = ["team,value", "a,1", ",2", "b,3", ",4", "-1,5", ",6"]
    assert "--fill" in str(read(tmp_path, [*lines[:5], "c,5", ",6"]).account)
    filled = read(tmp_path, lines, fill=True)
    assert filled.report.sizes == {2: 2} and filled.report.n_unlabeled == 2
    assert "names filled downwards: 2 rows" in filled.account.notes
    with pytest.raises(UserError, match="-1"):
        read(tmp_path, [*lines[:5], *[",5"] * 6], fill=True)


def test_several_columns_name_a_group_together(tmp_path):
    frame = pd.DataFrame(
        {"school": ["x", "x", "y", "y", None], "class": [1, 2, 1, 1, None], "value": range(5)}
    )
    data = read_groups(frame, ["school", "class"])
    assert data.names == ["x / 1", "x / 2", "y / 1"]
    keys = [*zip(frame["school"][:4], [1, 2, 1, 1], strict=True), (None, np.nan)]
    assert read_groups(frame.assign(team=keys), "team").names == data.names
    with pytest.raises(UserError, match="nan"):
        read_groups(frame.assign(team=[*keys[:3], ("y", np.nan), None]), "team")
    with pytest.raises(UserError, match="school and class"):
        read_groups(frame.assign(school=["x", "x", "y", None, None]), ["school", "class"])


def test_integers_of_a_database_stay_apart(tmp_path):
    ids = [1_700_000_000_000_000_000 + place for place in range(4)]
    frame = pd.DataFrame({"team": pd.array([*ids, None], "Int64"), "value": range(5)})
    frame.to_parquet(tmp_path / "own.parquet")
    assert read_groups(tmp_path / "own.parquet", "team").names == [str(one) for one in ids]
    with pytest.raises(UserError, match="Int64"):
        read_groups(frame.astype({"team": float}), "team")


def test_an_index_that_names_the_groups_is_found(tmp_path):
    frame = pd.DataFrame({"team": [*"aab", None], "value": range(4)}).set_index("team")
    frame.to_parquet(tmp_path / "own.parquet")
    for source in (frame, tmp_path / "own.parquet"):
        assert read_groups(source, "team").names == ["a", "b"]


def test_the_sheet_and_the_header_are_those_of_the_column_that_is_asked_for(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    book.active.append(["made in May", "by us"])
    sheet = book.create_sheet("Data")
    sheet.append(["Measured in May"])
    sheet.append([None, "Size", None, "Place"])
    sheet.merge_cells("B2:C2")
    for row in (["team", "a", "b", "x"], ["team 1", 1, 2, 3], [None, 4, 5, 6]):
        sheet.append(row)
    book.save(tmp_path / "own.xlsx")
    data = read_groups(tmp_path / "own.xlsx", "team")
    assert [*data.rows] == ["a", "b", "x"] and data.names == ["team 1"]
    words = str(data.account)
    assert "Data was read" in words and "above the header: 2" in words


def test_numbers_beside_texts_of_numbers_are_the_numbers_that_they_are(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["team", "comma", "mark"])
    for row in (["a", "1,25", 1.125], ["a", 2.125, "k. A."], ["b", "1.003,5", 2.25], [None, 7, 3]):
        book.active.append(row)
    book.save(tmp_path / "own.xlsx")
    data = read_groups(tmp_path / "own.xlsx", "team")
    assert data.rows["comma"].tolist() == [1.25, 2.125, 1003.5, 7]
    assert data.rows["mark"].tolist()[::2] == [1.125, 2.25]


def test_a_last_row_that_sums_up_the_others_is_asked_about(tmp_path):
    lines = ["team,value", "a,1", "a,2", ",3", "Total,6"]
    assert "called Total" in str(read(tmp_path, lines).account)
    assert "called Total" not in str(read(tmp_path, [lines[0], lines[-1], *lines[1:-1]]).account)


def test_a_column_that_numbers_the_rows_is_left_out():
    numbers = np.arange(40)
    frame = pd.DataFrame({"Nr.": 3 * numbers + 7, "value": numbers / 4, "wave": numbers % 5})
    columns = TableEncoder().fit(frame).columns()
    assert [column.name for column in columns if not column.used] == ["Nr."]
    in_another_order = TableEncoder().fit(frame[::-1]).columns()
    assert all(column.used for column in in_another_order)


def test_merged_cells_of_excel_have_the_name_of_the_first(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["team", "value"], ["a", 1], [None, 2], ["b", 3], [None, 4], [None, 5]):
        book.active.append(row)
    book.active.merge_cells("A2:A3")
    book.active.merge_cells("A4:A5")
    book.save(tmp_path / "own.xlsx")
    data = read_groups(tmp_path / "own.xlsx", "team")
    assert data.report.sizes == {2: 2} and data.report.n_unlabeled == 1


def test_every_type_of_a_column_has_a_place():
    frame = pd.DataFrame(
        {
            "money": [decimal.Decimal("1.25"), None, decimal.Decimal("3")],
            "wait": pd.to_timedelta([1, 2, None], unit="D"),
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
    encoder = TableEncoder().fit(frame)
    rows = encoder.transform(frame)
    assert rows["money"].tolist()[::2] == [1.25, 3] and rows["wait"].tolist()[:2] == [1, 2]
    assert rows["day"].tolist()[::2] == rows["zoned"].tolist()[::2] == [18262, 1]
    assert rows["flag"].tolist()[::2] == [1, 0] and rows["count"].tolist()[::2] == [1, 3]
    assert rows.columns.is_unique and rows["town_x"].tolist() == [1, 2, 3]
    pairs = zip(rows, encoder.sources(), strict=True)
    assert all(name.startswith(source) for name, source in pairs)
    left_out = [one for one in encoder.columns() if not one.used]
    assert [one.name for one in left_out] == ["list"] and left_out[0].reason and left_out[0].remedy
    assert len(encoder.columns()) == frame.shape[1]
    data = read_groups(frame.assign(team=["a", "b", None]), "team")
    assert len(data.rows) == 3 and data.rows["list"].tolist() == [[1], [2], [3]]


@pytest.mark.parametrize("kind", [int, decimal.Decimal, str])
def test_numbers_that_are_too_long_to_be_kept_are_names(kind, tmp_path):
    ids = [kind(7_300_000_000_000_000_000 + 17 * (place % 37)) for place in range(40)]
    frame = pd.DataFrame({"id": ids, "value": np.arange(40) % 7})
    frame["team"] = ["a"] * 3 + [None] * 37
    frame.to_parquet(tmp_path / "own.parquet")
    for source in (frame, tmp_path / "own.parquet"):
        rows = read_groups(source, "team").rows
        assert rows["id"].nunique() == 37
        left_out = TableEncoder().fit(rows).columns()[0]
        assert not left_out.used and "digits" in left_out.reason and left_out.remedy


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
    days = pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"day": days, "kind": ["yes", "no"] * 20, "size": np.arange(40.0) / 2})
    encoder = TableEncoder().fit(frame)
    with pytest.raises(UserError, match="column day"):
        encoder.transform(frame.assign(day=np.arange(40) + 18262))
    with pytest.raises(UserError, match="mean Day"):
        encoder.transform(frame.rename(columns={"day": "Day"}))
    with pytest.warns(UserWarning, match="column kind"):
        encoder.transform(frame.assign(kind=[1, 0] * 20))
    with pytest.warns(UserWarning, match="mean yes"):
        encoder.transform(frame.assign(kind="YES"))
    with pytest.warns(UserWarning, match="column size"):
        encoder.transform(frame.assign(size=1000 + np.arange(40)))


def test_the_preprocessing_is_part_of_the_classifier_and_of_its_file(tmp_path):
    from mdpu.estimator import MDPUClassifier
    from mdpu.own.study import fit_groups, predict_rows
    from mdpu.saving import load

    generator = np.random.default_rng(0)
    positive = generator.random(800) < 0.45
    triples = [
        triple for triple in generator.integers(800, size=(400, 3)) if positive[triple].sum() >= 2
    ][:100]
    places = np.r_[np.array(triples).ravel(), :200]
    frame = pd.DataFrame({"size": (generator.normal(size=800) + 2 * positive).round(3)}).iloc[
        places
    ]
    frame["kind"] = np.where(
        generator.random(len(frame)) < 0.3 + 0.4 * positive[places], "round", "flat"
    )
    frame["day"] = pd.date_range("2020-01-01", periods=800).strftime("%Y-%m-%d")[places]
    frame["team"] = [f"g{place // 3}" for place in range(300)] + [None] * 200
    frame = frame.reset_index(drop=True)
    frame.to_csv(tmp_path / "own.csv", index=False)
    parameters = {"prior": 0.45, "learner": "linear", "random_state": 0}
    fit_groups(tmp_path / "own.csv", tmp_path / "model", "team", ["day"], {}, **parameters)
    command = load(tmp_path / "model" / "classifier.skops")
    data = read_groups(frame, "team")
    python = make_pipeline(TableEncoder(drop=("day",)), MDPUClassifier(**parameters)).fit(
        data.rows, data.groups
    )
    direct = make_pipeline(TableEncoder(drop=("day",)), MDPUClassifier(**parameters))
    direct.fit(frame.drop(columns="team"), data.groups)
    read = read_groups(tmp_path / "own.csv", "team")
    for classifier in (python, direct):
        for rows in (data.rows, frame.drop(columns="team")):
            assert np.array_equal(classifier.predict_proba(rows), command.predict_proba(read.rows))
    predict_rows(tmp_path / "model", tmp_path / "own.csv", tmp_path / "answers.parquet", {})
    answers = pd.read_parquet(tmp_path / "answers.parquet")
    assert np.array_equal(answers["answer"], python.predict(data.rows))
    assert np.array_equal(answers["probability"], python.predict_proba(data.rows)[:, 1].round(9))


@pytest.mark.parametrize(("first", "is_read"), [("1.5", True), ("", False)])
def test_a_row_of_units_has_no_number(tmp_path, first, is_read):
    """It is passed over with a line. A first row with a number in it is a row like others."""
    lines = ["group,width,height,weight", f",mm,mm,{first}"]
    lines += [f"g{row // 2},{row}.5,{row},{2 * row}" for row in range(6)]
    lines += [f",{row}.5,{row},{2 * row}" for row in range(6)]
    path = tmp_path / "sizes.csv"
    path.write_text("\n".join(lines), encoding="utf-8")

    groups = read_groups(path, "group")

    assert len(groups.rows) == 12 + is_read
    passed_over = [note for note in groups.account.notes if "units (mm, mm)" in note]
    assert len(passed_over) == 1 - is_read
