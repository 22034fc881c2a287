"""From configuration to runs, cells, keys, settings and experiments, and what is left out."""

import itertools
import json
from operator import attrgetter

import pytest
from configs import FIRST, FLAT, SETTING, config
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.methods import available_methods
from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Departure, Plan, Run, canonical_prior, parse_run

VARIANTS = {
    "base": None,
    "three-n": {"sampling": {"n_unlabeled": "3n"}},
    "adam": {"training": {"optimizer": "adam"}},
    "stem": {"training": {"networks": {"resnet34": {"stem": "imagenet"}}}},
    "both": {"sampling": {"overlap": False}, "training": {"networks": {"mlp": {"hidden": [8, 8]}}}},
}


# -- runs and their names -------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [0, 1, -0.5, 1.5, "nan", "inf", "half", True, None, "", [0.5]])
def test_what_is_no_prior_is_refused(prior):
    with pytest.raises(UserError):
        canonical_prior(prior)


@given(st.floats(1e-9, 1, exclude_max=True))
def test_a_canonical_prior_is_the_same_number_and_canonical_again(prior):
    text = canonical_prior(prior)
    assert float(text) == prior
    assert canonical_prior(text) == text
    assert text.startswith("0.")
    assert text[2:].isdigit()
    assert not text.endswith("0")


names = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
runs = st.builds(
    Run,
    dataset=names,
    variant=names,
    tuple_size=st.integers(1, 20),
    n=st.integers(1, 10**6),
    prior=st.floats(0.001, 0.999).map(canonical_prior),
    method=st.sampled_from(available_methods()),
    loss=st.sampled_from(["logistic", "ramp", "squared", "hinge"]),
    seed=st.integers(0, 10**9),
    law=st.sampled_from(["dominant", "exactly-1", "similar"]),
)


@given(runs)
def test_a_run_is_read_back_from_its_name_and_its_first_trial_from_its_cell(run):
    assert parse_run(run.name) == run
    assert parse_run(run.cell).cell == run.cell


def test_names_leave_out_what_is_usual():
    run = Run("mnist", "base", 2, 10000, "0.5", "relu", "logistic", 1)
    assert run.name == "mnist/base/m2/n10000/prior0.5/relu/seed1"
    other = Run("mnist", "base", 3, 10000, "0.5", "relu", "ramp", 2, "exactly-1")
    assert other.cell == "mnist/base/m3-exactly-1/n10000/prior0.5/relu.ramp"
    assert other.trial == "mnist/m3-exactly-1/n10000/prior0.5/seed2"


@pytest.mark.parametrize(
    "text", ["", "mnist", "mnist/base/2/n5/prior0.5/abs/seed1", "a/b/m2/n5/prior0.5/abs/x"]
)
def test_what_names_no_run_is_refused(text):
    with pytest.raises(UserError):
        parse_run(text)


# -- grids and cells ------------------------------------------------------------------------------


def test_runs_are_the_grid_with_overlaps_once():
    plan = Plan(config())
    grid = itertools.product(["0.4", "0.5"], ["ure", "abs"], ["logistic"], [1, 2])
    expected = {
        Run(dataset, "base", size, n, *point)
        for point in grid
        for dataset, size, n in [("flat", 2, 30), ("deep", 2, 20), ("flat", 3, 30)]
    }
    assert set(plan.runs) == expected
    assert len(plan.runs) == len(expected) == 24
    assert {name: len(e.runs) for name, e in plan.experiments.items()} == {
        "first": 16,
        "second": 16,
    }
    assert sorted(run for cell in plan.cells.values() for run in cell) == list(plan.runs)
    assert all(len(cell) == 2 for cell in plan.cells.values())


def test_a_method_may_have_trials_of_its_own():
    seed = {"default": [1], "abs": [1, 2, 3]}
    plan = Plan(config(datasets=["flat"], **{FIRST + "seed": seed}))
    found = {(run.method, run.seed) for run in plan.experiment("first").runs}
    assert found == {("ure", 1), ("abs", 1), ("abs", 2), ("abs", 3)}
    # The split of a cell holds the trials of all methods.
    assert set(plan.drawing("flat/base/m2/n30/prior0.4")["trials"]) == {"1", "2", "3", "4", "5"}


def test_a_dataset_may_have_trials_of_its_own_and_they_come_first():
    seed = {"default": [1], "abs": [1, 2, 3], "deep": [7]}
    plan = Plan(config(**{FIRST + "seed": seed}))
    found = {(run.dataset, run.method, run.seed) for run in plan.experiment("first").runs}
    assert {one for one in found if one[0] == "deep"} == {("deep", "ure", 7), ("deep", "abs", 7)}
    assert ("flat", "abs", 3) in found


def test_an_experiments_seeds_take_the_place_of_all_of_the_axes():
    plan = Plan(
        config(axes__seed={"default": [1], "abs": [1, 2, 3]}, **{FIRST + "seed": {"default": [4]}})
    )
    assert {run.seed for run in plan.experiment("first").runs} == {4}
    assert {run.seed for run in plan.experiment("second").runs if run.method == "abs"} == {1, 2, 3}


