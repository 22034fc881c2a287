"""Measure what a part of the paper costs from nothing: wall time and processor time of one command.

    python benchmarks/whole_part.py --folder /tmp/part --data-dir data --append results/reference/whole-part.jsonl

clones this repository into the folder, with the environment of this clone, and runs `./run paper` there on the datasets
that are named. Raw downloads are taken from `--data-dir`. The line that it prints and appends has the seconds of the
command with all of its children, and the number of runs that it trained. The clone is kept.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from shared import machine

from mdpu.learn.device import choose_device
from mdpu.pipeline.files import REPOSITORY, read_csv


def processor_seconds() -> float:
    """Return the processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Clone, run, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=["mnist"])
    parser.add_argument("--config", nargs="*", default=[], help="further values, as ./run takes them")
    parser.add_argument("--append", type=Path)
    arguments = parser.parse_args()
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, arguments.folder], check=True)
    (arguments.folder / ".venv").symlink_to(Path(sys.prefix))
    values = [f"datasets=[{', '.join(arguments.datasets)}]", f"data_dir={arguments.data_dir.resolve()}", "name=part"]
    begun, before = time.monotonic(), processor_seconds()
    subprocess.run(
        ["./run", "paper", "--config", *values, *arguments.config],
        cwd=arguments.folder,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    line = {
        "datasets": arguments.datasets,
        "runs": len(read_csv(arguments.folder / "results" / "part" / "runs.csv")),
        "wall_seconds": round(time.monotonic() - begun),
        "processor_seconds": round(processor_seconds() - before),
        "commit": subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, text=True).strip(),
        **machine(choose_device("auto")),
    }
    print(json.dumps(line))
    if arguments.append:
        with arguments.append.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
