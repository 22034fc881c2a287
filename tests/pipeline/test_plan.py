"""From configuration to runs, jobs, settings and experiments, and what is left out."""

from __future__ import annotations

import itertools
from operator import attrgetter

import pytest
from configs import CONFIG, FIRST, FLAT, SETTING, VARIANTS, config, study
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.learn import Settings
from mdpu.learn.methods import available_methods
from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import (
    Departure,
    Plan,
    Run,
    canonical_prior,
    parse_run,
)

LOSSES = {"kind": "losses", "uses": "nothing", "title": "Losses"}


# -- runs and their names -------------------------------------------------------------------------


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


# -- grids and jobs -------------------------------------------------------------------------------


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


def test_jobs_span_the_axes_that_the_configuration_names():
    plan = Plan(config())
    assert {name: len(job.runs) for name, job in plan.jobs.items() if job.network == "mlp"} == {
        "flat/base/m2/n30": 8,
        "flat/base/m3/n30": 8,
    }
    assert all(len(job.runs) == 1 for job in plan.jobs.values() if job.network == "resnet34")
    narrow = Plan(config(training_jobs__mlp=["seed"], datasets=["flat"]))
    assert "flat/base/m2/n30/prior0.4/ure/logistic" in narrow.jobs
    assert all(len({run.prior for run in job.runs}) == 1 for job in narrow.jobs.values())
    for each in (plan, narrow):
        assert sorted(run for job in each.jobs.values() for run in job.runs) == list(each.runs)


def test_a_method_may_have_trials_of_its_own():
    seed = {"default": [1], "abs": [1, 2, 3]}
    plan = Plan(config(datasets=["flat"], **{FIRST + "seed": seed}))
    assert {(run.method, run.seed) for run in plan.experiment("first").runs} == {
        ("ure", 1),
        ("abs", 1),
        ("abs", 2),
        ("abs", 3),
    }


def test_failed_jobs_are_left_out_and_what_is_left_keeps_its_runs():
    whole = Plan(config())
    deep = {name: "why" for name in whole.jobs if name.startswith("deep/")}
    plan = Plan({**config(), "failed": {"flat/base/m2/n30": "it broke", **deep}})
    assert list(plan.jobs) == ["flat/base/m3/n30"]
    assert plan.runs == whole.jobs["flat/base/m3/n30"].runs
    assert list(plan.experiments) == ["second"]
    assert plan.not_run == {"first": "First"}
    one = Plan({**config(), "failed": {"flat/base/m2/n30": "it broke"}})
    assert one.experiment("first").not_run == ("flat",)
    assert one.summary()["failed"] == {"flat/base/m2/n30": "it broke"}


def test_a_network_added_by_one_file_is_planned(all_pixels):
    variants = {"base": None, "no-bias": {"training": {"networks": {all_pixels: {"bias": False}}}}}
    changes = {FLAT + "network": all_pixels, "definitions__variants": variants, "datasets": ["flat"]}
    plan = Plan(config(**changes))
    assert plan.network("flat") == all_pixels
    # It does not stack, so each run is a training job, unless the configuration says otherwise.
    assert [job.runs for job in plan.jobs.values()] == [(run,) for run in plan.runs]
    spans = config(**changes)
    spans["training_jobs"][all_pixels] = ["prior", "method", "seed"]
    assert {len(job.runs) for job in Plan(spans).jobs.values()} == {8}
    # What the configuration leaves out has its default.
    assert plan.settings("base", all_pixels) == Settings(epochs=3, network=all_pixels, architecture={"bias": True})
    assert plan.settings("no-bias", all_pixels).architecture == {"bias": False}
    assert plan.protocol.departures("no-bias", [all_pixels]) == [Departure("bias", "true", "false")]
    assert plan.protocol.departures("no-bias", ["mlp"]) == []


def test_a_variant_that_changes_nothing_shares_the_runs_of_one_that_is_the_same():
    changes = {"definitions__variants": VARIANTS, FIRST + "variant": list(VARIANTS)}
    changed = config(**changes, experiments=["first"])
    changed["definitions"]["experiments"]["first"]["kind"] = "choice"
    plan = Plan(changed)
    found = {dataset: {run.variant for run in plan.runs if run.dataset == dataset} for dataset in ("flat", "deep")}
    # n is 30 for flat and 20 for deep, and only deep has a stem, only flat hidden layers.
    assert found == {"flat": {"base", "three-n", "both"}, "deep": {"base", "three-n", "ninety", "stem", "both"}}
    assert len(plan.runs) == len(set(plan.runs)) == 8 * (3 + 5)
    assert len(plan.experiments["first"].runs) == len(plan.runs)


