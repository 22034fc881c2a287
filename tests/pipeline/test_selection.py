"""Each selection has a folder of its own."""

from __future__ import annotations

import pytest
import yaml

from mdpu.errors import UserError
from mdpu.pipeline.config import LONGEST, load_config, select, unreached
from mdpu.pipeline.files import REPOSITORY


@pytest.fixture
def overlay(tmp_path):
    """Write an overlay and return its path."""

    def write(stem="mine", **content):
        path = tmp_path / f"{stem}.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    return write


def test_an_experiment_alone_is_its_configuration():
    quick = [REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"]
    assert select("quick", [], []) == load_config(quick)
    assert select("paper", [], []) == load_config([REPOSITORY / "config.yaml"])


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (["datasets=[mnist]"], "paper-datasets-mnist"),
        (["datasets=[mnist, svhn]", "experiments=[table2]"], "paper-datasets-mnist-svhn-experiments-table2"),
        (["axes={seed: [1, 2]}"], "paper-axes-seed-1-2"),
        (["protocol={training: {epochs: 5}}"], "paper-protocol-training-epochs-5"),
        (["name=mine"], "mine"),
        (["name=mine", "datasets=[mnist]"], "mine"),
    ],
)
def test_a_selection_is_named_by_its_values(values, name):
    assert select("paper", [], values)["name"] == name


def test_two_selections_have_two_folders():
    assert len({select("paper", [], [f"datasets=[{name}]"])["name"] for name in ("mnist", "svhn")}) == 2
    datasets = "datasets=[mnist, fashion-mnist, emnist-digits, emnist-letters-a-i, svhn]"
    long = [select("paper", [], [datasets, f"axes={{seed: [{seed}]}}"]) for seed in (1, 2)]
    assert len({config["name"] for config in long}) == 2
    assert all(len(config["name"]) <= LONGEST for config in long)


def test_a_file_adds_to_the_experiment_and_gives_its_name(overlay):
    config = select("quick", [overlay(axes={"seed": [1]})], [])
    assert config["name"] == "quick-mine"
    assert config["datasets"] == ["digits"]
    assert config["axes"]["seed"] == [1]
    assert select("quick", [overlay(name="mine")], [])["name"] == "mine"


def test_experiments_that_an_axis_does_not_reach_are_found():
    """Those of quick set their methods and seeds, but no law; a value for one of them reaches it."""
    assert unreached("quick", select("quick", [], ["axes={law: [similar]}"])) == {}
    quick = ["quick-pairs", "quick-triples", "quick-curves"]
    assert unreached("quick", select("quick", [], ["axes={seed: [1]}"])) == {"seed": quick}
    own = "definitions={experiments: {quick-pairs: {seed: [1]}}}"
    assert unreached("quick", select("quick", [], ["axes={seed: [1]}", own])) == {"seed": quick[1:]}


def test_an_unknown_experiment_is_named():
    with pytest.raises(UserError, match="experiment: 'nope' is unknown; known are laws, paper, quick, reference"):
        select("nope", [], [])
