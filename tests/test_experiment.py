"""From configuration to runs, cohorts and names; and what is said about a configuration that is wrong."""

from __future__ import annotations

import copy
import itertools
from operator import attrgetter

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.files import REPOSITORY
from mdpu.study.config import METHODS_FOLDER, SCHEMA, available_methods, load_config, merge
from mdpu.study.grid import Run, canonical_prior, parse_run
from mdpu.study.plan import Plan
from mdpu.study.protocol import Departure, resolve_n_unlabeled

# The paper's configuration, with small definitions of its own: a key that the schema demands tomorrow is there.
CONFIG = {
    **merge(
        yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8")),
        {
            "name": "tests",
            "experiments": "all",
            "axes": {"prior": [0.4, 0.5], "method": ["ure", "abs"], "seed": [1, 2]},
            "protocol": {"training": {"epochs": 3, "networks": {"mlp": {"hidden": [8], "batch_size": 10}}}},
        },
    ),
    "definitions": {
        "datasets": {
            "flat": {"title": "Flat", "source": "digits", "positive": [0], "negative": [1], "network": "mlp"},
            "deep": {"title": "Deep", "source": "digits", "positive": [0], "negative": [1], "network": "resnet34"},
        },
        "variants": {"base": None, "three-n": {"sampling": {"n_unlabeled": "3n"}}},
        "experiments": {
            "first": {"kind": "table", "title": "First", "tuple_size": [2], "n": {"default": 30, "deep": 20}},
            "second": {"kind": "curves", "title": "Second", "datasets": ["flat"], "tuple_size": [2, 3], "n": 30},
        },
    },
}


def config(**changes):
    """Return a copy of CONFIG with values set at dotted keys, written with double underscores."""
    changed = copy.deepcopy(CONFIG)
    for dotted, value in changes.items():
        *parents, last = dotted.split("__")
        place = changed
        for key in parents:
            place = place[key]
        place[last] = value
    return changed


# -- priors and names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "canonical"),
    [(0.4, "0.4"), ("0.40", "0.4"), ("4e-1", "0.4"), (1e-5, "0.00001"), (0.123456, "0.123456"), (".5", "0.5")],
)
def test_priors_have_one_way_to_be_written(written, canonical):
    assert canonical_prior(written) == canonical


@pytest.mark.parametrize("prior", [0, 1, -0.5, 1.5, "nan", "inf", "half", True, None, "", [0.5]])
def test_what_is_no_prior_is_refused(prior):
    with pytest.raises(UserError, match="is not a number strictly between 0 and 1"):
        canonical_prior(prior)


@given(st.floats(1e-9, 1, exclude_max=True))
def test_a_canonical_prior_is_the_same_number_and_canonical_again(prior):
    text = canonical_prior(prior)
    assert float(text) == prior
    assert canonical_prior(text) == text
    assert text.startswith("0.")
    assert text[2:].isdigit()
    assert not text.endswith("0")


FIRST = "definitions__experiments__first__"
FLAT = "definitions__datasets__flat__"
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
)


@given(runs)
def test_a_run_is_read_back_from_its_name(run):
    assert parse_run(run.name) == run


@pytest.mark.parametrize(
    "text", ["", "mnist", "mnist/base/2/n5/prior0.5/abs/logistic/seed1", "a/b/m2/n5/prior0.5/abs/x"]
)
def test_what_names_no_run_is_refused(text):
    with pytest.raises(UserError, match="is not the name of a run; an example is mnist/base/m2/"):
        parse_run(text)


# -- merging --------------------------------------------------------------------------------------


def test_overlays_merge_mappings_and_replace_lists_and_values():
    base = {"a": {"x": 1, "y": [1, 2]}, "b": 2, "c": {"d": {"e": 1}}}
    overlay = {"a": {"y": [3]}, "b": {"new": 1}, "c": {"d": {"f": 2}}}
    assert merge(base, overlay) == {"a": {"x": 1, "y": [3]}, "b": {"new": 1}, "c": {"d": {"e": 1, "f": 2}}}
    assert base == {"a": {"x": 1, "y": [1, 2]}, "b": 2, "c": {"d": {"e": 1}}}


