"""Results as the workflow would leave them, from synthetic histories: accuracies are those of the paper plus noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from mdpu.data import draw_split
from mdpu.pipeline.cache import identity
from mdpu.pipeline.data.diagnostics import diagnose
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.data.splits import write_split
from mdpu.pipeline.evaluate.audit import write_audit
from mdpu.pipeline.evaluate.claims import write_claims
from mdpu.pipeline.evaluate.collect import describe_runs, run_accuracies, summarize
from mdpu.pipeline.evaluate.comparison import write_comparison
from mdpu.pipeline.evaluate.published import published_summary
from mdpu.pipeline.experiments import sections, show
from mdpu.pipeline.files import read_json, read_table, save_npz, sha256, write_csv, write_json, write_table
from mdpu.pipeline.plan import AXES, CELL, Plan
from mdpu.pipeline.report.page import write_page
from mdpu.pipeline.report.rank_figure import show_ranks
from mdpu.pipeline.report.sheet import write_sheets

EPOCHS, IMAGES = 100, 400  # images of each stand-in


def stand_in(classes: list[str], colour: bool, seed: int) -> ImageSet:
    """Return random images of these classes."""
    random = np.random.default_rng(seed)
    shape = (IMAGES, 32, 32, 3) if colour else (IMAGES, 28, 28)
    labels = np.arange(IMAGES) % len(classes)
    images = random.integers(0, 256, shape, dtype=np.uint8)
    return ImageSet(images, labels, images, labels, classes, "Random stand-ins", "CC0")


def write_data(plan: Plan) -> None:
    """Write all that needs no metrics: images, labels, sheets and splits of stand-ins, and the audit.

    The counts are those of the configuration.
    """
    by_source: dict[Path, dict[str, None]] = {}
    for name in plan.datasets:
        sides = [
            *plan.dataset(name)["positive"],
            *plan.dataset(name)["negative"],
            *plan.dataset(name).get("dropped", ()),
        ]
        by_source.setdefault(plan.layout.images(name), {}).update(dict.fromkeys(map(str, sides)))
    for seed, name in enumerate(plan.datasets):
        definition = plan.dataset(name)
        images = plan.layout.images(name)
        image_set = stand_in(list(by_source[images]), plan.network(name) == "resnet34", seed)
        write_images(image_set, images)
        labels = binarize(image_set, definition["positive"], definition["negative"], definition.get("dropped", ()))
        save_npz(plan.layout.labels(name), **labels)
        write_json(plan.layout.labels(name).with_suffix(".json"), {"counts": definition["counts"]})
        write_sheets(images, plan.layout.labels(name), *plan.layout.sheets(name))
        for run in {run.split: run for run in plan.runs if run.dataset == name}.values():
            prior = float(run.prior)
            split = draw_split(labels["train"], run.tuple_size, prior, 100, 100, run.seed)
            write_split(split, plan.layout.split(run.split))
            facts = diagnose(split, labels["train"], run.tuple_size, prior)
            write_json(plan.layout.split(run.split).with_suffix(".json"), facts)
    write_audit(plan)


def histories(plan: Plan) -> pd.DataFrame:
    """Return a history of every run: a curve that ends near the paper's number."""
    from mdpu.learn.risk import TERMS  # with torch, which no rule after the training loads

    keys = pd.DataFrame(list(plan.runs))
    random = np.random.default_rng(1)
    published = published_summary().rename(columns={"dataset": "published"})[["published", *CELL[1:], "mean", "std"]]
    named = keys.assign(published=keys["dataset"].map(plan.published_names), order=range(len(keys)))
    ends = named.merge(published, how="left", on=["published", *CELL[1:]]).sort_values("order")
    final = ends["mean"].fillna(85.0).to_numpy() + ends["std"].fillna(1.0).to_numpy() * random.normal(size=len(keys))
    epoch = np.arange(1, EPOCHS + 1)
    accuracy = 50 + (final[:, None] - 50) * (1 - np.exp(-epoch / 8)) + random.normal(size=(len(keys), EPOCHS)) * 0.3
    rate = np.clip(accuracy / 100, 0, 1).ravel()
    risk = np.tile(0.7 * np.exp(-epoch / 30) - 0.05, len(keys))
    rows = keys.loc[keys.index.repeat(EPOCHS)].assign(epoch=np.tile(epoch, len(keys)), objective=risk, risk=risk)
    rows = rows.assign(**{f"risk_{term}": risk / len(TERMS) for term in TERMS})
    rows = rows.assign(true_positive_rate=rate, true_negative_rate=rate, accuracy=rate, raw_accuracy=rate)
    return rows.sort_values([*AXES, "epoch"], ignore_index=True)


def write_training(plan: Plan, metrics: pd.DataFrame) -> None:
    """Write the metrics, and what each training job says of its training."""
    write_table(metrics, plan.layout.metrics)
    made = {"device": "no device", "precision": "none", "date": "2026-01-01T00:00:00+00:00", "commit": "0" * 40}
    software = {"python": "3", "packages": {"mdpu": "0"}, "machine": "none"}
    for job in plan.jobs.values():
        splits = {
            split: {"sha256": sha256(path), **read_json(path.with_suffix(".json"))}
            for split, path in ((split, plan.layout.split(split)) for split in job.splits)
        }
        trained = [{**made, **software, "runs": [run.name for run in job.runs]}]
        facts = {"trained": trained, "splits": splits, "reused": 0, "seconds": 60.0}
        write_json(plan.layout.manifest(job.name, identity(plan, job.name)), facts)


# What the workflow makes of the metrics beside the experiments, by rule.
RULES: dict[str, Callable[[Plan], None]] = {"claims": write_claims, "ranks": show_ranks, "compare": write_comparison}


def evaluate(plan: Plan) -> None:
    """Write everything that the workflow makes from the metrics, up to the page."""
    layout = plan.layout
    metrics = read_table(layout.metrics)
    accuracies = run_accuracies(metrics, plan.protocol.reporting())
    write_csv(summarize(accuracies), layout.summary)
    write_csv(describe_runs(metrics, accuracies, plan), layout.runs)
    for make in RULES.values():
        make(plan)
    for name in plan.experiments:
        show(plan, name)


def write_results(plan: Plan) -> None:
    """Write a whole folder of results."""
    write_data(plan)
    write_training(plan, histories(plan))
    evaluate(plan)
    write_page(plan, sections(plan))
