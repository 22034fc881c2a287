"""How good is the time left that `./run` shows? Follows a real run, and compares what it said with what came.

    python benchmarks/time_left.py --out quick.csv -- ./run quick
    python benchmarks/time_left.py --out many.csv -- ./run paper --configfile many.yaml

Runs the command on a terminal of its own, as a reader sees it, and notes every change of the time left. At the end it
prints, for the moments from a tenth of the work on, how far the time left was from the truth: the time until the page
was there. It writes the moments as CSV: `seconds` since the first line, the `share` of the training that was done, the
time `left` that was shown, and the true one. Choose a selection that has not been run; one that is done shows nothing.
"""

from __future__ import annotations

import argparse
import csv
import os
import pty
import re
import statistics
import sys
import time
from pathlib import Path

FROM, WITHIN = 0.1, 0.25  # of the work, and of the true time left
LEFT = re.compile(r"train +\d+ of \d+ cohorts, (?P<share>\d+) %, about (?P<left>[\d a-z]+?) left")
DONE = re.compile(r"report +1 of 1 in")
UNITS = {"s": 1, "min": 60, "h": 3600}


def seconds_of(words: str) -> float:
    """Return the seconds of a duration in words, the inverse of `mdpu.pipeline.console.stages.words`."""
    return float(sum(int(count) * UNITS[unit] for count, unit in re.findall(r"(\d+) (s|min|h)\b", words)))


def follow(command: list[str]) -> tuple[list[tuple[float, float, float]], float]:
    """Run a command on a terminal and return what it said, and the seconds until its page was there.

    Returns
    -------
    moments : list of (float, float, float)
        Seconds since its first line, share of the training, and time left; one for each change.
    end : float
    """
    started, moments, end, text = 0.0, [], 0.0, ""

    def read(terminal: int) -> bytes:
        nonlocal started, end, text
        content = os.read(terminal, 65536)
        now = time.monotonic()
        started = started or now
        text = text[-2000:] + re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", content.decode("utf-8", "replace"))
        if shown := list(LEFT.finditer(text)):
            said = int(shown[-1]["share"]) / 100, seconds_of(shown[-1]["left"])
            if not moments or moments[-1][1:] != said:
                moments.append((now - started, *said))
        if DONE.search(text) and not end:
            end = now - started
        return content

    os.environ["COLUMNS"] = "200"
    status = os.waitstatus_to_exitcode(pty.spawn(command, read))
    if status or not end:
        sys.exit(f"{' '.join(command)} ended with status {status}, and made no page")
    return moments, end


def judge(moments: list[tuple[float, float, float]], end: float) -> list[dict[str, float]]:
    """Return every moment with the true time left and the relative error of the one that was shown."""
    return [
        {
            "seconds": round(at, 1),
            "share": share,
            "left": left,
            "true": round(end - at, 1),
            "error": left / (end - at) - 1,
        }
        for at, share, left in moments
        if at < end
    ]


def main() -> None:
    """Follow a run, write its moments and print how good they were."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="CSV to write")
    parser.add_argument("command", nargs="+", help="what to run, behind --")
    arguments = parser.parse_args()

    moments, end = follow(arguments.command)
    rows = judge(moments, end)
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["seconds", "share", "left", "true", "error"])
        writer.writeheader()
        writer.writerows({**row, "error": round(row["error"], 3)} for row in rows)
    judged = [abs(row["error"]) for row in rows if row["seconds"] >= FROM * end]
    within = sum(error <= WITHIN for error in judged)
    print(
        f"\n{end:.0f} s to the page; from a tenth of them on {len(judged)} times left were shown, {within} of them "
        f"within {100 * WITHIN:.0f} % of the truth; median error {100 * statistics.median(judged):.0f} %, "
        f"largest {100 * max(judged):.0f} %"
    )


if __name__ == "__main__":
    main()
