"""Keep finished results as the shipped ones.

    ./run reference && python benchmarks/keep_reference.py
    ./run laws && python benchmarks/keep_reference.py laws
    ./run own-split && python benchmarks/keep_reference.py own-split

write below results/reference: verdicts, claims, tables, figures and the page. Each also writes
runs.csv, one row per packed run of any selection or reading; `python benchmarks/keep_reference.py
table` writes that alone.

    python benchmarks/keep_reference.py runs results/runs

packs the runs of a folder of cells that are not shipped yet, or only in another precision, into a
second file per dataset, which wins over the first. The last file that each command writes is
SHA256SUMS; `sha256sum --check SHA256SUMS` compares it. Then `python docs/tables.py` makes the
tables of the documents anew.
"""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict
from pathlib import Path

import pandas as pd

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.collect import reported_accuracy, run_accuracies
from mdpu.pipeline.evaluate.comparison import NOT_RUN
from mdpu.pipeline.evaluate.evidence import best_accuracies
from mdpu.pipeline.evaluate.shipped import shipped_runs
from mdpu.pipeline.files import REPOSITORY, read_csv, read_table, sha256, write_csv, write_text
from mdpu.pipeline.plan import AXES
from mdpu.pipeline.store import Stored, pack, read_runs, shipped_keys

RESULTS = REPOSITORY / "results"
REFERENCE = RESULTS / "reference"
# figures of the images in splits of their own
APART = ("figure3", "figure4", "own-cifar-10-curves")
# For each configuration, the results that are kept, and where.
KEPT = {
    "paper-reference": (
        "",
        {name: name for name in ("report.html", "comparison.csv", "claims.csv", "verdicts.json")},
        ("tables", "figures"),
    ),
    "laws": ("laws", {"tables/laws.csv": "cells.csv", "figures/laws.svg": "laws.svg"}, ()),
    "own-split": ("own-split", {f"figures/{name}.svg": f"{name}.svg" for name in APART}, ()),
}
BAG_METHODS = ("bag-relu", "bag-free")


def keep_results(name: str) -> None:
    """Write what is kept of the results of a configuration."""
    folder, files, folders = KEPT[name]
    results = RESULTS / name
    kept = REFERENCE / folder
    kept.mkdir(parents=True, exist_ok=True)
    if name == "own-split":
        comparison = read_csv(results / "comparison.csv")
        write_csv(comparison[comparison["verdict"] != NOT_RUN], kept / "comparison.csv")
    if name == "paper-reference":
        write_csv(bag_runs(read_table(results / "metrics.parquet")), kept / "bags.csv")
    for file, named in files.items():
        shutil.copy(results / file, kept / named)
    for inner in folders:
        shutil.rmtree(kept / inner, ignore_errors=True)
        (kept / inner).mkdir()
        for path in sorted([*(results / inner).glob("*.csv"), *(results / inner).glob("*.svg")]):
            shutil.copy(path, kept / inner)


def bag_runs(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each run of the methods on bags, accuracies in percent.

    ``accuracy`` is the reported one, ``best`` that of `best_accuracies`;
    ``estimated_prior`` and the ends of its interval are those of a run that is not given the
    prior.
    """
    reporting = load_config([REPOSITORY / "config" / "reference.yaml"])["protocol"]["reporting"]
    keys = list(AXES)
    shown = metrics[metrics["method"].isin(BAG_METHODS)]
    facts = run_accuracies(shown, reporting).set_index(keys)[["accuracy"]]
    epochs = shown.assign(accuracy=reported_accuracy(shown, reporting["test_prior"]))
    facts["best"] = best_accuracies(epochs)
    estimated = [name for name in shown if name.startswith("estimated_prior")]
    return facts.join(shown.groupby(keys)[estimated].last()).reset_index()


def keep_table_of_runs() -> None:
    """Write one row per packed run, of whatever selection or reading, as a run's own runs.csv has
    it.
    """
    runs = shipped_runs(REFERENCE / "runs")
    write_csv(runs, REFERENCE / "runs.csv")
    counts = runs["selection"].value_counts()
    print(f"{len(runs)} runs: {', '.join(f'{count} of {name}' for name, count in counts.items())}")


def keep_runs(folder: Path) -> None:
    """Pack the finished runs of a folder of cells that add something to the shipped ones."""
    shipped = shipped_keys(REFERENCE / "runs")
    second = defaultdict(dict[str, Stored])
    for path in sorted(folder.rglob("*.parquet")):
        for key, run in read_runs(path).items():
            held = read_runs(shipped[key], [key])[key] if key in shipped else None
            if held is None or held.about["precision"] != run.about["precision"]:
                second[path.relative_to(folder).parts[0]][key] = run
    for dataset, runs in second.items():
        out = REFERENCE / "runs" / f"{dataset}-2.parquet"
        pack(out, ((read_runs(out) if out.exists() else {}) | runs).values())
        print(f"{dataset}: {len(runs)} runs packed")


if __name__ == "__main__":
    if sys.argv[1:2] == ["runs"]:
        keep_runs(Path(sys.argv[2]))
    elif sys.argv[1:] != ["table"]:
        keep_results((sys.argv[1:] or ["paper-reference"])[0])
    keep_table_of_runs()
    sums = [
        path
        for path in sorted(REFERENCE.rglob("*"))
        if path.is_file() and path.name != "SHA256SUMS"
    ]
    write_text(
        REFERENCE / "SHA256SUMS",
        "".join(f"{sha256(path)}  {path.relative_to(REFERENCE)}\n" for path in sums),
    )
