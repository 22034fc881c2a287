"""Disturb one training job in `./run --keep-going`; it has to be contained, reported, and mended by `./run`.

    python benchmarks/faults/contained.py --out contained.csv                        # every fault, at two points each
    python benchmarks/faults/contained.py --out contained.csv --points 5 --only EIO  # one fault, at five

Run in a clone whose results may be deleted; needs gcc. An undisturbed run makes the reference. Each round starts where
all splits are drawn and nothing is trained. With `--keep-going`, the process that trains triples meets the fault at a
chosen one of its calls (`calls.c`), and the process that trains pairs does not. A round passes if

- the training job of pairs has its numbers, and no output holds a traceback;
- if the disturbed training job failed, the status says so, the report names it with one sentence, and nothing else;
- `./run`, once more, gives the very numbers of the reference, `./run check` finds nothing, and nothing is left over.
"""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness import (
    CHANGES,
    CONTAINED,
    ERRORS,
    HERE,
    Rounds,
    Workflow,
    build_counter,
    change,
    parser_of,
    put_back,
    record,
)

DISTURBED, OTHER = "digits/base/m3/n60", "digits/base/m2/n60"
SPLIT = "splits/digits/base/m3/prior0.5/n60/seed1.npz"
DIVERGING = ("--configfile", "benchmarks/faults/diverging.yaml")
# What the table calls a fault, and the value of FAULT_ERROR at one of the calls of training, if it is met at one.
FAULTS: dict[str, tuple[str, int | None]] = {
    **{name: (title, getattr(errno, name)) for name, title in ERRORS.items()},
    "ENOMEM": ("a request for memory is refused (ENOMEM)", errno.ENOMEM),
    "kill": ("the process is killed, as when memory runs out", 0),
    "clock": ("the clock jumps ahead by a day", -1),
    "checkpoint": ("the process is killed, and its checkpoint is damaged", 0),
    "GPU": ("the GPU is lost", None),
    "split": ("a bit of the split flips after it was drawn, with its old time stamp", None),
    "NaN": ("the objective of another training job becomes NaN", None),
}
NAMED, WENT_ON = "contained, named in the report, made good by ./run", "went on to the same numbers"


def flip_when_drawn(split: Path) -> None:
    """Wait for a split, and flip a bit of it."""
    while not split.exists():
        time.sleep(0.01)
    change(split, "flipped", old_time=True)


def meet(flow: Workflow, fault: str, at: int, library: Path) -> subprocess.CompletedProcess[str]:
    """Run the workflow while the disturbed training job meets a fault."""
    facts = {"FAULT_IN": DISTURBED, "FAULT_AT": str(at)}
    if fault == "split":
        split = flow.results / SPLIT
        split.unlink()  # it is drawn anew
        threading.Thread(target=flip_when_drawn, args=(split,), daemon=True).start()
        return flow.run("--keep-going")
    if fault == "NaN":
        return flow.run("--keep-going", *DIVERGING)
    if fault == "GPU":
        return flow.run("--keep-going", PYTHONPATH=str(HERE / "lost_gpu"), **facts)
    return flow.run("--keep-going", LD_PRELOAD=str(library), FAULT_ERROR=str(FAULTS[fault][1]), **facts)


def wrong_after_fault(flow: Workflow, done: subprocess.CompletedProcess[str]) -> str | None:
    """Return what the disturbed run did wrong, or None."""
    logs = (flow.results / "logs" / "train").glob(f"{DISTURBED}.*log")
    log = "".join(path.read_text(errors="replace") for path in logs)
    if "Traceback" in done.stdout + done.stderr + log:
        return f"a traceback: {log.strip().splitlines()[-1:]}"
    if not (flow.results / "metrics.parquet").exists():
        return f"no numbers at all: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]}"
    here = flow.numbers()
    pairs, expected = (table[table["tuple_size"] == 2].reset_index(drop=True) for table in (here, flow.reference))
    if not pairs.equals(expected[pairs.columns]):  # without triples, their own columns are missing
        return "other numbers in the job beside it"
    if done.returncode == 0:
        return None if here.equals(flow.reference) else "other numbers, and nothing said"
    page = (flow.results / "report.html").read_text(encoding="utf-8")
    named = re.search(r'id="failed".*?</section>', page, re.DOTALL)
    if named is None or DISTURBED not in named[0] or OTHER in named[0]:
        return "the report does not name it"
    said = [line for line in log.splitlines() if line.startswith("error: ")]
    return None if len(said) <= 1 else f"{len(said)} sentences"


def try_once(flow: Workflow, fault: str, at: int, point: int, library: Path) -> str:
    """Return the outcome of a round."""
    done = meet(flow, fault, at, library)
    if wrong := wrong_after_fault(flow, done):
        return wrong
    if fault == "NaN" and "diverged" not in (flow.results / "report.html").read_text(encoding="utf-8"):
        return "the report does not say that runs diverged"
    if fault == "checkpoint":
        left = list(flow.results.glob("checkpoints/**/[!.]*.pt"))
        for path in left:
            change(path, list(CHANGES)[point % 3], old_time=False)
        if not left:
            return "no checkpoint to damage; the kill came too early or too late"
    # Without the overlay, files of its experiment would be left that no longer match the numbers.
    again = flow.run(*(DIVERGING if fault == "NaN" else ()))
    if again.returncode:
        return f"fails for good: {again.stderr.strip().splitlines()[-1:]}"
    return flow.wrong() or (NAMED if done.returncode else WENT_ON)


def main() -> None:
    """Go through the faults and record each."""
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="*", default=list(FAULTS), choices=FAULTS)
    parser.add_argument("--points", type=int, default=2, help="calls of training to try, evenly spread")
    given = parser.parse_args()
    flow = Workflow("contained", CONTAINED, "--cores", "2")
    rounds = Rounds(given.out, "fault", "call", "of", "outcome")
    with tempfile.TemporaryDirectory() as folder:
        library, snapshot, counts = build_counter(Path(folder)), Path(folder, "drawn"), Path(folder, "counts")
        flow.clear()
        flow.succeed("--until", "split", "sheet", "audit")
        put_back(flow.results, snapshot)

        def begin() -> None:
            flow.clear()
            put_back(snapshot, flow.results)

        calls = {}
        for fault in given.only:  # requests for memory, or changes of files
            kind = errno.ENOMEM if fault == "ENOMEM" else 0
            if kind not in calls:
                begin()
                facts = {"FAULT_IN": DISTURBED, "FAULT_AT": str(2**40), "FAULT_ERROR": str(kind)}
                flow.succeed(LD_PRELOAD=str(library), FAULT_COUNTS=str(counts), **facts)
                calls[kind], flow.reference = int(counts.read_text()), flow.numbers()
            number = calls[kind]
            for point in range(given.points):
                at = point + 1 if fault == "GPU" else number * (2 * point + 1) // (2 * given.points) + 1
                if rounds.has(fault, at):
                    continue
                begin()
                outcome = try_once(flow, fault, at, point, library)
                rounds.add(fault, at, number, outcome)
                print(f"{fault} at call {at} of {number}: {outcome}", flush=True)
                where = "one training job in ./run --keep-going"
                record(FAULTS[fault][0], where, rounds.count("outcome", fault=fault))
    flow.clear()
    sys.exit(bool(rounds.count("outcome").keys() - {NAMED, WENT_ON}))


if __name__ == "__main__":
    main()