@pytest.mark.parametrize("name", ["reference", "own-split", "laws", "bags"])
def test_a_shipped_selection_trains_nothing(name):
    plan = Plan(load_config([REPOSITORY / "config" / f"{name}.yaml"]))
    assert [cell for cell in plan.cells if plan.to_train(cell)] == []


def test_an_experiment_without_runs_of_the_selected_datasets_is_not_run():
    plan = Plan(config(datasets=["deep"]))
    assert list(plan.experiments) == ["first"]
    assert plan.not_run == {"second": "Second"}
    assert plan.experiment("first").not_run == ("flat",)


@pytest.mark.parametrize("function", ["experiment", "dataset", "protocol.variant", "find_runs"])
def test_names_that_the_plan_does_not_have_are_refused(function):
    with pytest.raises(UserError):
        attrgetter(function)(Plan(config()))("zzz")


def test_illustrations_have_no_runs_and_the_setting_shows_the_first_dataset():
    losses = {"kind": "losses", "title": "Losses"}
    changed = config(
        definitions__experiments={"setting": SETTING, "losses": losses}, datasets=["deep", "flat"]
    )
    plan = Plan(changed)
    assert plan.runs == ()
    assert plan.datasets == ["deep"]
    assert Plan({**changed, "experiments": ["losses"]}).datasets == []


# -- the protocol under its variants --------------------------------------------------------------


def test_a_variant_overrides_the_protocol_and_base_does_not():
    plan = Plan(config(definitions__experiments__second__variant=["three-n"]))
    expected = {"n": 30, "n_unlabeled": 30, "replacement": True, "overlap": True, "broken": 0.0}
    assert plan.protocol.sampling("base", 2, 30) == expected
    assert plan.protocol.sampling("three-n", 2, 30) == {**expected, "n_unlabeled": 90}
    settings = plan.protocol.settings("base", "mlp")
    assert (settings.epochs, list(settings.architecture["hidden"]), settings.batch_size) == (
        3,
        [8],
        10,
    )


@pytest.mark.parametrize(
    ("counts", "size", "expected"), [("tuples", 3, 30), ("images", 3, 10), ("images", 40, 1)]
)
def test_n_counts_tuples_or_their_members(counts, size, expected):
    plan = Plan(config(protocol__sampling__n_counts=counts, protocol__sampling__n_unlabeled="n/2"))
    assert plan.protocol.sampling("base", size, 30)["n"] == expected
    assert plan.protocol.sampling("base", size, 30)["n_unlabeled"] == 15


def test_a_variant_departs_in_the_keys_in_which_it_differs():
    plan = Plan(config(definitions__variants=VARIANTS))
    assert (
        plan.protocol.departures("base", ["mlp", "resnet34"])
        == plan.protocol.departures("adam", ["mlp"])
        == []
    )
    assert plan.protocol.departures("three-n", ["mlp"]) == [Departure("n_unlabeled", "n", "3n")]
    assert plan.protocol.departures("stem", ["mlp"]) == []
    assert plan.protocol.departures("stem", ["mlp", "resnet34"]) == [
        Departure("stem", "cifar", "imagenet")
    ]
    assert {one.key: one.value for one in plan.protocol.departures("both", ["mlp"])} == {
        "overlap": "false",
        "hidden": "[8, 8]",
    }


# -- keys -----------------------------------------------------------------------------------------


def keys(**changes):
    """Return the keys of the runs of CONFIG's flat dataset with changes, by name."""
    plan = Plan(config(datasets=["flat"], **changes))
    return {run.name: plan.key(run) for run in plan.runs}


def test_every_run_has_a_key_of_its_own():
    assert len(set(keys().values())) == len(keys()) == 16


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol__training__epochs": 4},
        {"protocol__training__networks__mlp__learning_rate": 0.01},
        {"protocol__training__networks__mlp__hidden": [9]},
        {"protocol__training__precision": "bfloat16"},
        {"protocol__training__prior_offset": 0.1},
        {"protocol__sampling__n_unlabeled": "2n"},
        {"protocol__sampling__broken": 0.1},
        {FLAT + "positive": [2]},
    ],
)
def test_what_a_number_depends_on_changes_every_key(changes):
    assert not set(keys().values()) & set(keys(**changes).values())


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"device": "cpu"},
        {"checkpoint_seconds": 1},
        {"protocol__reporting__average_last": 1},
        {"comparison__level": 0.9},
        {FLAT + "title": "Another"},
        {"protocol__training__networks__resnet34__stem": "imagenet"},
        {"axes__seed": [2, 1]},
    ],
)
def test_what_no_number_depends_on_changes_no_key(changes):
    assert keys() == keys(**changes)


