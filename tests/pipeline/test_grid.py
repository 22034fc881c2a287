"""Runs, their names, and the grids and cohorts that they form."""

from __future__ import annotations

import itertools

import pytest
from configs import config
from hypothesis import given
from hypothesis import strategies as st

from mdpu.errors import UserError
from mdpu.pipeline.config import available_methods
from mdpu.pipeline.grid import Run, canonical_prior, parse_run
from mdpu.pipeline.plan import Plan


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


def test_splits_of_a_cohort_are_shared_between_methods():
    cohort = Plan(config()).cohort("flat/base/m2/n30")
    assert cohort.splits == [f"flat/base/m2/prior{prior}/n30/seed{seed}" for prior in ("0.4", "0.5") for seed in (1, 2)]


def test_runs_of_a_cohort_are_selected_by_name():
    cohort = Plan(config()).cohort("flat/base/m2/n30")
    names = [cohort.runs[3].name, cohort.runs[1].name]
    assert [run.name for run in cohort.select([*names, names[0]])] == names
    with pytest.raises(UserError, match=r"cohort flat/base/m2/n30, run: 'flat/base/m3.*' is unknown; did you mean"):
        cohort.select([cohort.runs[0].name.replace("m2", "m3")])
