"""Groups from frames, files and folders, and the report of what they hold."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from mdpu.data import number_groups, sample_of
from mdpu.errors import UserError
from mdpu.own.columns import TableEncoder
from mdpu.own.groups import read_groups, read_rows

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
    source = frame()
    if name.endswith("csv"):
        source.to_csv(tmp_path / name, index=False)
    elif name.endswith("parquet"):
        source.to_parquet(tmp_path / name)
    data = read_groups(source if name == "frame" else tmp_path / name, group="id")
    assert list(data.rows.columns) == ["height", "kind", "unit"] and data.names == ["b", "a", "c"]
    assert data.groups.tolist() == number_groups(IDS).tolist()
    report = data.report
    assert report.sizes == {1: 1, 2: 1, 3: 1} and (
        report.n_unlabeled,
        report.distinct_unlabeled,
    ) == (3, 3)
    assert (report.repeated_within, report.in_two_groups, report.in_group_and_unlabeled) == (
        2,
        1,
        1,
    )
    assert (report.missing, report.text, report.constant) == ({"height": 1}, ["kind"], ["unit"])
    assert all(word in str(report) for word in ("3 groups", "1 of 3", "height 1", "unit"))


@pytest.mark.parametrize(
    "ids", [[4, -1, 2, 4, 2, -1, 0, 2, -1], [4.0, None, 2, 4, 2, None, 0, 2, None]]
)
def test_ids_are_text_or_numbers(ids):
    data = read_groups(frame().assign(id=ids), group="id")
    assert data.groups.tolist() == number_groups(IDS).tolist() and data.names == ["4", "2", "0"]


def test_ids_and_text_of_a_csv_file_are_text_even_if_they_look_like_numbers_or_gaps(tmp_path):
    names = ["007", "7", "NA", "1234567890123456789", "1234567890123456790"]
    lines = ["code,id", *(f"0{place},{one}" for place, one in enumerate([*names, "", "-1"]))]
    (tmp_path / "own.csv").write_text("\n".join(lines))
    data = read_groups(tmp_path / "own.csv", group="id")
    assert data.names == names and data.report.n_unlabeled == 2
    assert read_rows(tmp_path / "own.csv", text=["code"]).rows["code"].tolist() == [
        f"0{place}" for place in range(7)
    ]
    mixed = pd.DataFrame({"true": [True, None, False], "end": ["2021-05-07", None, "9999-12-31"]})
    plain = TableEncoder().fit_transform(mixed)
    assert plain.loc[2].tolist() == [0.0, 2932896.0] and plain.loc[1].isna().all()


def test_arrays_are_read_in_both_forms(tmp_path):
    generator = np.random.default_rng(0)
    tuples = generator.random((4, 3, 5, 5))
    unlabeled = generator.random((6, 5, 5))
    np.savez(tmp_path / "both.npz", tuples=tuples, unlabeled=unlabeled)
    both = read_groups(tmp_path / "both.npz")
    ids = np.where(both.groups < 0, -1, both.groups // 10**6)
    np.savez(tmp_path / "rows.npz", rows=both.rows, bag=ids)
    rows = read_groups(str(tmp_path / "rows.npz"), group="bag")
    for data in (both, rows):
        sample = sample_of(data.groups)
        assert np.array_equal(data.rows[sample.tuples], tuples)
        assert np.array_equal(data.rows[sample.unlabeled], unlabeled)
    with pytest.raises(UserError, match="zzz"):
        read_groups(tmp_path / "rows.npz", group="zzz")


@pytest.fixture
def pictures(tmp_path):
    """Two groups of pictures in folders, and unlabeled ones beside them and in a folder of their
    own.
    """
    for k, name in enumerate(
        ("left/1.png", "left/2.PNG", "right/1.png", "right/2.png", "0.png", "unlabeled/a/1.png")
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 6), k, np.uint8)).save(tmp_path / name, format="png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_pictures_have_their_group_from_folders_or_a_table(pictures):
    data = read_groups(pictures)
    assert (
        data.rows.shape == (6, 4, 6)
        and data.rows.dtype == np.uint8
        and data.names == ["left", "right"]
    )
    sample = sample_of(data.groups)
    assert data.rows[sample.tuples][:, :, 0, 0].tolist() == [[0, 1], [2, 3]]
    assert data.rows[sample.unlabeled][:, 0, 0].tolist() == [4, 5]
    table = pd.DataFrame(
        {
            "file": [str(path.relative_to(pictures)) for path in data.files],
            "group": data.groups // 2,
        }
    )
    table["group"] = table["group"].where(data.groups > 0)
    told = read_groups(pictures, table=table)
    assert np.array_equal(told.rows, data.rows) and np.array_equal(told.groups, data.groups)
    with pytest.raises(UserError, match=r"lost\.png"):
        read_groups(
            pictures, table=pd.concat([table, pd.DataFrame({"file": ["lost.png"], "group": [1]})])
        )


def test_pictures_of_several_sizes_and_colours_are_made_alike(pictures):
    Image.new("RGBA", (8, 8), (255, 0, 0, 255)).save(pictures / "right" / "3.png")
    with pytest.raises(UserError, match="size"):
        read_groups(pictures)
    assert read_groups(pictures, size=(4, 6)).rows.shape == (7, 4, 6, 3)
    Image.fromarray(np.full((4, 6), 40_000, np.uint16)).save(pictures / "right" / "deep.png")
    with pytest.raises(UserError, match="I;16"):
        read_groups(pictures, size=(4, 6))


def test_pictures_are_upright_and_links_are_followed(pictures, tmp_path_factory):
    lying = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(6, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    lying.save(elsewhere / "1.png", exif=exif)
    (pictures / "linked").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(pictures)  # which leads in a circle
    data = read_groups(pictures)
    assert data.names == ["left", "linked", "right"]
    place = data.files.index(pictures / "linked" / "1.png")
    assert data.rows[place].tolist() == np.rot90(np.asarray(lying), -1).tolist()


def test_a_folder_unlabelled_is_found_by_both_spellings_and_what_is_hidden_is_passed_over(pictures):
    (pictures / "unlabeled").rename(pictures / "UNLABELLED")
    (pictures / "left" / "._1.png").write_bytes(b"what macOS writes beside a file")
    data = read_groups(pictures)
    assert data.names == ["left", "right"]
    assert data.account.passed_over == {"hidden": 1, ".txt": 1}
    assert data.account.files_seen == 8 and data.account.files_read == 6


def test_all_damaged_pictures_are_named_at_once(pictures):
    for name in ("left/1.png", "right/2.png"):
        (pictures / name).write_bytes((pictures / name).read_bytes()[:40])
    with pytest.raises(UserError, match=r"left/1\.png.*right/2\.png"):
        read_groups(pictures)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda folder: frame(), "group"),
        (lambda folder: frame().assign(group="a"), "unlabeled"),
        (lambda folder: frame().assign(group=None), "groups"),
        (lambda folder: folder, "pictures"),
        (lambda folder: folder / "lost.csv", "lost"),
        (lambda folder: folder / "lost.xls", "xls"),
        (lambda folder: [1, 2], "source"),
        (
            lambda folder: (folder / "a.csv").write_text("group,x\n1,2") and folder / "a.csv",
            "unlabeled",
        ),
        (
            lambda folder: (
                (folder / "a.csv").write_text("group,x\n1,2,3\n4,5,6") and folder / "a.csv"
            ),
            "more values",
        ),
        (
            lambda folder: (
                np.savez(folder / "a.npz", rows=np.ones(3), group=[0, 0, -1]) or folder / "a.npz"
            ),
            "shape",
        ),
    ],
)
def test_a_source_without_groups_is_refused(make, word, tmp_path):
    with pytest.raises(UserError, match=word):
        read_groups(make(tmp_path))
