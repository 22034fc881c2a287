"""Compare runs that a GPU trained with a CPU's shipped ones of the same keys.

    ./run paper --resources gpu=4 --config 'datasets=[mnist]' shipped=null results_dir=gpu \
        'experiments=[table2, table3, table4, table5]'
    python benchmarks/devices.py gpu/runs --command './run paper ...'

The same key means the same splits and the same first weights. The runs are those of URE, ReLU and
ABS in a file or folder (`mdpu.pipeline.store`). ``results/reference/gpu/mnist.csv`` gets a row for
each that is shipped too: both accuracies in percent, means of the last ten epochs; the difference
in points, GPU less CPU; and ``early``, the largest difference in the first three epochs. Then come
the CPU and the precision of its run, the GPU, versions, commit and the command that trained on it.
`python docs/tables.py` makes the table of docs/explanation/performance.md of these rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from paired import runs_of

from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.files import REPOSITORY, write_csv
from mdpu.pipeline.store import Stored, read_runs

REFERENCE = REPOSITORY / "results" / "reference"
# epochs at the end that an accuracy averages, and at the beginning
LAST = 10
EARLY = 3


def pairs(place: Path) -> Iterator[tuple[Stored, Stored]]:
    """Yield the runs of a GPU that are shipped too, each with the shipped one of another device.

    Of two shipped ones the second file's counts, as everywhere.
    """
    on_gpu = {}
    for run in runs_of(place):
        if run.about["asked"]["method"] in PROPOSED:
            on_gpu[run.key] = run

    elsewhere = {}
    files = (REFERENCE / "runs").glob("*.parquet")
    for file in sorted(files, key=lambda path: path.stem):  # mnist-2 behind mnist
        for key, run in read_runs(file, on_gpu).items():
            if run.about["device"] != on_gpu[key].about["device"]:
                elsewhere[key] = run
    for key, run in elsewhere.items():
        yield on_gpu[key], run


def compared(on_gpu: Stored, on_cpu: Stored) -> dict[str, Any]:
    """Return what a pair of runs says of the two devices."""
    first, second = (100 * run.history["accuracy"] for run in (on_cpu, on_gpu))
    packages = on_gpu.about["packages"]
    return {
        "trial": on_gpu.about["asked"]["trial"],
        "method": on_gpu.about["asked"]["method"],
        "cpu_accuracy": first.tail(LAST).mean(),
        "gpu_accuracy": second.tail(LAST).mean(),
        "difference": (second - first).tail(LAST).mean(),
        "early": (second - first).head(EARLY).abs().max(),
        "key": on_gpu.key,
        "cpu": on_cpu.about["device"],
        "cpu_precision": on_cpu.about["precision"],
        "gpu": on_gpu.about["device"],
        "gpu_precision": on_gpu.about["precision"],
        "torch": packages["torch"],
        "numpy": packages["numpy"],
        "commit": on_gpu.about["commit"],
    }


def main() -> None:
    """Write the rows, and print how many there are."""
    as_it_is = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_it_is)
    parser.add_argument("runs", type=Path, help="file or folder of the runs of a GPU")
    parser.add_argument("--command", default="", help="what trained them, for the record")
    parser.add_argument("--commit", help="of their training, where the runs do not say it")
    parser.add_argument("--out", type=Path, default=REFERENCE / "gpu" / "mnist.csv")
    asked = parser.parse_args()

    rows = pd.DataFrame([compared(*pair) for pair in pairs(asked.runs)])
    if rows.empty:
        raise SystemExit(
            f"{asked.runs} holds no run of URE, ReLU or ABS that a CPU's is shipped of"
        )
    rows["commit"] = rows["commit"].fillna(asked.commit or "unknown")
    rows = rows.sort_values(["trial", "method"]).assign(command=asked.command)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    write_csv(rows.round(4), asked.out)
    print(f"{len(rows)} pairs in {asked.out}")


if __name__ == "__main__":
    main()
