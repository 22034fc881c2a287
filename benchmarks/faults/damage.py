"""Damage every file between the images and the metrics; what reads it has to name it, and its target makes it again.

    python benchmarks/faults/damage.py --out damage.csv      # goes on from damage.csv, if it is there

Run in a clone whose results may be deleted. A file is cut in half, or one of its bits is flipped, with its old time
stamp, so Snakemake does not notice. Then the jobs that read it are forced: one of them has to fail and name the file,
or, where the damage changes no value, to give the same numbers. The file is deleted and made again as a target, and the
metrics have to be those from before.
"""

from __future__ import annotations

import sys
import time
from itertools import product

from harness import CHANGES, RESULTS, ROOT, Rounds, change, clear, leftovers, numbers, parser_of, run, succeed

NAMED, HARMLESS, MISSED = "named", "a change of no value", "MISSED"
SAME, OTHER = "made again with the same numbers", "OTHER numbers"
# For each folder or file of results, the rules that read what is in it.
READERS = {
    "datasets/*.npz": "labels",
    "labels/*.npz": "split",
    "splits/**/*.npz": "train",
    "runs/**/*.parquet": "collect",
    "tiny/metrics.parquet": "figure",
}


def main() -> None:
    """Try all, and count."""
    parser = parser_of(__doc__)
    parser.add_argument("--sample", action="store_true", help="of results that are there, one file of each kind")
    given = parser.parse_args()
    rounds, started = Rounds(given.out, "damage", "file", "noticed", "afterwards"), time.monotonic()
    if not given.sample:
        clear()
    succeed()
    reference = numbers()
    files = [(path, reader) for pattern, reader in READERS.items() for path in sorted(RESULTS.glob(pattern))]
    ways = [*CHANGES]
    if given.sample:
        ways, files = ["cut"], [*{reader: (path, reader) for path, reader in files}.values()][::-1]
    for way, (path, reader) in product(ways, files):
        name = str(path.relative_to(ROOT))
        if rounds.has(way, name):
            continue
        content = path.read_bytes()
        if reader == "train":  # a finished cell reads no split
            for cell in (RESULTS / "runs" / path.relative_to(RESULTS / "splits")).with_suffix("").glob("*.parquet"):
                cell.unlink()
        change(path, way)
        done = run("--forcerun", reader, "--until", reader)
        noticed = NAMED if done.returncode and name in done.stdout + done.stderr else MISSED
        if noticed == MISSED and done.returncode == 0 and numbers().equals(reference):
            noticed = HARMLESS
        path.unlink()
        again = run(name)
        is_last = not given.sample or path == files[-1][0]  # a sample goes upstream, and the rest is made once
        back = run() if is_last else again
        same = again.returncode == back.returncode == 0 and not leftovers()
        same = same and (not is_last or numbers().equals(reference))
        same = same and (path.suffix != ".npz" or path.read_bytes() == content)
        rounds.add(way, name, noticed, SAME if same else OTHER)
        print(f"{time.monotonic() - started:.0f} s: {dict(rounds.count('noticed'))}", flush=True)
    print(dict(rounds.count("afterwards")))
    sys.exit(bool(rounds.count("noticed")[MISSED] or rounds.count("afterwards")[OTHER]))


if __name__ == "__main__":
    main()
