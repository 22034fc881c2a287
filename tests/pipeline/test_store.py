"""Finished runs: kept by key, whole or noticed."""

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
    epochs = {"epoch": range(1, len(accuracy) + 1), "objective": np.linspace(1, 0.5, len(accuracy))}
    frame = pd.DataFrame({**epochs, "accuracy": accuracy, **measures})
    return Stored.of(asked(SPEC, seed), frame, device="a CPU")


def test_a_key_is_the_digest_of_what_was_asked():
    assert (
        run(1).key == digest(asked(SPEC, 1)) == digest(asked({**SPEC, "cell": "another name"}, 1))
    )
    assert (
        len(
            {
                digest(asked(spec, seed))
                for spec in (SPEC, {**SPEC, "images": "y"})
                for seed in (1, 2)
            }
        )
        == 4
    )


def test_runs_come_back_as_they_were_written_each_with_its_own_measures(tmp_path):
    one = run(1, test_risk=[0.1, 0.2])
    two = run(2, [np.nan, np.nan], risk=[0.3, np.nan])
    write_runs(tmp_path / "runs.parquet", [one, two])
    found = read_runs(tmp_path / "runs.parquet")
    assert list(found) == [one.key, two.key]
    for each in (one, two):
        pd.testing.assert_frame_equal(found[each.key].history, each.history, check_like=True)
        assert found[each.key].about == each.about
    assert list(read_runs(tmp_path / "runs.parquet", [two.key, "no such key"])) == [two.key]
    assert not read_runs(tmp_path / "runs.parquet", [])


def test_packed_runs_are_found_by_the_text_of_their_keys(tmp_path):
    pack(tmp_path / "flat.parquet", [run(1), run(2)])
    found = shipped_keys(tmp_path)
    assert found == dict.fromkeys([run(1).key, run(2).key], tmp_path / "flat.parquet")
    pd.testing.assert_frame_equal(
        read_runs(tmp_path / "flat.parquet")[run(1).key].history, run(1).history
    )
    # The longer name wins, and a file that is lost holds nothing.
    pack(tmp_path / "flat-2.parquet", [run(1)])
    pack(tmp_path / "flat-3.parquet", [run(2)])
    (tmp_path / "flat-3.parquet").unlink()
    assert shipped_keys(tmp_path) == {**found, run(1).key: tmp_path / "flat-2.parquet"}
    assert shipped_keys(tmp_path / "none") == {}


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=5))
def test_a_checksum_tells_values_and_not_the_order_of_columns(values):
    history = pd.DataFrame({"epoch": range(len(values)), "accuracy": values, "gaps": np.nan})
    signed = history.assign(
        accuracy=history["accuracy"].where(history["accuracy"].notna(), -np.nan)
    )
    assert checksum(history) == checksum(history[["accuracy", "epoch"]]) == checksum(signed)
    changed = history.assign(accuracy=history["accuracy"].fillna(0) + 1)
    if not changed["accuracy"].equals(history["accuracy"]):
        assert checksum(changed) != checksum(history)


@pytest.mark.parametrize("damage", ["cut", "text", "value", "key", "missing"])
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
        frame = parquet.read_table(path).to_pandas()
        frame["accuracy" if damage == "value" else "key"] = 0.9 if damage == "value" else "0" * 16
        frame.to_parquet(path, index=False)
    with pytest.raises(UserError) as error:
        read_runs(path)
    assert str(path) in str(error.value)
