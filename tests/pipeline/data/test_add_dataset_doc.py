"""The page add-dataset.md, executed as it stands."""

import re

import pandas as pd
import pytest

from mdpu.pipeline.data.images import read_images
from mdpu.pipeline.files import REPOSITORY

BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: (?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.slow
def test_a_new_dataset_is_a_row_of_the_tables(fresh_clone):
    for block in BLOCK.finditer((REPOSITORY / "docs" / "how-to" / "add-dataset.md").read_text()):
        if block["file"]:
            (fresh_clone.folder / block["file"]).write_text(block["text"])
        elif block["language"] == "bash":
            fresh_clone.run("bash", "-euo", "pipefail", "-c", block["text"])
    results = fresh_clone.folder / "results"
    for name in ("rings", "stripes"):
        table = pd.read_csv(results / name / "tables" / "quick-pairs.csv")
        assert set(table["dataset"]) == {name} and set(table["method"]) == {"ure", "abs"}
        # shapes that an eye tells apart at once, learned from 400 pairs
        assert table["mean"].max() > 75
    pictures, rings = (
        read_images(results / "datasets" / "own" / f"{name}.npz") for name in ("pictures", "rings")
    )
    order = rings.train_labels.argsort(kind="stable")
    assert pictures.classes == rings.classes == ["disk", "ring"]
    assert (pictures.train_images == rings.train_images[order]).all()
