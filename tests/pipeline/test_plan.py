"""From configuration to runs, cells, keys, settings and experiments, and what is left out."""

import itertools
import json
from collections import defaultdict
from operator import attrgetter

import pytest
from configs import FIRST, FLAT, SETTING, config
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.methods import available_methods
from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan, Run, canonical_prior, parse_run

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
    places = [("flat", 2, 30), ("deep", 2, 20), ("flat", 3, 30)]
    grid = itertools.product(places, ["0.4", "0.5"], ["ure", "abs"], [1, 2])
    expected = {
        Run(dataset, "base", size, n, prior, method, "logistic", seed)
        for (dataset, size, n), prior, method, seed in grid
    }
    assert set(plan.runs) == expected
    assert len(plan.runs) == len(expected) == 24
    counts = {name: len(experiment.runs) for name, experiment in plan.experiments.items()}
    assert counts == {"first": 16, "second": 16}


def trials(plan, experiment):
    """Return the method and the seed of each run on the flat dataset, and of each on the deep."""
    runs = plan.experiment(experiment).runs
    on_flat = {(run.method, run.seed) for run in runs if run.dataset == "flat"}
    on_deep = {(run.method, run.seed) for run in runs if run.dataset == "deep"}
    return on_flat, on_deep


SEEDS = {"default": [1], "abs": [1, 2, 3]}


def test_the_runs_of_cells_are_those_of_the_plan():
    plan = Plan(config())
    assert sorted(itertools.chain(*plan.cells.values())) == list(plan.runs)
    assert {len(cell) for cell in plan.cells.values()} == {2}


def test_a_method_may_have_trials_of_its_own():
    overlay = {FIRST + "seed": SEEDS}
    plan = Plan(config(datasets=["flat"], **overlay))
    on_flat, _ = trials(plan, "first")
    assert on_flat == {("ure", 1), ("abs", 1), ("abs", 2), ("abs", 3)}
    # The split of a cell holds the trials of all methods.
    drawing = plan.drawing("flat/base/m2/n30/prior0.4")
    assert set(drawing["trials"]) == {"1", "2", "3", "4", "5"}


def test_a_dataset_may_have_trials_of_its_own_and_they_come_first():
    plan = Plan(config(**{FIRST + "seed": SEEDS | {"deep": [7]}}))
    on_flat, on_deep = trials(plan, "first")
    assert on_deep == {("ure", 7), ("abs", 7)}
    assert ("abs", 3) in on_flat


def test_an_experiments_seeds_take_the_place_of_all_of_the_axes():
    seed = {"default": [4]}
    plan = Plan(config(axes__seed=SEEDS, **{FIRST + "seed": seed}))
    for on_dataset in trials(plan, "first"):
        assert on_dataset == {("ure", 4), ("abs", 4)}
    on_flat, _ = trials(plan, "second")
    assert on_flat == {("ure", 1), ("abs", 1), ("abs", 2), ("abs", 3)}


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
    assert settings.epochs == 3
    assert settings.batch_size == 10
    assert list(settings.architecture["hidden"]) == [8]


@pytest.mark.parametrize(
    ("counts", "size", "expected"), [("tuples", 3, 30), ("images", 3, 10), ("images", 40, 1)]
)
def test_n_counts_tuples_or_their_members(counts, size, expected):
    plan = Plan(config(protocol__sampling__n_counts=counts, protocol__sampling__n_unlabeled="n/2"))
    assert plan.protocol.sampling("base", size, 30)["n"] == expected
    assert plan.protocol.sampling("base", size, 30)["n_unlabeled"] == 15


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


@pytest.mark.parametrize(
    ("variant", "of_mlp", "of_resnet"),
    [
        ("base", "float32", "tf32"),
        ("rounded", "bfloat16", "bfloat16"),
        ("exact", "float32", "float32"),
        ("both", "bfloat16", "float32"),
    ],
)
def test_the_precision_is_the_networks_unless_a_variant_names_one(variant, of_mlp, of_resnet):
    rounded = {"precision": "bfloat16"}
    exact = {"networks": {"resnet34": {"precision": "float32"}}}
    variants = {
        "base": None,
        "rounded": {"training": rounded},
        "exact": {"training": exact},
        "both": {"training": rounded | exact},
    }
    protocol = Plan(config(definitions__variants=variants)).protocol
    assert protocol.settings(variant, "mlp").precision == of_mlp
    assert protocol.settings(variant, "resnet34").precision == of_resnet


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


def test_a_compiled_training_has_a_key_of_its_own():
    compile_key = "protocol__training__networks__resnet34__compile"
    plain = Plan(config(datasets=["deep"], **{compile_key: False}))
    compiled = Plan(config(datasets=["deep"], **{compile_key: True}))
    for run in plain.runs:
        assert plain.key(run) != compiled.key(run)
    assert "compile" not in plain.spec(plain.runs[0].cell)["settings"]


def test_a_perceptron_is_not_compiled():
    with pytest.raises(UserError, match=r"networks\.mlp"):
        Plan(config(protocol__training__networks__mlp__compile=True))


def test_what_a_job_needs_says_the_law():
    laws = {"definitions__laws": {"mine": [0, 0.5, 1]}, FIRST + "law": ["mine", "exactly-1"]}
    plan = Plan(config(datasets=["flat"], experiments=["first"], **laws))
    told = {plan.spec(cell)["sampling"]["law"] for cell in plan.cells}
    assert told == {"0,0.5,1", "exactly-1"}


def test_what_a_job_needs_is_plain_json():
    plan = Plan(config())
    for cell in plan.cells:
        spec = plan.spec(cell)
        assert json.loads(json.dumps(spec)) == spec


def test_the_paper_is_what_the_paper_states():
    plan = Plan(load_config())
    kinds = [experiment.kind for experiment in plan.experiments.values()]
    assert kinds.count("table") == 4
    assert {run.prior for run in plan.runs if run.method == "relu"} == {"0.4", "0.5", "0.6"}

    sizes = defaultdict(set)
    for dataset, _, n, _ in plan.table_rows:
        sizes[dataset].add(n)
    assert sizes["mnist"] == {10000, 12000}
    assert sizes["emnist-balanced"] == {4000, 5000}
    assert len(plan.table_rows) == 9 * 2 * 2 * 3


def test_the_hours_of_a_gpu_are_those_of_the_runs_that_were_timed():
    """Nine runs of CIFAR-10 took 305 s."""
    own_split = load_config([REPOSITORY / "config" / "own-split.yaml"])
    plan = Plan(own_split | {"datasets": ["own-cifar-10"], "shipped": None})
    seconds = 60 * sum(map(plan.gpu_minutes, plan.cells))
    assert seconds == pytest.approx(305, rel=0.01)


def test_a_perceptron_asks_for_no_gpu():
    plan = Plan(load_config([REPOSITORY / "config" / "quick.yaml"]))
    assert {plan.gpu_minutes(cell) for cell in plan.cells} == {0}
