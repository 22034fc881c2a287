r"""Make the report of the full paper from synthetic histories, to see how large and how fast the page is.

    python benchmarks/full_page.py --out /tmp/full --browser
    python benchmarks/full_page.py --out /tmp/three --config three.yaml --kept results/reference/finished.parquet

writes a folder of results as the workflow would leave it, without any training: accuracies are those of the paper plus
noise, splits and images are stand-ins. Without an overlay it is the page of all 504 cells, in both readings of their
datasets, with all figures and the methods on bags. Runs of a file that `mdpu pack` wrote are taken as they are. It
prints the seconds from the metrics to the page, with one process for each processor, and the size of the page. With
`--browser` it also prints how long the page takes to open. The numbers on such a page mean nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from mdpu.pipeline.config import Config, load_config
from mdpu.pipeline.data.diagnostics import diagnose
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.data.labels import binarize, write_labels
from mdpu.pipeline.data.splits import draw_split, write_split
from mdpu.pipeline.evaluate.audit import write_audit
from mdpu.pipeline.evaluate.claims import write_claims
from mdpu.pipeline.evaluate.collect import describe_runs, run_accuracies, summarize
from mdpu.pipeline.evaluate.comparison import write_comparison
from mdpu.pipeline.evaluate.published import published_summary
from mdpu.pipeline.experiments import inputs, sections, show
from mdpu.pipeline.files import read_table, write_csv, write_json, write_table
from mdpu.pipeline.plan import AXES, CELL, Plan
from mdpu.pipeline.report.page import write_page
from mdpu.pipeline.report.rank_figure import show_ranks
from mdpu.pipeline.report.sheet import write_sheets
from mdpu.pipeline.seals import sha256

REPOSITORY = Path(__file__).resolve().parent.parent
EPOCHS, IMAGES = 100, 400  # images of each stand-in
REPEATS = 5
BAGS = (
    *("bags-pairs", "bags-pairs-larger", "bags-triples", "bags-triples-larger"),
    *("bags-neighbours", "bags-neighbours-triples", "bags-size", "bags-tuple-sizes", "bags-misspecification"),
)
# Sorts the comparisons as soon as the page's script has run, and notes when the next frame was drawn.
CLICK = """
addEventListener("DOMContentLoaded", () => {
  document.querySelector("#comparisons-table th[data-key='difference'] button").click();
  if (!location.hash.includes("sort=")) throw new Error("the click did nothing");
  const frame = new MessageChannel();
  frame.port1.onmessage = () => { window.drawn = performance.now(); };
  requestAnimationFrame(() => frame.port2.postMessage(0));
});
"""


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
        write_labels(labels, plan.layout.labels(name))
        write_json(plan.layout.labels(name).with_suffix(".json"), {"counts": definition["counts"]})
        sheets = [plan.layout.results / "sheets" / name / f"{side}.png" for side in ("positive", "negative")]
        write_sheets(images, plan.layout.labels(name), *sheets)
        for run in {run.split: run for run in plan.runs if run.dataset == name}.values():
            prior = float(run.prior)
            split = draw_split(labels["train"], run.tuple_size, prior, 100, 100, run.seed)
            write_split(split, plan.layout.split(run.split))
            facts = diagnose(split, labels["train"], run.tuple_size, prior)
            write_json(plan.layout.split(run.split).with_suffix(".json"), facts)
    results = plan.layout.results
    write_audit(plan, results / "labels", results / "audit.csv")


def histories(plan: Plan, kept: Path | None) -> pd.DataFrame:
    """Return a history of every run: a kept one, or a curve that ends near the paper's number."""
    from mdpu.learn.risk import TERMS  # with torch, which no rule after the training loads

    keys = pd.DataFrame(list(plan.runs))
    frames = []
    if kept is not None:
        frames.append(keys.merge(read_table(kept), on=list(AXES)).drop(columns=["fingerprint", "origin"]))
        there = set(frames[0][list(AXES)].itertuples(index=False, name=None))
        keys = keys[[key not in there for key in keys.itertuples(index=False, name=None)]]
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
    return pd.concat([*frames, rows]).sort_values([*AXES, "epoch"], ignore_index=True)


def write_training(plan: Plan, metrics: pd.DataFrame) -> None:
    """Write the metrics, and what each cohort says of its training."""
    write_table(metrics, plan.layout.metrics)
    made = {"device": "no device", "precision": "none", "date": "2026-01-01T00:00:00+00:00", "commit": "0" * 40}
    software = {"python": "3", "packages": {"mdpu": "0"}, "machine": "none"}
    for cohort in plan.cohorts.values():
        splits = {str(plan.layout.split(split)): sha256(plan.layout.split(split)) for split in cohort.splits}
        trained = [{**made, **software, "runs": [run.name for run in cohort.runs]}]
        facts = {"trained": trained, "inputs": splits, "reused": 0, "wall_seconds": 60.0}
        write_json(plan.layout.history(cohort.name).with_suffix(".json"), facts)


