"""Finished runs, found by what they are made from: recipes, the cache, what is packed, and what is left to train."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from configs import config

from mdpu.errors import UserError
from mdpu.pipeline import cache as cache_module
from mdpu.pipeline.cache import (
    Cache,
    Finished,
    adopt,
    checksum,
    export,
    fingerprint,
    identity,
    recipes,
    recipes_of,
    unfinished,
)
from mdpu.pipeline.files import write_text
from mdpu.pipeline.plan import Plan

CONTENT = {"images": "a", "labels": "b"}
ORIGIN = {"commit": "abc", "device": "cpu", "precision": "fp32"}


def planned(**changes):
    return Plan(config(device="cpu", shipped=None, datasets=["flat"], **changes))


def recipe(plan=None, place=0, content=CONTENT, rates=None, precision="fp32"):
    plan = plan or planned()
    return recipes_of(plan, plan.runs[place], content, rates, precision)[0]


def history(epochs=3):
    values = np.random.default_rng(epochs).uniform(size=(epochs, 2))
    values[-1] = np.nan  # as where a run diverged
    return pd.DataFrame({"epoch": range(1, epochs + 1), "risk": values[:, 0], "accuracy": values[:, 1]})


def finished(place=0, **measures):
    drawn = history().assign(**measures)
    return Finished.of(recipe(place=place), drawn, origin=ORIGIN, split="c", diagnostics={"p_value": 0.5})


# -- recipes --------------------------------------------------------------------------------------


def test_a_fingerprint_follows_everything_that_a_number_depends_on(monkeypatch):
    others = [
        recipe(place=1),
        recipe(content={**CONTENT, "images": "z"}),
        recipe(content={**CONTENT, "labels": "z"}),
        recipe(rates=(0.1, 0.2)),
        recipe(precision="bf16"),
        recipe(planned(protocol__training__epochs=4)),
        recipe(planned(protocol__training__prior_offset=0.1)),
        recipe(planned(protocol__training__target_prior=0.3)),
        recipe(planned(protocol__training__shares_factor=1.1)),
        recipe(planned(protocol__sampling__overlap=False)),
        recipe(planned(protocol__sampling__unlabeled="remainder")),
        recipe(planned(protocol__training__networks={"mlp": {"hidden": [9], "batch_size": 10}})),
    ]
    monkeypatch.setattr(cache_module, "training_version", lambda method, network: "edited")
    others.append(recipe())
    monkeypatch.undo()
    assert len({fingerprint(one) for one in (recipe(), *others)}) == 1 + len(others)


def test_names_of_datasets_variants_and_experiments_make_no_other_run():
    """What a name stands for counts: variants that change nothing, and titles, are no part of a recipe."""
    renamed = planned(definitions__variants={"base": None, "same": {"sampling": {"overlap": True}}})
    assert recipe(renamed) == recipe() == recipe(planned(protocol__sampling__unlabeled="pool"))


def test_a_version_that_is_declared_equal_makes_the_same_run(monkeypatch):
    first = recipe()
    monkeypatch.setattr(cache_module, "training_version", lambda method, network: "moved")
    assert recipe() != first
    monkeypatch.setattr(cache_module, "declared_versions", lambda: {"moved": "between", "between": first["code"]})
    assert recipe() == first


# -- the cache ------------------------------------------------------------------------------------


def same(one, other):
    pd.testing.assert_frame_equal(one.history, other.history, check_exact=True)
    return (one.fingerprint, one.about) == (other.fingerprint, other.about)


def test_a_run_is_found_by_its_fingerprint_in_either_layer(tmp_path):
    own, shipped = finished(0), finished(1, estimated_prior=0.5)
    export([shipped, finished(2)], tmp_path / "shipped.parquet")
    cache = Cache(tmp_path / "cache", tmp_path / "shipped.parquet")
    cache.save(own)
    assert cache.find(["none", own.fingerprint, shipped.fingerprint]) == own.fingerprint
    assert cache.find(["none"]) is None
    loaded = cache.load([own.fingerprint, shipped.fingerprint])
    assert same(loaded[own.fingerprint], own)
    assert same(loaded[shipped.fingerprint], shipped)
    assert list(loaded[own.fingerprint].history) == ["epoch", "risk", "accuracy"]
    assert cache.place(shipped.fingerprint) == tmp_path / "shipped.parquet"
    with pytest.raises(UserError, match="no finished run has the fingerprint none"):
        cache.load(["none"])


def test_runs_survive_export_and_import_bit_for_bit(tmp_path):
    runs = [finished(place) for place in range(4)]
    export(runs, tmp_path / "packed.parquet")
    cache = Cache(tmp_path / "cache")
    cache.save(runs[0])
    assert cache.import_runs(tmp_path / "packed.parquet") == (3, 1)
    loaded = cache.load(cache.names())
    assert all(same(loaded[run.fingerprint], run) for run in runs)
    with pytest.raises(UserError, match="no finished run to pack"):
        export([], tmp_path / "none.parquet")


def tamper(path, change):
    """Write a packed file again with a change of its rows."""
    rows = pd.read_parquet(path)
    change(rows).to_parquet(path, index=False)


def with_recipe(rows, **changes):
    about = json.loads(rows["about"].iloc[0])
    about["recipe"] |= changes
    return rows.assign(about=json.dumps(about))


TAMPERED = {
    "a value": (lambda rows: rows.assign(risk=rows["risk"] + 1e-12), "do not match their checksum"),
    "an epoch": (lambda rows: rows[rows["epoch"] < 3], "do not match their checksum"),
    "the order of epochs": (lambda rows: rows.iloc[::-1], "do not match their checksum"),
    "a recipe": (lambda rows: with_recipe(rows, loss="ramp"), "has the recipe of another run"),
    "a fingerprint": (lambda rows: rows.assign(fingerprint="f" * 32), "has the recipe of another run"),
    "a text": (lambda rows: rows.assign(risk="much"), "does not hold finished runs"),
    "a column": (lambda rows: rows.drop(columns="about"), "has no column about"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_packed_run_that_is_not_what_was_written_is_refused(what, tmp_path):
    change, message = TAMPERED[what]
    export([finished()], tmp_path / "packed.parquet")
    tamper(tmp_path / "packed.parquet", change)
    with pytest.raises(UserError, match=message):
        Cache(tmp_path / "cache").import_runs(tmp_path / "packed.parquet")
    assert Cache(tmp_path / "cache").names() == []


def test_a_flipped_byte_is_never_taken_for_a_run(tmp_path):
    """Wherever it lies in the file: it is noticed, or it changes no value."""
    cache, run = Cache(tmp_path / "cache"), finished()
    cache.save(run)
    path = cache.path(run.fingerprint)
    content = path.read_bytes()
    noticed = 0
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            assert same(cache.load([run.fingerprint])[run.fingerprint], run)
        except UserError as error:
            noticed += 1
            assert "delete it and run again" in str(error)
    assert noticed > 100
    assert cache.lost([run.fingerprint]).items() <= {path: True}.items()


def test_a_checksum_follows_values_and_no_order_of_columns():
    drawn = history()
    assert checksum(drawn) == checksum(drawn[["accuracy", "epoch", "risk"]].assign(other=np.nan))
    assert checksum(drawn) != checksum(drawn.assign(other=[np.nan, np.nan, 0.0]))
    assert checksum(drawn) != checksum(drawn.rename(columns={"risk": "accuracy", "accuracy": "risk"}))


# -- what is left to train ------------------------------------------------------------------------


@pytest.fixture
def prepared(tmp_path):
    """A plan whose images and labels are there, and the recipes of its runs."""
    plan = planned(results_dir=str(tmp_path / "results"))
    for path in (plan.layout.images("flat"), plan.layout.labels("flat")):
        write_text(path, path.name)
    return plan, {run: own[0] for run, own in recipes(plan, plan.runs, "fp32").items()}


def finish(plan, recipes):
    for one in recipes.values():
        about = {"origin": ORIGIN, "split": "c", "diagnostics": {"p_value": 0.5}}
        Cache(plan.layout.cache).save(Finished.of(one, history(), **about))


def manifests(plan):
    return [path for name in plan.jobs if (path := plan.layout.manifest(name, identity(plan, name))).exists()]


def test_only_a_job_with_an_unfinished_run_is_left(prepared):
    plan, recipes = prepared
    assert unfinished(plan) == {name: list(job.runs) for name, job in plan.jobs.items()}
    lost = plan.runs[0]
    finish(plan, {run: one for run, one in recipes.items() if run != lost})
    assert unfinished(plan) == {plan.job_of(lost).name: [lost]}
    adopt(plan)
    assert len(manifests(plan)) == len(plan.jobs) - 1
    facts = json.loads(manifests(plan)[0].read_text())
    assert set(facts["runs"].values()) <= {fingerprint(one) for one in recipes.values()}
    assert facts["trained"] == [{**ORIGIN, "runs": list(facts["runs"])}]

    finish(plan, {lost: recipes[lost]})
    adopt(plan)
    assert unfinished(plan) == {}
    assert len(manifests(plan)) == len(plan.jobs)


def test_a_manifest_goes_when_a_run_of_its_is_gone(prepared):
    plan, recipes = prepared
    finish(plan, recipes)
    adopt(plan)
    Cache(plan.layout.cache).path(fingerprint(recipes[plan.runs[0]])).unlink()
    adopt(plan)
    assert len(manifests(plan)) == len(plan.jobs) - 1


def test_an_adopted_manifest_stays_as_it_is_and_is_no_older_than_its_inputs(prepared):
    """Snakemake goes by time stamps; labels that were made anew with the same content train nothing."""
    plan, recipes = prepared
    finish(plan, recipes)
    adopt(plan)
    before = [path.stat().st_mtime_ns for path in manifests(plan)]
    adopt(plan)
    assert [path.stat().st_mtime_ns for path in manifests(plan)] == before
    later = before[0] / 1e9 + 60
    os.utime(plan.layout.labels("flat"), (later, later))
    adopt(plan)
    assert all(path.stat().st_mtime == pytest.approx(later) for path in manifests(plan))