def test_a_variants_runs_have_the_keys_of_a_protocol_that_is_the_same():
    variant = keys(
        definitions__variants={"base": None, "v": {"training": {"epochs": 9}}}, axes__variant=["v"]
    )
    protocol = keys(protocol__training__epochs=9)
    assert sorted(variant.values()) == sorted(protocol.values())


def test_the_precision_is_the_networks_unless_a_variant_names_one():
    variants = {
        "base": None,
        "rounded": {"training": {"precision": "bfloat16"}},
        "exact": {"training": {"networks": {"resnet34": {"precision": "float32"}}}},
        "both": {
            "training": {
                "precision": "bfloat16",
                "networks": {"resnet34": {"precision": "float32"}},
            }
        },
    }
    protocol = Plan(config(definitions__variants=variants)).protocol
    found = {
        name: [protocol.settings(name, net).precision for net in ("mlp", "resnet34")]
        for name in variants
    }
    assert found == {
        "base": ["float32", "tf32"],
        "rounded": ["bfloat16", "bfloat16"],
        "exact": ["float32", "float32"],
        "both": ["bfloat16", "float32"],
    }


def test_every_run_that_is_shipped_of_own_images_is_found():
    plan = Plan(load_config(["config/own-split.yaml"]))
    assert all(not plan.to_train(cell) for cell in plan.cells)


def test_a_compiled_training_has_a_key_of_its_own_and_a_perceptron_is_not_compiled():
    plain, compiled = (
        Plan(config(datasets=["deep"], protocol__training__networks__resnet34__compile=value))
        for value in (False, True)
    )
    assert all(plain.key(run) != compiled.key(run) for run in plain.runs)
    assert "compile" not in plain.spec(plain.runs[0].cell)["settings"]
    with pytest.raises(UserError, match=r"networks\.mlp"):
        Plan(config(protocol__training__networks__mlp__compile=True))


def test_own_images_have_keys_once_their_checksum_is_known(tmp_path):
    own = {
        "title": "Own",
        "source": f"{tmp_path}/own.npz",
        "positive": [0],
        "negative": [1],
        "network": "mlp",
    }
    one = "1" * 64
    two = "2" * 64

    def key(checksums=None, **declared):
        plan = Plan(
            config(definitions__datasets={"flat": {**own, **declared}}, datasets=["flat"]),
            checksums,
        )
        return plan.key(plan.runs[0])

    assert key() is None
    assert key({"flat": one}) == key(sha256=one) != key({"flat": two})


def test_what_a_job_needs_is_plain_json_and_says_the_law():
    law = {"definitions__laws": {"mine": [0, 0.5, 1]}, FIRST + "law": ["mine", "exactly-1"]}
    plan = Plan(config(**law))
    cells = [cell for cell in plan.cells if cell.startswith("flat/base/m2-")]
    found = {plan.spec(cell)["sampling"]["law"] for cell in cells}
    assert found == {"0,0.5,1", "exactly-1"}
    for cell in plan.cells:
        assert json.loads(json.dumps(plan.spec(cell))) == plan.spec(cell)


def test_a_cell_whose_runs_are_shipped_needs_no_training(tmp_path):
    plan = Plan(config(datasets=["flat"]))
    cell, (first, second) = next(iter(plan.cells.items()))
    (tmp_path / "flat.keys").write_text(f"{plan.key(first)}\n")
    (tmp_path / "flat.parquet").touch()
    shipping = Plan(config(datasets=["flat"], shipped=str(tmp_path)))
    assert shipping.to_train(cell) == [second]
    assert [path.resolve() for path in shipping.shipped_files(cell)] == [
        (tmp_path / "flat.parquet").resolve()
    ]
    assert Plan(config(datasets=["flat"], shipped=None)).to_train(cell) == [first, second]


def test_the_paper_is_what_the_paper_states():
    plan = Plan(load_config())
    assert [one.kind for one in plan.experiments.values()].count("table") == 4
    cells = {
        (run.dataset, run.tuple_size, run.n, run.prior) for run in plan.runs if run.method == "relu"
    }
    assert {prior for *_, prior in cells} == {"0.4", "0.5", "0.6"}
    assert {n for dataset, _, n, _ in plan.table_rows if dataset == "mnist"} == {10000, 12000}
    assert {n for dataset, _, n, _ in plan.table_rows if dataset == "emnist-balanced"} == {
        4000,
        5000,
    }
    assert len(plan.table_rows) == 9 * 2 * 2 * 3


def test_the_hours_of_a_gpu_are_those_of_the_runs_that_were_timed():
    """Nine runs of CIFAR-10 took 305 s; a perceptron asks for no GPU."""
    changes = ["datasets=[own-cifar-10]", "shipped=null"]
    plan = Plan(load_config([REPOSITORY / "config" / "own-split.yaml"], changes))
    assert 60 * sum(map(plan.gpu_minutes, plan.cells)) == pytest.approx(305, rel=0.01)

    plan = Plan(load_config([REPOSITORY / "config" / "quick.yaml"]))
    assert {plan.gpu_minutes(cell) for cell in plan.cells} == {0}
