"""Finished runs: kept by key, whole or noticed."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from mdpu.errors import UserError
from mdpu.pipeline.files import digest
from mdpu.pipeline.job import asked
from mdpu.pipeline.store import Stored, checksum, pack, read_runs, shipped_keys, write_runs

SPEC = {
    "cell": "flat/base/m2/n30/prior0.5/abs",
    "images": "x",
    "sampling": {"n": 30},
    "trials": {"1": "flat/seed1", "2": "flat/seed2"},
}


def run(seed=1, accuracy=(0.5, 0.75), **measures):
    """Return a finished run of SPEC."""
    number = len(accuracy)
    history = pd.DataFrame({"epoch": range(1, number + 1), "accuracy": accuracy, **measures})
    history["objective"] = np.linspace(1, 0.5, number)
    return Stored.of(asked(SPEC, seed), history, device="a CPU")


def test_a_key_is_the_digest_of_what_was_asked_without_the_name_of_the_cell():
    renamed = {**SPEC, "cell": "another name"}
    assert run(1).key == digest(asked(SPEC, 1)) == digest(asked(renamed, 1))


def test_other_images_and_seeds_have_other_keys():
    other = {**SPEC, "images": "y"}
    keys = {digest(asked(spec, seed)) for spec, seed in product((SPEC, other), (1, 2))}
    assert len(keys) == 4


def test_runs_come_back_as_they_were_written_each_with_its_own_measures(tmp_path):
    path = tmp_path / "runs.parquet"
    complete = run(1, test_risk=[0.1, 0.2])
    diverged = run(2, [np.nan, np.nan], risk=[0.3, np.nan])
    write_runs(path, [complete, diverged])

    read = read_runs(path)

    assert list(read) == [complete.key, diverged.key]
    for written in (complete, diverged):
        again = read[written.key]
        pd.testing.assert_frame_equal(again.history, written.history, check_like=True)
        assert again.about == written.about


def test_runs_are_read_by_their_keys(tmp_path):
    path = tmp_path / "runs.parquet"
    write_runs(path, [run(1), run(2)])
    key = run(2).key
    assert list(read_runs(path, [key, "no such key"])) == [key]
    assert not read_runs(path, [])


def test_packed_runs_are_found_by_the_text_of_their_keys(tmp_path):
    path = tmp_path / "flat.parquet"
    first = run(1)
    second = run(2)
    pack(path, [first, second])
    assert shipped_keys(tmp_path) == {first.key: path, second.key: path}
    pd.testing.assert_frame_equal(read_runs(path)[first.key].history, first.history)

    # The longer name wins, and a file that is lost holds nothing.
    longer = tmp_path / "flat-2.parquet"
    pack(longer, [first])
    lost = tmp_path / "flat-3.parquet"
    pack(lost, [second])
    lost.unlink()
    assert shipped_keys(tmp_path) == {first.key: longer, second.key: path}
    assert shipped_keys(tmp_path / "none") == {}


numbers = st.floats(allow_nan=True, allow_infinity=False)


@given(st.lists(numbers, min_size=1, max_size=5))
def test_a_checksum_is_of_values_and_not_of_the_order_of_columns(values):
    history = pd.DataFrame({"epoch": range(len(values)), "accuracy": values, "gaps": np.nan})
    accuracy = history["accuracy"]
    signed = history.assign(accuracy=accuracy.fillna(-np.nan))
    expected = checksum(history)
    assert checksum(signed) == expected
    assert checksum(history[["accuracy", "epoch"]]) == expected


@given(st.lists(numbers, min_size=1, max_size=5))
def test_a_checksum_of_other_values_differs(values):
    history = pd.DataFrame({"epoch": range(len(values)), "accuracy": values})
    changed = history.assign(accuracy=history["accuracy"].fillna(0) + 1)
    if not changed.equals(history):  # as with large numbers, to which 1 adds nothing
        assert checksum(changed) != checksum(history)


@pytest.mark.parametrize("damage", ["cut", "text", "accuracy", "key", "missing"])
def test_a_damaged_file_is_noticed_and_named(tmp_path, damage):
    path = tmp_path / "runs.parquet"
    write_runs(path, [run(1)])
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "text":
        path.write_text("no parquet")
    elif damage == "missing":
        path.unlink()
    else:
        values = {"accuracy": 0.9, "key": "0" * 16}
        frame = parquet.read_table(path).to_pandas()
        frame[damage] = values[damage]
        frame.to_parquet(path, index=False)
    with pytest.raises(UserError) as error:
        read_runs(path)
    assert str(path) in str(error.value)
