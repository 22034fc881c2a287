"""Disturb the training of one cohort in `./run --keep-going`; it has to be contained, reported, and mended by `./run`.

    python benchmarks/faults/contained.py --out contained.csv                        # every fault, at two points each
    python benchmarks/faults/contained.py --out contained.csv --points 5 --only EIO  # one fault, at five

Run in a clone whose results may be deleted; needs gcc. An undisturbed run makes the reference. Each round starts where
all splits are drawn and nothing is trained. With `--keep-going`, the process that trains triples meets the fault at a
chosen one of its calls (`calls.c`), and the process that trains pairs does not. A round passes if

- the cohort of pairs has its numbers, and no output holds a traceback;
- if the disturbed cohort failed, the status says so, the report names it with one sentence, and nothing else;
- `./run`, once more, gives the very numbers of the reference, `./run check` finds nothing, and nothing is left over.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import outcomes
import pandas as pd
from damage import cut, edit, flip
from points import FAULTS, ROOT, build_counter, put_back

RESULTS = ROOT / "results" / "contained"
FILES = ["benchmarks/faults/tiny.yaml", "benchmarks/faults/contained.yaml"]
RUN = ["./run", "paper", "--cores", "2", "--configfile", *FILES]
DIVERGING = ("--configfile", "benchmarks/faults/diverging.yaml")
DISTURBED, OTHER = "digits/base/m3/n60", "digits/base/m2/n60"
SPLIT = RESULTS / "splits/digits/base/m3/prior0.5/n60/seed1.npz"
CLOCK_JUMPS = -1
# What training meets at one of its calls, as the value of FAULT_ERROR.
ERRORS = {
    "ENOSPC": errno.ENOSPC,
    "EDQUOT": errno.EDQUOT,
    "EIO": errno.EIO,
    "EROFS": errno.EROFS,
    "ENOMEM": errno.ENOMEM,
    "kill": 0,
    "clock": CLOCK_JUMPS,
}
NAMES = FAULTS | {
    "ENOMEM": "a request for memory is refused (ENOMEM)",
    "kill": "the process is killed, as when memory runs out",
    "clock": "the clock jumps ahead by a day",
    "GPU": "the GPU is lost",
    "split": "a bit of the split flips after it was drawn, with its old time stamp",
    "checkpoint": "the process is killed, and its checkpoint is damaged",
    "NaN": "the objective of another cohort becomes NaN",
}
CONTAINED, WENT_ON = "contained, named in the report, made good by ./run", "went on to the same numbers"


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the workflow with further variables in its environment."""
    return subprocess.run([*RUN, *options], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)


def numbers() -> pd.DataFrame:
    """Return the histories of all runs, without those that diverge."""
    table = pd.read_parquet(RESULTS / "metrics.parquet")
    return table[table["variant"] == "base"].reset_index(drop=True)


def disturbed_log() -> str:
    """Return what the training of the disturbed cohort printed."""
    log = RESULTS / "logs" / "train" / f"{DISTURBED}.log"
    return log.read_text(errors="replace") if log.exists() else ""


def flip_the_split() -> None:
    """Wait for the split, and flip a bit of it."""
    while not SPLIT.exists():
        time.sleep(0.01)
    times = SPLIT.stat()
    SPLIT.write_bytes(flip(SPLIT.read_bytes()))
    os.utime(SPLIT, ns=(times.st_atime_ns, times.st_mtime_ns))


def damage_the_checkpoint(point: int) -> bool:
    """Damage the checkpoints that a killed training left, in one of three ways; return whether there are any."""
    left = list(RESULTS.glob("checkpoints/**/[!.]*.pt"))
    for path in left:
        path.write_bytes((cut, flip, edit)[point % 3](path.read_bytes()))
    return bool(left)


def meet(fault: str, at: int, library: Path) -> subprocess.CompletedProcess[str]:
    """Run the workflow while the disturbed cohort meets a fault."""
    if fault == "split":
        SPLIT.unlink()  # it is drawn anew
        flipping = threading.Thread(target=flip_the_split, daemon=True)
        flipping.start()
        return run("--keep-going")
    if fault == "NaN":
        return run("--keep-going", *DIVERGING)
    if fault == "GPU":
        lost = str(Path(__file__).resolve().parent / "lost_gpu")
        return run("--keep-going", PYTHONPATH=lost, FAULT_IN=DISTURBED, FAULT_AT=str(at))
    number = ERRORS["kill" if fault == "checkpoint" else fault]
    return run("--keep-going", LD_PRELOAD=str(library), FAULT_IN=DISTURBED, FAULT_AT=str(at), FAULT_ERROR=str(number))