# What the workflow makes of the metrics beside the experiments, by rule.
RULES: dict[str, Callable[[Plan, Path], object]] = {
    "claims": lambda plan, results: write_claims(
        plan, plan.layout.summary, plan.layout.metrics, results / "claims.csv", results / "claims_cases.csv"
    ),
    "ranks": lambda plan, results: show_ranks(plan, plan.layout.summary, results / "ranks.csv", results / "ranks.svg"),
    "compare": lambda plan, results: write_comparison(plan, plan.layout.summary, results / "comparison.csv"),
}


def make(config: Config, name: str) -> None:
    """Write what one job of the workflow makes: a rule of `RULES`, or an experiment."""
    plan = plan_of(json.dumps(config))
    results = plan.layout.results
    if name in RULES:
        RULES[name](plan, results)
    else:
        show(plan, name, inputs(plan, name), results)


@cache
def plan_of(config: str) -> Plan:
    """Return the plan of a configuration, once for each process."""
    return Plan(json.loads(config))


def evaluate(plan: Plan, processes: int) -> None:
    """Write everything that the workflow makes from the metrics, up to the page, in so many processes."""
    layout, results = plan.layout, plan.layout.results
    metrics = read_table(layout.metrics)
    accuracies = run_accuracies(metrics, plan.protocol.reporting())
    write_csv(summarize(accuracies), layout.summary)
    write_csv(describe_runs(metrics, accuracies, plan), results / "runs.csv")
    # Figures take longest, so they come first.
    figures = sorted(plan.experiments, key=lambda name: plan.experiments[name].kind == "table")
    names = [*RULES, *figures]
    if processes == 1:
        for name in names:
            make(plan.config, name)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        list(pool.map(make, itertools.repeat(plan.config), names))


def write_results(plan: Plan, kept: Path | None = None, processes: int = 1) -> dict[str, tuple[float, float]]:
    """Write a whole folder of results, and return the wall and the processor seconds of its evaluation and its page."""
    write_data(plan)
    write_training(plan, histories(plan, kept))
    page = plan.layout.results / "report.html"
    return {
        "evaluation": seconds_of(lambda: evaluate(plan, processes)),
        "page": seconds_of(lambda: write_page(plan, plan.layout.results, sections(plan, plan.layout.results), page)),
    }


def seconds_of(work: Callable[[], None]) -> tuple[float, float]:
    """Do some work, and return its wall seconds and the processor seconds of this process and its children."""
    wall, processor = time.perf_counter(), sum(os.times()[:4])
    work()
    return time.perf_counter() - wall, sum(os.times()[:4]) - processor


def seconds_to_interact(page: Path, width: int) -> float:
    """Return the seconds from the opening of a page until a click on a heading has sorted the comparisons and is drawn.

    The page is opened in a headless Chromium, in a window of this width, and the click comes as soon as there is
    something to click on.
    """
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("headless", "no-sandbox", "disable-gpu", "no-first-run", f"window-size={width},900"):
        options.add_argument(f"--{argument}")
    with webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver") or "")) as browser:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLICK})
        browser.get(page.resolve().as_uri())
        while (drawn := browser.execute_script("return window.drawn")) is None:
            time.sleep(0.1)
    return float(drawn) / 1000


def main() -> None:
    """Write the results and print seconds and sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of results")
    parser.add_argument("--config", type=Path, nargs="*", default=[], help="overlays of config.yaml")
    parser.add_argument("--kept", type=Path, help="finished runs, as `mdpu pack` writes them")
    parser.add_argument("--browser", action="store_true", help="measure in headless Chromium when the page is usable")
    arguments = parser.parse_args()

    config = load_config([REPOSITORY / "config.yaml", *arguments.config], [f"results_dir={arguments.out}"])
    if not arguments.config:
        config["experiments"] = [*config["experiments"], *BAGS]
    plan = Plan(config)
    seconds = write_results(plan, arguments.kept, os.cpu_count() or 1)
    page = plan.layout.results / "report.html"
    print(f"{len(plan.runs)} runs in {len(plan.cohorts)} cohorts")
    for part, (wall, processor) in seconds.items():
        print(f"{part}: {wall:.1f} s, {processor:.1f} processor s")
    print(f"{page}: {page.stat().st_size / 1e6:.2f} MB")
    for width in (1400, 390) if arguments.browser else ():
        times = sorted(seconds_to_interact(page, width) for _ in range(REPEATS))
        print(
            f"interactive at {width} px: median {times[REPEATS // 2]:.2f} s, from {times[0]:.2f} to {times[-1]:.2f} s"
        )


if __name__ == "__main__":
    main()