def test_files_are_laid_over_each_other_in_order(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(yaml.safe_dump(CONFIG))
    second.write_text("name: other\naxes: {prior: [0.6]}\n")
    found = load_config([first, second])
    assert found["name"] == "other"
    assert found["axes"] == {**CONFIG["axes"], "prior": [0.6]}


# -- plans ----------------------------------------------------------------------------------------


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
    assert {name: len(e.runs) for name, e in plan.experiments.items()} == {"first": 16, "second": 16}


def test_selections_restrict_datasets_and_experiments():
    assert {run.dataset for run in Plan(config(datasets=["deep"])).runs} == {"deep"}
    plan = Plan(config(experiments=["second"]))
    assert list(plan.experiments) == ["second"]
    assert plan.datasets == ["flat"]


def test_cohorts_span_the_axes_that_the_configuration_names():
    plan = Plan(config())
    assert {name: len(cohort.runs) for name, cohort in plan.cohorts.items() if cohort.network == "mlp"} == {
        "flat/base/m2/n30": 8,
        "flat/base/m3/n30": 8,
    }
    assert all(len(cohort.runs) == 1 for cohort in plan.cohorts.values() if cohort.network == "resnet34")
    narrow = Plan(config(cohort__mlp=["seed"], datasets=["flat"]))
    assert "flat/base/m2/n30/prior0.4/ure/logistic" in narrow.cohorts
    assert all(len({run.prior for run in cohort.runs}) == 1 for cohort in narrow.cohorts.values())
    for each in (plan, narrow):
        assert sorted(run for cohort in each.cohorts.values() for run in cohort.runs) == list(each.runs)


def test_splits_of_a_cohort_are_shared_between_methods():
    cohort = Plan(config()).cohort("flat/base/m2/n30")
    assert cohort.splits == [f"flat/base/m2/prior{prior}/n30/seed{seed}" for prior in ("0.4", "0.5") for seed in (1, 2)]


def test_a_variant_overrides_the_protocol_and_base_does_not():
    plan = Plan(config(definitions__experiments__second__variant=["three-n"]))
    assert plan.protocol.sampling("base", 30) == {"n_unlabeled": 30, "replacement": True, "overlap": True}
    assert plan.protocol.sampling("three-n", 30) == {"n_unlabeled": 90, "replacement": True, "overlap": True}
    training = plan.protocol.training("base", "mlp")
    assert (training["epochs"], training["hidden"], training["batch_size"]) == (3, [8], 10)
    assert training["network"] == "mlp"
    assert "stem" not in training


@pytest.mark.parametrize(("value", "n", "expected"), [("n", 7, 7), ("3n", 7, 21), (5, 7, 5)])
def test_unlabeled_counts_are_numbers_or_multiples_of_n(value, n, expected):
    assert resolve_n_unlabeled(value, n) == expected


@pytest.mark.parametrize(("counts", "size", "expected"), [("tuples", 3, 30), ("images", 3, 10), ("images", 40, 1)])
def test_n_counts_tuples_or_their_members(counts, size, expected):
    plan = Plan(config(protocol__sampling__n_counts=counts))
    assert plan.protocol.number_of_tuples("base", size, 30) == expected
    assert plan.protocol.sampling("base", 30)["n_unlabeled"] == 30


VARIANTS = {
    "base": None,
    "three-n": {"sampling": {"n_unlabeled": "3n"}},
    "ninety": {"sampling": {"n_unlabeled": 90}},
    "adam": {"training": {"optimizer": "adam"}},
    "stem": {"training": {"networks": {"resnet34": {"stem": "imagenet"}}}},
    "both": {"sampling": {"overlap": False}, "training": {"networks": {"mlp": {"hidden": [8, 8]}}}},
}


def test_a_variant_that_changes_nothing_shares_the_runs_of_one_that_is_the_same():
    changes = {"definitions__variants": VARIANTS, FIRST + "variant": list(VARIANTS)}
    changed = config(**changes, experiments=["first"])
    changed["definitions"]["experiments"]["first"]["kind"] = "misspecification"
    plan = Plan(changed)
    found = {dataset: {run.variant for run in plan.runs if run.dataset == dataset} for dataset in ("flat", "deep")}
    # n is 30 for flat and 20 for deep, and only deep has a stem, only flat hidden layers.
    assert found == {"flat": {"base", "three-n", "both"}, "deep": {"base", "three-n", "ninety", "stem", "both"}}
    assert len(plan.runs) == len(set(plan.runs)) == 8 * (3 + 5)
    assert len(plan.experiments["first"].runs) == len(plan.runs)


def test_a_variant_departs_in_the_keys_in_which_it_differs():
    plan = Plan(config(definitions__variants=VARIANTS))
    assert plan.protocol.departures("base", ["mlp", "resnet34"]) == plan.protocol.departures("adam", ["mlp"]) == []
    assert plan.protocol.departures("three-n", ["mlp"]) == [Departure("n_unlabeled", "n", "3n")]
    assert plan.protocol.departures("stem", ["mlp"]) == []
    assert plan.protocol.departures("stem", ["mlp", "resnet34"]) == [Departure("stem", "cifar", "imagenet")]
    assert plan.protocol.departures("both", ["mlp"]) == [
        Departure("overlap", "true", "false"),
        Departure("hidden", "[8]", "[8, 8]"),
    ]


def study(**keys):
    """Return CONFIG with one experiment of kind sensitivity."""
    changed = config(definitions__readings={"last": {"average_last": 1}, "best": {"average_last": "best"}})
    experiment = {"kind": "sensitivity", "title": "Study", "tuple_size": [2], "n": 30, "datasets": ["flat"], **keys}
    changed["definitions"]["experiments"] = {"study": experiment}
    return changed


def test_readings_report_the_same_runs_in_another_way():
    plan = Plan(study(variant=["base", "three-n"], reading=["last", "best"], base_method=["relu"]))
    assert plan.protocol.reporting("last") == {"average_last": 1, "test_prior": "natural"}
    assert plan.protocol.reporting("base") == CONFIG["protocol"]["reporting"]
    experiment = plan.experiment("study")
    assert (experiment.readings, experiment.base_methods) == (("last", "best"), ("relu",))
    # 2 priors, 2 seeds, of 2 methods under 2 variants and of 1 method under base alone: readings add none.
    assert len(plan.runs) == 4 * (2 * 2 + 1)
    assert {run.variant for run in plan.runs if run.method == "relu"} == {"base"}
    with pytest.raises(UserError, match="reading: 'zzz' is unknown"):
        plan.protocol.reporting("zzz")


def test_what_a_study_depends_on_holds_its_variants_and_readings():
    plan = Plan(study(variant=["base", "three-n"], reading=["last"]))
    before = plan.experiment_settings("study")
    plan.config["definitions"]["readings"]["last"]["average_last"] = 2
    after = plan.experiment_settings("study")
    assert before != after
    assert before["departures"]["variants"]["three-n"] == [("n_unlabeled", "n", "3n")]


@pytest.mark.parametrize(("average", "expected"), [(2, 2), ("all", 3), ("best", 3)])
def test_tuning_averages_the_reported_epochs_and_never_chooses_by_the_test_set(average, expected):
    changed = config(protocol__training__hyperparameters="tuned", protocol__reporting__average_last=average)
    plan = Plan(changed)
    assert plan.tuning_settings("flat/base/m2")["average_last"] == expected


def test_writing_a_plan_keeps_its_content_under_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan, other = Plan(config()), Plan(config(axes__seed=[3]))
    path = plan.layout.write_config().resolve()
    assert load_config([path]) == plan.config
    before = path.stat().st_mtime_ns
    other.layout.write_config()
    assert plan.layout.write_config().resolve() == path
    assert path.stat().st_mtime_ns == before
    assert sorted(path.parent.iterdir()) == sorted(each.layout.config.resolve() for each in (plan, other))


def test_the_papers_configuration_and_the_quick_one_are_valid():
    paper = Plan(load_config([REPOSITORY / "config.yaml"]))
    assert {"table2", "table3", "table4", "table5"} <= set(paper.experiments)
    quick = Plan(load_config([REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"]))
    assert {run.tuple_size for run in quick.runs} == {2, 3}
    assert quick.datasets == ["digits"]


def test_a_method_is_known_by_its_file(monkeypatch, tmp_path):
    for path in METHODS_FOLDER.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "brand_new.py").write_text("")
    monkeypatch.setattr("mdpu.study.config.METHODS_FOLDER", tmp_path)
    assert Plan(config(axes__method=["brand-new"])).runs[0].method == "brand-new"


# -- bad input ------------------------------------------------------------------------------------

WRONG = {
    "a misspelt key": ({"devise": "cpu"}, r"config key devise is unknown; did you mean 'device'\?"),
    "a misspelt key below": (
        {"protocol__training__epoch": 3},
        r"config key protocol\.training\.epoch is unknown; did you mean 'epochs'\?",
    ),
    "a misspelt key of a network": (
        {"protocol__training__networks__mlp__batchsize": 3},
        r"config key protocol\.training\.networks\.mlp\.batchsize is unknown; did you mean 'batch_size'\?",
    ),
    "a key like no other": ({"zzz": 1}, "config key zzz is unknown; known keys are axes, "),
    "a misspelt key of a variant": (
        {"definitions__variants__three-n": {"samplin": {"overlap": False}}},
        r"config key definitions\.variants\.three-n\.samplin is unknown; did you mean 'sampling'\?",
    ),
    "prior 0": ({"axes__prior": [0]}, r"config key axes\.prior\.0: 0 "),
    "prior 1": ({"axes__prior": [0.5, 1.0]}, r"config key axes\.prior\.1: 1\.0 "),
    "prior 1.2 of an experiment": ({FIRST + "prior": [1.2]}, r"definitions\.experiments\.first\.prior\.0: 1\.2 "),
    "a prior that is a word": ({"axes__prior": ["half"]}, r"config key axes\.prior\.0: 'half' is not of type 'number'"),
    "tuple size 0": ({FIRST + "tuple_size": [0]}, r"definitions\.experiments\.first\.tuple_size\.0: 0 "),
    "no seeds": ({"axes__seed": []}, r"config key axes\.seed: \[\] "),
    "a seed twice": ({"axes__seed": [1, 1]}, r"config key axes\.seed: \[1, 1\] has non-unique elements"),
    "an unknown loss": ({"axes__loss": ["logistc"]}, r"config key axes\.loss\.0: 'logistc' is not one of \['logistic'"),
    "an unknown method": (
        {"axes__method": ["asb"]},
        r"config key definitions\.experiments\.first\.method: 'asb' is unknown; did you mean 'abs'\?",
    ),
    "an unknown dataset": ({"datasets": ["flt"]}, r"config key datasets: 'flt' is unknown; did you mean 'flat'\?"),
    "an unknown dataset of an experiment": (
        {FIRST + "datasets": ["mnist"]},
        r"definitions\.experiments\.first\.datasets: 'mnist' is unknown; known are deep, flat",
    ),
    "an unknown experiment": (
        {"experiments": ["frist"]},
        r"config key experiments: 'frist' is unknown; did you mean 'first'\?",
    ),
    "an unknown variant": (
        {"axes__variant": ["bass"]},
        r"definitions\.experiments\.first\.variant: 'bass' is unknown; did you mean 'base'\?",
    ),
    "a class on both sides": (
        {FLAT + "negative": [1, 0]},
        r"config key definitions\.datasets\.flat: class 0 is on both sides; list it as positive or negative",
    ),
    "a number where a mapping is due": ({"protocol": 3}, r"config key protocol: 3 is not of type 'object'"),
    "a missing key": ({"definitions": {"datasets": {}, "variants": {"base": None}}}, r"definitions: 'experiments'"),
    "reporting in a variant": (
        {"definitions__variants__three-n": {"reporting": {"average_last": 1}}},
        r"config key definitions\.variants\.three-n\.reporting: .*put it under definitions\.readings",
    ),
    "a reading called base": (
        {"definitions__readings": {"base": {"average_last": 1}}},
        r"config key definitions\.readings\.base: base is protocol\.reporting itself",
    ),
    "an empty reading": ({"definitions__readings": {"none": {}}}, r"config key definitions\.readings\.none: "),
    "an unknown way to average": (
        {"protocol__reporting__average_last": "bets"},
        r"config key protocol\.reporting\.average_last: 'bets' ",
    ),
    "readings of a table": (
        {FIRST + "reading": ["last"]},
        r"definitions\.experiments\.first\.reading: only an experiment of kind sensitivity has a reading",
    ),
    "no epochs": ({"protocol__training__epochs": 0}, r"config key protocol\.training\.epochs: 0 "),
    "a batch of none": (
        {"protocol__training__networks__mlp__batch_size": 0},
        r"config key protocol\.training\.networks\.mlp\.batch_size: 0 ",
    ),
    "a name with capitals": ({"name": "Paper"}, r"config key name: 'Paper' does not match"),
    "an unknown device": ({"device": "tpu"}, r"config key device: 'tpu' is not one of \['auto', 'cpu', 'cuda'\]"),
}


@pytest.mark.parametrize(("changes", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_configuration_is_refused_in_one_sentence_with_the_keys_name(changes, sentence):
    with pytest.raises(UserError, match=sentence) as error:
        Plan(config(**changes))
    assert "\n" not in str(error.value)


STUDIES = {
    "an unknown reading": ({"reading": ["lats"]}, r"study\.reading: 'lats' is unknown; did you mean 'last'\?"),
    "no base": ({"variant": ["three-n"]}, r"study\.variant: base is what the others are compared with; add it"),
    "an unknown method": ({"base_method": ["rleu"]}, r"study\.method: 'rleu' is unknown; did you mean 'relu'\?"),
    "two sizes": ({"n": [10, 20]}, r"study\.n: an experiment of kind sensitivity shows one n"),
}


@pytest.mark.parametrize(("keys", "sentence"), STUDIES.values(), ids=STUDIES)
def test_a_wrong_study_is_refused_in_one_sentence(keys, sentence):
    with pytest.raises(UserError, match=sentence):
        Plan(study(**keys))


def test_every_required_key_is_missed_by_name():
    for key in yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["required"]:
        lacking = config()
        del lacking[key]
        with pytest.raises(UserError, match=rf"config key \(top level\): '{key}' is a required property"):
            Plan(lacking)


def test_files_that_are_missing_or_no_mapping_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"configuration file .*no\.yaml does not exist"):
        load_config([tmp_path / "no.yaml"])
    (tmp_path / "list.yaml").write_text("- 1\n")
    with pytest.raises(UserError, match=r"configuration file .*list\.yaml holds no mapping of keys"):
        load_config([tmp_path / "list.yaml"])
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    with pytest.raises(UserError, match=r"configuration file .*broken\.yaml is not valid YAML") as error:
        load_config([tmp_path / "broken.yaml"])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("function", ["cohort", "experiment", "dataset", "protocol.variant", "protocol.reporting"])
def test_names_that_the_plan_does_not_have_are_refused(function):
    with pytest.raises(UserError, match="'zzz' is unknown; "):
        attrgetter(function)(Plan(config()))("zzz")


@pytest.mark.parametrize(
    ("experiment", "axis", "values"),
    [
        ("table2", "tuple_size", [2, 3]),
        ("table2", "n", {"default": [10, 20]}),
        ("figure3", "loss", ["logistic", "ramp"]),
    ],
)
def test_an_experiment_spans_no_axis_that_its_kind_cannot_show(experiment, axis, values):
    changed = load_config([REPOSITORY / "config.yaml"])
    changed["definitions"]["experiments"][experiment][axis] = values
    with pytest.raises(UserError, match=rf"{experiment}\.{axis}: .* several are given"):
        Plan(changed)


def test_a_misspelt_dataset_among_the_sizes_is_named():
    changed = load_config([REPOSITORY / "config.yaml"])
    changed["definitions"]["experiments"]["table2"]["n"]["mnits"] = 10
    with pytest.raises(UserError, match=r"table2\.n: 'mnits' is unknown; did you mean 'mnist'"):
        Plan(changed)


# -- what is left out, and what shows no run ------------------------------------------------------

SETTING = {"kind": "setting", "title": "Setting", "tuple_size": [3], "prior": [0.5], "n": 40}
LOSSES = {"kind": "losses", "title": "Losses"}


def test_a_subset_knows_what_it_leaves_out():
    assert Plan(config()).not_run == {}
    assert Plan(config()).experiment("second").not_run == ()
    one = Plan(config(experiments=["first"], datasets=["deep"]))
    assert one.not_run == {"second": "Second"}
    assert one.experiment("first").not_run == ("flat",)
    # Selected, but only on a dataset that is not.
    assert Plan(config(datasets=["deep"])).not_run == {"second": "Second"}


def test_what_a_table_leaves_out_is_among_its_settings():
    everything, one = Plan(config()), Plan(config(datasets=["flat"]))
    assert everything.experiment_settings("second")["not_run"] == one.experiment_settings("second")["not_run"] == ()
    assert one.experiment_settings("first")["not_run"] == ("deep",)


def test_illustrations_have_no_runs_and_the_setting_shows_a_split_of_the_first_dataset():
    changed = config(definitions__experiments={"setting": SETTING, "losses": LOSSES}, datasets=["deep", "flat"])
    plan = Plan(changed)
    assert {name: len(experiment.runs) for name, experiment in plan.experiments.items()} == {"setting": 0, "losses": 0}
    assert plan.experiment("setting").split == "deep/base/m3/prior0.5/n40/seed1"
    assert plan.splits == ["deep/base/m3/prior0.5/n40/seed1"]
    assert plan.datasets == ["deep"]
    assert plan.runs == ()
    assert Plan({**changed, "experiments": ["losses"]}).datasets == []
    before = plan.experiment_settings("setting")
    changed["definitions"]["datasets"]["deep"]["negative"] = [2]
    assert Plan(changed).experiment_settings("setting") != before


@pytest.mark.parametrize(
    ("experiment", "sentence"),
    [
        ({"kind": "losses"}, "definitions.experiments.first: 'title' is a required property"),
        ({"kind": "setting", "title": "S", "tuple_size": [3]}, "first: 'n' is a required property"),
        ({**SETTING, "tuple_size": [2, 3]}, "first.tuple_size: an experiment of kind setting shows one tuple size"),
        ({"kind": "lossses", "title": "L", "tuple_size": [2], "n": 5}, "first.kind: 'lossses' is not one of"),
        (
            {"kind": "size", "title": "S", "tuple_size": [2], "n": 5, "loss": ["ramp", "hinge"]},
            "first.loss: an experiment of kind size shows one loss",
        ),
        (
            {"kind": "loss", "title": "S", "tuple_size": [2], "n": [5, 6]},
            "first.n: an experiment of kind loss shows one n",
        ),
    ],
)
def test_a_wrong_experiment_of_the_newer_kinds_is_told(experiment, sentence):
    with pytest.raises(UserError) as error:
        Plan(config(definitions__experiments__first=experiment))
    assert sentence in str(error.value)


def test_runs_are_found_by_their_name_and_their_cells():
    plan = Plan(config())
    for run in plan.runs[:3]:
        assert plan.find_runs(run.name) == (run,)
        assert plan.cohort_of(run).runs.count(run) == 1
    cell = "flat/base/m2/n30/prior0.4/abs/logistic"
    assert [run.name for run in plan.find_runs(cell)] == [f"{cell}/seed1", f"{cell}/seed2"]
    with pytest.raises(UserError, match=r"'flat/base/m2/n30/prior0.4/asb/logistic' is unknown; did you mean '.*/abs/"):
        plan.find_runs("flat/base/m2/n30/prior0.4/asb/logistic")


def test_runs_of_a_cohort_are_selected_by_name():
    cohort = Plan(config()).cohort("flat/base/m2/n30")
    names = [cohort.runs[3].name, cohort.runs[1].name]
    assert [run.name for run in cohort.select([*names, names[0]])] == names
    with pytest.raises(UserError, match=r"cohort flat/base/m2/n30, run: 'flat/base/m3.*' is unknown; did you mean"):
        cohort.select([cohort.runs[0].name.replace("m2", "m3")])
