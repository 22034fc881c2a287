"""Compare two sets of finished runs in pairs: what a change of the trainer, or of a setting, does to accuracy.

    python benchmarks/paired.py results/reference/runs/mnist.parquet other/mnist.parquet
    python benchmarks/paired.py before/ after/ --last 10 --by method dataset --first precision=bfloat16

Each side is a packed file, a cell's file, or a folder of such files (`mdpu.pipeline.store`). Two runs are a pair if the
same was asked of them but for `RECIPE` and for the settings that --apart names. Where a side has several runs of one
pair, --first and --second say which settings count.

A line is a group of pairs: both mean accuracies in percent, each a mean over the last epochs; the mean difference,
second less first, with Student's interval of 95 % over pairs; its deviation; the largest difference; and in how many
pairs the second is the better one. Trials of a cell are independent, and cells share images, so the interval is about
new trials on these images. A run that diverged counts as missing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from mdpu.pipeline.store import Stored, read_runs

LEVEL = 0.95
AXES = ("dataset", "tuple_size", "prior", "method", "loss")


def runs_of(place: Path) -> Iterator[Stored]:
    """Yield the runs of a file, or of all files of a folder."""
    for file in sorted(place.rglob("*.parquet")) if place.is_dir() else [place]:
        yield from read_runs(file).values()


def has(settings: Mapping[str, Any], wanted: Sequence[str]) -> bool:
    """Return whether settings are those of texts ``name=value``, the values in JSON or as they are."""
    pairs = (text.partition("=")[::2] for text in wanted)
    return all(value in (str(settings.get(name)), json.dumps(settings.get(name))) for name, value in pairs)


def accuracies(place: Path, last: int, apart: Sequence[str], wanted: Sequence[str]) -> pd.DataFrame:
    """Return a row for each run: what pairs it, the axes that groups are made of, and its accuracy in percent.

    Raises
    ------
    SystemExit
        If there is none, or two runs differ in nothing that tells them apart.
    """
    rows = []
    for run in runs_of(place):
        asked = {key: value for key, value in run.about["asked"].items() if key != "recipe"}
        trained = {**asked["settings"], "precision": run.about.get("precision", asked["settings"]["precision"])}
        if not has(trained, wanted):
            continue
        asked["settings"] = {key: value for key, value in asked["settings"].items() if key not in apart}
        axes = {**asked, **asked["sampling"], "dataset": asked["trial"].partition("/")[0]}
        accuracy = 100 * run.history["accuracy"].tail(last).mean(skipna=False)
        pair = json.dumps(asked, sort_keys=True)
        rows.append({"pair": pair, **{axis: axes[axis] for axis in AXES}, "accuracy": accuracy})
    table = pd.DataFrame(rows)
    if table.empty or table["pair"].duplicated().any():
        what = "holds no such run" if table.empty else "holds several runs of one pair"
        raise SystemExit(f"{place} {what}; see --first, --second and --apart")
    return table


def summary(pairs: pd.DataFrame) -> dict[str, str]:
    """Return the line of a group of pairs."""
    apart = (pairs["accuracy_second"] - pairs["accuracy_first"]).dropna()
    n, mean = len(apart), apart.mean()
    half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * apart.std() / n**0.5 if n > 1 else float("nan")
    return {
        "pairs": str(n),
        "first": f"{pairs['accuracy_first'].mean():.2f}",
        "second": f"{pairs['accuracy_second'].mean():.2f}",
        "difference": f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})",
        "deviation": f"{apart.std():.2f}",
        "largest": f"{apart[apart.abs().idxmax()]:+.2f}" if n else "–",
        "better": f"{(apart > 0).sum()} of {n}",
    }


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sides", nargs=2, type=Path, metavar="RUNS")
    parser.add_argument("--last", type=int, default=10, help="epochs whose mean accuracy counts")
    parser.add_argument("--by", nargs="+", default=["method"], choices=AXES, help="what makes a group")
    parser.add_argument("--apart", nargs="*", default=["precision"], help="settings in which a pair may differ")
    parser.add_argument("--first", nargs="+", default=[], metavar="NAME=VALUE", help="settings that the first side has")
    parser.add_argument("--second", nargs="+", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    sides = zip(asked.sides, (asked.first, asked.second), strict=True)
    first, second = (accuracies(place, asked.last, asked.apart, wanted) for place, wanted in sides)
    pairs = first.merge(second[["pair", "accuracy"]], on="pair", suffixes=("_first", "_second"))
    if pairs.empty:
        raise SystemExit("no run of one side is a pair with one of the other")
    lines = [{**dict(zip(asked.by, key, strict=True)), **summary(own)} for key, own in pairs.groupby(asked.by)]
    lines.append({**dict.fromkeys(asked.by, ""), asked.by[0]: "all", **summary(pairs)})
    names = list(lines[0])
    ruler = ["---"] * len(asked.by) + ["---:"] * (len(names) - len(asked.by))
    for cells in (names, ruler, *(line.values() for line in lines)):
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