def test_reportings_summarise_the_same_runs_in_another_way():
    plan = Plan(
        study(variant=["base", "three-n"], reporting=["last", "best"], also=[{"method": ["relu"], "variant": ["base"]}])
    )
    assert plan.protocol.reporting("last") == {"average_last": 1, "test_prior": "natural"}
    assert plan.protocol.reporting("base") == CONFIG["protocol"]["reporting"]
    experiment = plan.experiment("study")
    assert experiment.options == {"reporting": ["last", "best"]}
    # 2 priors, 2 seeds, of 2 methods under 2 variants and of 1 method under base alone: reportings add none.
    assert len(plan.runs) == 4 * (2 * 2 + 1)
    assert {run.variant for run in plan.runs if run.method == "relu"} == {"base"}
    with pytest.raises(UserError, match="reporting: 'zzz' is unknown"):
        plan.protocol.reporting("zzz")


def test_writing_a_plan_keeps_its_content_under_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan, other = Plan(config()), Plan(config(axes__seed=[3]))
    path = plan.layout.write_config().resolve()
    assert load_config([path]) == plan.config
    before = path.stat().st_mtime_ns
    other.layout.write_config()
    assert plan.layout.write_config().resolve() == path
    assert path.stat().st_mtime_ns == before
    assert sorted(path.parent.glob("[!.]*")) == sorted(each.layout.config.resolve() for each in (plan, other))


@pytest.mark.parametrize("function", ["job", "experiment", "dataset", "protocol.variant", "protocol.reporting"])
def test_names_that_the_plan_does_not_have_are_refused(function):
    with pytest.raises(UserError, match="'zzz' is unknown; "):
        attrgetter(function)(Plan(config()))("zzz")


def test_illustrations_have_no_runs_and_the_setting_shows_a_split_of_the_first_dataset():
    changed = config(definitions__experiments={"setting": SETTING, "losses": LOSSES}, datasets=["deep", "flat"])
    plan = Plan(changed)
    assert {name: len(experiment.runs) for name, experiment in plan.experiments.items()} == {"setting": 0, "losses": 0}
    assert plan.experiment("setting").split == "deep/base/m3/prior0.5/n40/seed1"
    assert plan.splits == ["deep/base/m3/prior0.5/n40/seed1"]
    assert plan.datasets == ["deep"]
    assert plan.runs == ()
    assert Plan({**changed, "experiments": ["losses"]}).datasets == []


def test_runs_are_found_by_their_name_and_their_cells():
    plan = Plan(config())
    for run in plan.runs[:3]:
        assert plan.find_runs(run.name) == (run,)
        assert plan.job_of(run).runs.count(run) == 1
    cell = "flat/base/m2/n30/prior0.4/abs/logistic"
    assert [run.name for run in plan.find_runs(cell)] == [f"{cell}/seed1", f"{cell}/seed2"]
    with pytest.raises(UserError, match=r"'flat/base/m2/n30/prior0.4/asb/logistic' is unknown; did you mean '.*/abs/"):
        plan.find_runs("flat/base/m2/n30/prior0.4/asb/logistic")


# -- the protocol under its variants --------------------------------------------------------------


def test_a_variant_overrides_the_protocol_and_base_does_not():
    plan = Plan(config(definitions__experiments__second__variant=["three-n"]))
    expected = {"n_unlabeled": 30, "replacement": True, "overlap": True, "broken": 0.0}
    assert plan.protocol.sampling("base", 30) == expected
    assert plan.protocol.sampling("three-n", 30) == {**expected, "n_unlabeled": 90}
    training = plan.protocol.training("base", "mlp")
    assert (training["epochs"], training["hidden"], training["batch_size"]) == (3, [8], 10)
    assert training["network"] == "mlp"
    assert "stem" not in training


@pytest.mark.parametrize(("counts", "size", "expected"), [("tuples", 3, 30), ("images", 3, 10), ("images", 40, 1)])
def test_n_counts_tuples_or_their_members(counts, size, expected):
    plan = Plan(config(protocol__sampling__n_counts=counts))
    assert plan.protocol.number_of_tuples("base", size, 30) == expected
    assert plan.protocol.sampling("base", 30)["n_unlabeled"] == 30


def test_a_variant_departs_in_the_keys_in_which_it_differs():
    plan = Plan(config(definitions__variants=VARIANTS))
    assert plan.protocol.departures("base", ["mlp", "resnet34"]) == plan.protocol.departures("adam", ["mlp"]) == []
    assert plan.protocol.departures("three-n", ["mlp"]) == [Departure("n_unlabeled", "n", "3n")]
    assert plan.protocol.departures("stem", ["mlp"]) == []
    rest = Plan(config(definitions__variants={"base": None, "rest": {"sampling": {"unlabeled": "remainder"}}}))
    assert rest.protocol.departures("rest", ["mlp"]) == [Departure("unlabeled", "pool", "remainder")]
    assert plan.protocol.departures("stem", ["mlp", "resnet34"]) == [Departure("stem", "cifar", "imagenet")]
    assert plan.protocol.departures("both", ["mlp"]) == [
        Departure("overlap", "true", "false"),
        Departure("hidden", "[8]", "[8, 8]"),
    ]