def draw(snapshot: Path) -> None:
    """Draw the splits, and keep a copy of the results as they are then."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    done = run("--until", "split", "sheet", "audit")
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(RESULTS, snapshot)


def count(library: Path, error: int, snapshot: Path) -> int:
    """Run undisturbed, and return how many calls the training of the disturbed cohort makes that a fault can hit."""
    put_back(snapshot, RESULTS)
    counts = snapshot.with_name("counts")
    facts = {"FAULT_IN": DISTURBED, "FAULT_AT": str(2**40), "FAULT_ERROR": str(error), "FAULT_COUNTS": str(counts)}
    done = run(LD_PRELOAD=str(library), **facts)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(counts.read_text())


def wrong_after_fault(done: subprocess.CompletedProcess[str], reference: pd.DataFrame) -> str | None:
    """Return what the disturbed run did wrong, or None."""
    if "Traceback" in done.stdout + done.stderr + disturbed_log():
        return f"a traceback: {disturbed_log().strip().splitlines()[-1]}"
    if not (RESULTS / "metrics.parquet").exists():
        return f"no numbers at all: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]}"
    here = numbers()
    pairs, expected = (table[table["tuple_size"] == 2].reset_index(drop=True) for table in (here, reference))
    if not pairs.equals(expected[pairs.columns]):  # without triples, their own columns are missing
        return "other numbers in the cohort beside it"
    if done.returncode == 0:
        return None if here.equals(reference) else "other numbers, and nothing said"
    page = (RESULTS / "report.html").read_text(encoding="utf-8")
    named = re.search(r'id="failed".*?</section>', page, re.DOTALL)
    if named is None or DISTURBED not in named[0] or OTHER in named[0]:
        return "the report does not name it"
    said = [line for line in disturbed_log().splitlines() if line.startswith("error: ")]
    return None if len(said) <= 1 else f"{len(said)} sentences"


def wrong_at_the_end(reference: pd.DataFrame, *options: str) -> str | None:
    """Run once more, and return what is wrong with the result, or None."""
    again = run(*options)
    if again.returncode:
        return f"fails for good: {again.stderr.strip().splitlines()[-1:]}"
    if not numbers().equals(reference):
        return "other numbers"
    checked = subprocess.run(["./run", "check", RESULTS.name], cwd=ROOT, capture_output=True, text=True)
    if checked.returncode:
        return f"other than sealed: {' '.join(checked.stdout.split())[-300:]}"
    left = [*(path for path in RESULTS.rglob(".*") if path.suffix != ".seal"), *RESULTS.rglob("*.pt")]
    return f"left over: {', '.join(map(str, left))}" if left else None


def try_once(fault: str, at: int, point: int, library: Path, reference: pd.DataFrame) -> str:
    """Return the outcome of a round."""
    done = meet(fault, at, library)
    if wrong := wrong_after_fault(done, reference):
        return wrong
    if fault == "NaN" and "diverged" not in (RESULTS / "report.html").read_text(encoding="utf-8"):
        return "the report does not say that runs diverged"
    if fault == "checkpoint" and not damage_the_checkpoint(point):
        return "no checkpoint to damage; the kill came too early or too late"
    # Without the overlay, files of its experiment would be left that no longer match the numbers.
    overlay = DIVERGING if fault == "NaN" else ()
    return wrong_at_the_end(reference, *overlay) or (CONTAINED if done.returncode else WENT_ON)


def main() -> None:
    """Go through the faults and record each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*ERRORS, "GPU", "split", "checkpoint", "NaN"]
    parser.add_argument("--only", nargs="*", default=known, choices=known)
    parser.add_argument("--points", type=int, default=2, help="calls of training to try, evenly spread")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rounds = outcomes.Rounds(given.out, "fault", "call", "of", "outcome")
    with tempfile.TemporaryDirectory() as folder:
        library, snapshot = build_counter(Path(folder)), Path(folder) / "drawn"
        draw(snapshot)
        kinds = {errno.ENOMEM if fault == "ENOMEM" else 0 for fault in given.only}
        calls = {kind: count(library, kind, snapshot) for kind in kinds}
        reference = numbers()
        print(f"training of {DISTURBED}: {sorted(calls.values())} calls", flush=True)
        for fault in given.only:
            number = calls[errno.ENOMEM if fault == "ENOMEM" else 0]  # requests for memory, or changes of files
            for point in range(given.points):
                at = point + 1 if fault == "GPU" else number * (2 * point + 1) // (2 * given.points) + 1
                if rounds.has(fault, at):
                    continue
                put_back(snapshot, RESULTS)
                outcome = try_once(fault, at, point, library, reference)
                rounds.add(fault, at, number, outcome)
                print(f"{fault} at call {at}: {outcome}", flush=True)
                where = "the training of one cohort in ./run --keep-going"
                outcomes.record(NAMES[fault], where, rounds.count("outcome", fault=fault))
    shutil.rmtree(RESULTS)
    sys.exit(bool(rounds.count("outcome").keys() - {CONTAINED, WENT_ON}))


if __name__ == "__main__":
    main()
