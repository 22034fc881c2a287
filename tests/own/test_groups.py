"""Groups from frames, files and folders, and the report of what they hold."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mdpu.data import number_groups, sample_of
from mdpu.errors import UserError
from mdpu.own.columns import TableEncoder
from mdpu.own.groups import read_groups, read_rows
from mdpu.own.pictures import read_picture

IDS = ["b", None, "a", "b", "a", None, "c", "a", None]


def frame():
    """Groups of two, three and one; a row in two groups, one in a group twice, one that is
    unlabeled too, and gaps.
    """
    return pd.DataFrame(
        {
            "height": [1.0, 2, 3, 1, 4, 1, 4, 4, np.nan],
            "id": IDS,
            "kind": ["x", "y", "x", "x", "x", "x", "x", "x", "y"],
            "unit": 7,
        }
    )


@pytest.mark.parametrize("name", ["frame", "groups.csv", "groups.parquet"])
def test_a_table_is_read_and_reported(name, tmp_path):
    path = tmp_path / name
    source = frame()
    if name.endswith("csv"):
        source.to_csv(path, index=False)
    elif name.endswith("parquet"):
        source.to_parquet(path)

    data = read_groups(source if name == "frame" else path, group="id")

    assert list(data.rows.columns) == ["height", "kind", "unit"]
    assert data.names == ["b", "a", "c"]
    assert data.groups.tolist() == number_groups(IDS).tolist()


def test_what_a_table_holds_is_reported():
    report = read_groups(frame(), group="id").report
    assert report.sizes == {1: 1, 2: 1, 3: 1}
    assert report.n_unlabeled == 3
    assert report.distinct_unlabeled == 3
    assert report.repeated_within == 2
    assert report.in_two_groups == 1
    assert report.in_group_and_unlabeled == 1
    assert report.missing == {"height": 1}
    assert report.constant == ["unit"]
    for words in ("3 groups", "1 of 3", "height 1", "unit"):
        assert words in str(report)


@pytest.mark.parametrize(
    "ids", [[4, -1, 2, 4, 2, -1, 0, 2, -1], [4.0, None, 2, 4, 2, None, 0, 2, None]]
)
def test_ids_are_text_or_numbers(ids):
    data = read_groups(frame().assign(id=ids), group="id")
    assert data.groups.tolist() == number_groups(IDS).tolist()
    assert data.names == ["4", "2", "0"]


def test_ids_and_text_of_a_csv_file_are_text_even_if_they_look_like_numbers_or_gaps(tmp_path):
    path = tmp_path / "own.csv"
    names = ["007", "7", "NA", "1234567890123456789", "1234567890123456790"]
    rows = pd.DataFrame({"code": ["00", "01", "02", "03", "04", "05", "06"]})
    rows["id"] = [*names, "", "-1"]
    rows.to_csv(path, index=False)

    data = read_groups(path, group="id")
    assert data.names == names
    assert data.report.n_unlabeled == 2
    codes = read_rows(path, text=["code"]).rows["code"]
    assert codes.tolist() == rows["code"].tolist()


def test_truths_and_dates_become_numbers_and_their_gaps_stay():
    mixed = pd.DataFrame({"true": [True, None, False], "end": ["2021-05-07", None, "9999-12-31"]})
    plain = TableEncoder().fit_transform(mixed)
    assert plain.loc[2].tolist() == [0.0, 2932896.0]
    assert plain.loc[1].isna().all()


def test_arrays_are_read_in_both_forms(tmp_path):
    generator = np.random.default_rng(0)
    tuples = generator.random((4, 3, 5, 5))
    unlabeled = generator.random((6, 5, 5))
    np.savez(tmp_path / "both.npz", tuples=tuples, unlabeled=unlabeled)
    both = read_groups(tmp_path / "both.npz")
    ids = np.where(both.groups < 0, -1, both.groups // 10**6)
    path = tmp_path / "rows.npz"
    np.savez(path, rows=both.rows, bag=ids)

    for data in (both, read_groups(str(path), group="bag")):
        sample = sample_of(data.groups)
        assert np.array_equal(data.rows[sample.tuples], tuples)
        assert np.array_equal(data.rows[sample.unlabeled], unlabeled)
    with pytest.raises(UserError, match="zzz"):
        read_groups(path, group="zzz")


PICTURES = (
    "left/1.png",
    "left/2.PNG",
    "right/1.png",
    "right/2.png",
    "0.png",
    "unlabeled/a/1.png",
)


@pytest.fixture
def pictures(tmp_path):
    """Two groups of pictures in folders, and unlabeled ones beside them and in a folder of their
    own.
    """
    for shade, name in enumerate(PICTURES):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (6, 4), shade).save(path, format="png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_pictures_have_their_group_from_folders(pictures):
    data = read_groups(pictures)
    assert data.rows.shape == (6, 4, 6)
    assert data.rows.dtype == np.uint8
    assert data.names == ["left", "right"]
    sample = sample_of(data.groups)
    shades = data.rows[:, 0, 0]
    assert shades[sample.tuples].tolist() == [[0, 1], [2, 3]]
    assert shades[sample.unlabeled].tolist() == [4, 5]


def test_pictures_have_their_group_from_a_table(pictures):
    expected = read_groups(pictures)
    files = [str(path.relative_to(pictures)) for path in expected.files]
    groups = pd.Series(expected.groups).where(expected.groups > 0)
    table = pd.DataFrame({"file": files, "group": groups})

    data = read_groups(pictures, table=table)

    assert np.array_equal(data.rows, expected.rows)
    assert np.array_equal(data.groups, expected.groups)
    table.loc[len(table)] = ["lost.png", 1]
    with pytest.raises(UserError, match=r"lost\.png"):
        read_groups(pictures, table=table)


def test_pictures_of_several_sizes_and_colours_are_made_alike(pictures):
    red = (255, 0, 0, 255)
    Image.new("RGBA", (8, 8), red).save(pictures / "right" / "3.png")
    with pytest.raises(UserError, match="size"):
        read_groups(pictures)
    rows = read_groups(pictures, size=(4, 6)).rows
    assert rows.shape == (7, 4, 6, 3)


def test_large_pictures_are_made_smaller_unless_a_size_is_named(pictures):
    exif = Image.Exif()
    exif[0x0112] = 6  # stored on its side
    for place, name in enumerate(PICTURES):
        if place % 2:
            Image.new("L", (256, 192), place).save(pictures / name, format="png")
        else:
            Image.new("L", (192, 256), place).save(pictures / name, format="png", exif=exif)

    data = read_groups(pictures)

    assert data.rows.shape == (6, 24, 32)
    assert data.account.notes == [
        "pictures of 192 x 256 pixels were made 24 x 32; --size names another size"
    ]
    full = read_groups(pictures, size=(192, 256))
    assert full.rows.shape == (6, 192, 256)
    assert full.account.notes == []


def test_a_large_jpeg_is_scaled_as_its_pixels_are(tmp_path):
    ramp = np.tile(np.arange(256, dtype=np.uint8), (512, 2))
    Image.fromarray(ramp).save(tmp_path / "1.jpg", quality=95)
    scaled = read_picture(tmp_path / "1.jpg", size=(32, 32))
    expected = np.asarray(Image.fromarray(ramp).resize((32, 32)))
    assert np.abs(scaled.astype(int) - expected).max() < 8


def test_pictures_of_more_than_a_byte_a_pixel_are_refused(pictures):
    Image.new("I;16", (6, 4), 40_000).save(pictures / "right" / "deep.png")
    with pytest.raises(UserError, match="I;16"):
        read_groups(pictures, size=(4, 6))


def test_pictures_are_upright_and_links_are_followed(pictures, tmp_path_factory):
    pixels = np.arange(24, dtype=np.uint8).reshape(6, 4)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    Image.fromarray(pixels).save(elsewhere / "1.png", exif=exif)
    (pictures / "linked").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(pictures)  # which leads in a circle

    data = read_groups(pictures)

    assert data.names == ["left", "linked", "right"]
    place = data.files.index(pictures / "linked" / "1.png")
    assert np.array_equal(data.rows[place], np.rot90(pixels, -1))


def test_a_folder_unlabelled_is_found_by_both_spellings_and_what_is_hidden_is_passed_over(pictures):
    (pictures / "unlabeled").rename(pictures / "UNLABELLED")
    (pictures / "left" / "._1.png").write_bytes(b"what macOS writes beside a file")
    data = read_groups(pictures)
    assert data.names == ["left", "right"]
    assert data.account.passed_over == {"hidden": 1, ".txt": 1}
    assert data.account.files_seen == 8
    assert data.account.files_read == 6


def test_all_damaged_pictures_are_named_at_once(pictures):
    for name in ("left/1.png", "right/2.png"):
        path = pictures / name
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(UserError, match=r"left/1\.png.*right/2\.png"):
        read_groups(pictures)


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (frame(), "group"),
        (frame().assign(group="a"), "unlabeled"),
        (frame().assign(group=None), "groups"),
        ([1, 2], "source"),
    ],
)
def test_a_source_without_groups_is_refused(source, word):
    with pytest.raises(UserError, match=word):
        read_groups(source)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "pictures"),
        ("lost.csv", "lost"),
        ("lost.xls", "xls"),
    ],
)
def test_a_file_or_folder_with_nothing_to_read_is_refused(tmp_path, name, word):
    with pytest.raises(UserError, match=word):
        read_groups(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("group,x\n1,2", "unlabeled"),
        ("group,x\n1,2,3\n4,5,6", "more values"),
    ],
)
def test_a_csv_file_without_groups_is_refused(tmp_path, text, word):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=word):
        read_groups(path)


def test_arrays_of_another_shape_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, rows=np.ones(3), group=[0, 0, -1])
    with pytest.raises(UserError, match="shape"):
        read_groups(path)


def test_names_in_an_array_of_two_axes_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, rows=np.ones((3, 2)), group=[[0], [0], [-1]])
    with pytest.raises(UserError, match=r"\(3, 1\)"):
        read_groups(path)


def test_new_arrays_without_rows_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, tuples=np.ones((3, 2, 2)), unlabeled=np.ones((3, 2)))
    with pytest.raises(UserError, match="no array rows"):
        read_rows(path)


@pytest.mark.parametrize("group", [0, 4, [], "", [1]])
def test_a_group_that_names_no_column_is_refused(group):
    with pytest.raises(UserError, match="name a column"):
        read_groups(frame(), group)


def test_a_column_that_is_left_out_may_be_in_doubt(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("group,x,when\na,1,03/01/2025\na,2,04/02/2025\n,3,05/03/2025\n")
    with pytest.raises(UserError, match="when"):
        read_groups(path)

    assert read_groups(path, drop=["when"]).rows["x"].tolist() == [1, 2, 3]
    new = read_rows(path, needed=["x"])
    assert new.rows["when"].tolist() == ["03/01/2025", "04/02/2025", "05/03/2025"]
