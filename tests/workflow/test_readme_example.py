"""README's own example of `./run paper` makes README's numbers from shipped runs, and trains
nothing.
"""

import re
import subprocess
import sys

import pandas as pd
import pytest

from mdpu.pipeline.files import REPOSITORY, read_csv

pytestmark = pytest.mark.slow

MADE = ("results/paper/comparison.csv", "results/paper/tables/table2.csv")
PROPOSED = ("ure", "relu", "abs")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder in which README's example has made its verdicts and its table, without images."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"^\./run paper --config '(.*)' '(.*)'$", readme, re.MULTILINE)
    folder = tmp_path_factory.mktemp("example")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "Snakefile")]
    command += [
        "--directory",
        str(folder),
        "--configfile",
        str(REPOSITORY / "config.yaml"),
        "--cores",
        "1",
        "--config",
        *words,
        "--",
        *MADE,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^(localrule|rule) train", done.stderr, re.MULTILINE)
    return folder


def test_its_verdicts_are_the_shipped_ones(made):
    shipped = read_csv(REPOSITORY / "results" / "reference" / "comparison.csv")
    ours = read_csv(made / MADE[0]).query("verdict != 'not run' and method in @PROPOSED")
    keys = ["dataset", "tuple_size", "n", "prior", "method"]
    shown = [*keys, "trials", "mean", "std", "verdict"]
    same = shipped.merge(ours[keys], on=keys)[shown]
    assert len(ours) == 9
    pd.testing.assert_frame_equal(ours[shown].reset_index(drop=True), same, check_dtype=False)


def test_its_table_has_readmes_numbers(made):
    cells = read_csv(made / MADE[1]).set_index(["method", "prior"])
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for method in PROPOSED:
        row = re.search(rf"^\| `{method}` \((\d+)\) \| (.*) \|$", readme, re.MULTILINE)
        pairs = row[2].split(" | ")[:3]
        ours = [cells.loc[(method, prior)] for prior in ("0.4", "0.5", "0.6")]
        assert pairs == [f"{cell['mean']:.1f} ± {cell['std']:.1f}" for cell in ours]
        assert {int(row[1])} == {int(cell["trials"]) for cell in ours}
