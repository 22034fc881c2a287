"""Moved code is not new numbers: versions of the training code that are shown to train the same bits.

A run's fingerprint holds the version of the code that trained it, so any edit of training code would train every run
again. Whether two versions are equal is declared, not assumed: a random sample of the shipped runs is trained again,
and every one has to come out equal bit for bit. The declaration is recorded beside the runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mdpu.errors import UserError
from mdpu.learn.device import cpu_model, resolve_precision
from mdpu.pipeline.cache import EQUIVALENCE, Finished, cache_of, declared_versions, fingerprint, recipes
from mdpu.pipeline.code import canonical, training_version
from mdpu.pipeline.config import Config
from mdpu.pipeline.files import digest, git_commit, read_json, write_json
from mdpu.pipeline.plan import Plan, Run
from mdpu.pipeline.train import compare_histories, now, train_again
from mdpu.randomness import Stream


def declare(plan: Plan, out: Path, number: int, workers: int) -> dict[str, str]:
    """Declare that the training code as it is trains the same bits as the code that trained the shipped runs.

    Return the old version by the new one; raise `UserError` if one of a `number` of runs comes out otherwise. The
    images and labels of the shipped runs have to be there. `workers` processes train side by side, each with one
    thread, in the scratch folder `out`.
    """
    shipped = _shipped(plan)
    before = {  # by method and network
        (run.method, finished.about["recipe"]["settings"]["network"]): finished.about["recipe"]["code"]
        for run, finished in shipped.items()
    }
    now_is = {pair: training_version(*pair) for pair in before}
    declared = declared_versions()
    new = {now_is[pair]: old for pair, old in before.items() if canonical(now_is[pair], declared) != old}
    if not new:
        return {}
    runs = draw_sample(_comparable(shipped), number, digest(sorted(new.items())))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        names = [run.name for run in runs]
        for run, again in zip(runs, pool.map(_train, [plan.config] * len(runs), names, [out] * len(runs)), strict=True):
            if differences := compare_histories(shipped[run].history, again.history):
                pool.shutdown(cancel_futures=True)
                largest = ", ".join(f"{key} {value:.3g}" for key, value in differences.items())
                raise UserError(f"{run.name} comes out otherwise ({largest}); the code is not equal")
            print(f"{run.name}: equal bit for bit")
    record = {"versions": new, "runs": names, "commit": git_commit(), "device": cpu_model(), "date": now()}
    write_json(EQUIVALENCE, [*(read_json(EQUIVALENCE) if EQUIVALENCE.exists() else []), record])
    return new


def _shipped(plan: Plan) -> dict[Run, Finished]:
    """Return the shipped runs of a plan, whatever the training code is now."""
    cache = cache_of(plan)
    by_recipe = {fingerprint({**finished.about["recipe"], "code": None}): finished for finished in cache.shipped_runs()}
    found = {}
    for dataset in plan.datasets:
        for run, own in recipes(plan, [run for run in plan.runs if run.dataset == dataset]).items():
            without = (fingerprint({**recipe, "code": None}) for recipe in own)
            found[run] = next((by_recipe[one] for one in without if one in by_recipe), None)
    return {run: finished for run, finished in found.items() if finished is not None}


def _comparable(shipped: dict[Run, Finished]) -> Iterator[Run]:
    """Yield the runs that this kind of processor trained, in the precision that it would train them in."""
    import torch

    for run, finished in shipped.items():
        origin = finished.about["origin"]
        own = resolve_precision("auto", torch.device("cpu"))
        if origin["device"].startswith(f"{cpu_model()} (") and origin["precision"] == own:
            yield run


def draw_sample(runs: Iterator[Run] | Sequence[Run], number: int, seed: str) -> list[Run]:
    """Return a random sample of runs that has every method, every dataset and every tuple size."""
    runs = sorted(runs)
    if len(runs) < number:
        raise UserError(f"only {len(runs)} of the shipped runs can be compared on this machine; {number} are needed")
    order = [runs[place] for place in Stream(seed, "equivalence").permutation(len(runs))]
    covered: set[Any] = set()
    first = []
    for run in order:
        aspects = {run.method, run.dataset, run.tuple_size}
        if not aspects <= covered:
            covered |= aspects
            first.append(run)
    return [*first, *(run for run in order if run not in first)][: max(number, len(first))]


def _train(config: Config, name: str, out: Path) -> Finished:
    """Train a run in a process of its own."""
    plan = Plan(config)
    (run,) = plan.find_runs(name)
    return train_again(plan, run, out, threads=1)
