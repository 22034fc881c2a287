r"""Compare two sets of finished runs in pairs: what a change does to accuracy.

The change is one of the trainer, or of a setting.

    python benchmarks/paired.py results/reference/runs/mnist.parquet other/mnist.parquet
    python benchmarks/paired.py before/ after/ --last 10 --by method dataset \
        --first precision=bfloat16

Each side is a packed file, a cell's file, or a folder of such files (`mdpu.pipeline.store`). Two
runs are a pair if the same was asked of them but for `RECIPE` and for the settings that --apart
names. Where a side has several runs of one pair, --first and --second say which settings count.

A line is a group of pairs: both mean accuracies in percent, each a mean over the last epochs; the
mean difference, second less first, with Student's interval of 95 % over pairs; its deviation; the
largest difference; and in how many pairs the second is the better one. Trials of a cell are
independent, and cells share images, so the interval is about new trials on these images. A run that
diverged counts as missing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from mdpu.pipeline.files import write_csv
from mdpu.pipeline.store import Stored, read_runs

LEVEL = 0.95
AXES = ("dataset", "tuple_size", "prior", "method", "loss")


def runs_of(place: Path) -> Iterator[Stored]:
    """Yield the runs of a file, or of all files of a folder."""
    files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
    for file in files:
        yield from read_runs(file).values()


def has(settings: Mapping[str, Any], wanted: Sequence[str]) -> bool:
    """Return whether settings are those of texts ``name=value``, values in JSON or as they are."""
    for text in wanted:
        name, _, value = text.partition("=")
        setting = settings.get(name)
        if value not in (str(setting), json.dumps(setting)):
            return False
    return True


def accuracies(place: Path, last: int, apart: Sequence[str], wanted: Sequence[str]) -> pd.DataFrame:
    """Return a row for each run: what pairs it, the axes of groups, and its accuracy in percent.

    Raises
    ------
    SystemExit
        If there is none, or two runs differ in nothing that tells them apart.
    """
    rows = []
    for run in runs_of(place):
        asked = run.about["asked"]
        settings = asked["settings"]
        precision = run.about.get("precision", settings["precision"])
        if not has({**settings, "precision": precision}, wanted):
            continue

        accuracy = run.history["accuracy"].tail(last).mean(skipna=False)
        rows.append(
            {
                "pair": pair_of(asked, apart),
                **axes_of(asked),
                "accuracy": 100 * accuracy,
            }
        )

    table = pd.DataFrame(rows)
    hint = "see --first, --second and --apart"
    if table.empty:
        raise SystemExit(f"{place} holds no such run; {hint}")
    if table["pair"].duplicated().any():
        raise SystemExit(f"{place} holds several runs of one pair; {hint}")
    return table


def pair_of(asked: Mapping[str, Any], apart: Sequence[str]) -> str:
    """Return what is asked of both runs of a pair, as a text."""
    common = {key: value for key, value in asked.items() if key != "recipe"}
    settings = asked["settings"].items()
    common["settings"] = {key: value for key, value in settings if key not in apart}
    return json.dumps(common, sort_keys=True)


def axes_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's values on the axes of groups."""
    dataset = asked["trial"].partition("/")[0]
    values = {**asked, **asked["sampling"], "dataset": dataset}
    return {axis: values[axis] for axis in AXES}


def summary(pairs: pd.DataFrame) -> dict[str, str]:
    """Return the line of a group of pairs."""
    differences = (pairs["accuracy_second"] - pairs["accuracy_first"]).dropna()
    n = len(differences)
    mean = differences.mean()
    half = float("nan")
    if n > 1:
        half = stats.t.ppf((1 + LEVEL) / 2, n - 1) * differences.std() / n**0.5
    largest = "–"
    if n:
        largest = f"{differences[differences.abs().idxmax()]:+.2f}"
    return {
        "pairs": str(n),
        "first": f"{pairs['accuracy_first'].mean():.2f}",
        "second": f"{pairs['accuracy_second'].mean():.2f}",
        "difference": f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})",
        "deviation": f"{differences.std():.2f}",
        "largest": largest,
        "better": f"{(differences > 0).sum()} of {n}",
    }


def compare(first: pd.DataFrame, second: pd.DataFrame, by: list[str]) -> list[dict[str, str]]:
    """Return a line for each group of pairs, and one for all.

    Raises
    ------
    SystemExit
        If there is no pair.
    """
    pairs = first.merge(second[["pair", "accuracy"]], on="pair", suffixes=("_first", "_second"))
    if pairs.empty:
        raise SystemExit("no run of one side is a pair with one of the other")

    lines = []
    for values, group in pairs.groupby(by):
        lines.append({**dict(zip(by, values, strict=True)), **summary(group)})
    title = {**dict.fromkeys(by, ""), by[0]: "all"}
    lines.append({**title, **summary(pairs)})
    return lines


def parse() -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("sides", nargs=2, type=Path, metavar="RUNS")
    add("--last", type=int, default=10, help="epochs whose mean accuracy counts")
    add("--by", nargs="+", default=["method"], choices=AXES, help="what makes a group")
    add("--apart", nargs="*", default=["precision"], help="settings in which a pair may differ")
    setting = {"nargs": "+", "default": [], "metavar": "NAME=VALUE"}
    add("--first", **setting, help="settings that the first side has")
    add("--second", **setting)
    add("--out", type=Path, help="CSV file that gets the lines, too")
    return parser.parse_args()


def main() -> None:
    """Print the table as Markdown, and write it if asked."""
    arguments = parse()
    last = arguments.last
    apart = arguments.apart
    first_place, second_place = arguments.sides
    first = accuracies(first_place, last, apart, arguments.first)
    second = accuracies(second_place, last, apart, arguments.second)
    lines = compare(first, second, arguments.by)

    names = list(lines[0])
    texts = len(arguments.by)
    ruler = ["---"] * texts + ["---:"] * (len(names) - texts)
    for cells in (names, ruler, *(line.values() for line in lines)):
        print(f"| {' | '.join(map(str, cells))} |")
    if arguments.out:
        write_csv(pd.DataFrame(lines), arguments.out)


if __name__ == "__main__":
    main()
