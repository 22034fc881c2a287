"""Hand over every bad input of the tests, and count those that end in one sentence.

    python benchmarks/faults/inputs.py

The inputs are the cases of the tests that are marked `bad_input`: configurations, values, images and expected numbers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import outcomes

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    """Run the tests and record the count."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "bad_input", f"--junit-xml={report}"]
        status = subprocess.run([*command, "tests/study", "tests/data"], cwd=ROOT).returncode
        suite = next(ET.parse(report).iter("testsuite"))
    wrong, skipped = (
        sum(int(suite.attrib[name]) for name in names) for names in (("failures", "errors"), ("skipped",))
    )
    tally = Counter({"one sentence": int(suite.attrib["tests"]) - wrong - skipped, "NOT one sentence": wrong})
    outcomes.record("bad input", "configurations, values, images and expected numbers", +tally)
    sys.exit(status)


if __name__ == "__main__":
    main()
