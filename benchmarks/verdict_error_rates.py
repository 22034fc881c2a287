"""How often does the rule of the verdicts give each of them, when the truth is known?

    python benchmarks/verdict_error_rates.py

Simulates three trials of ours against three of the paper's, normal with a common standard deviation, and prints
the shares of reproduced / close / differs in percent, and of the close ones that are too noisy to tell. The last
row of each block draws the deviation of every simulated cell from the 504 published ones. Margins and level are
those of config.yaml. Three seconds of one core; the standard error of a share is at most 0.2 points.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from mdpu.evaluate.comparison import (
    CLOSE,
    DIFFERS,
    PUBLISHED_TRIALS,
    REPRODUCED,
    TOO_NOISY,
    judge,
    welch_interval,
)
from mdpu.evaluate.published import published_cells

DIFFERENCES = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0)
DEVIATIONS = (0.3, 0.7, 1.5, 3.0)
CELLS = 60_000


def shares(difference: float, deviations: np.ndarray, rule: dict[str, float], seed: int) -> str:
    """Return the verdicts' shares of `CELLS` simulated cells, as the table shows them."""
    random = np.random.default_rng(seed)
    ours, paper = (random.normal(size=(PUBLISHED_TRIALS, CELLS)) * deviations for _ in range(2))
    ours += difference
    samples = [value for trials in (ours, paper) for value in (trials.mean(0), trials.std(0, ddof=1), PUBLISHED_TRIALS)]
    low, high = welch_interval(*samples, rule["level"])
    verdict, reason = judge(samples[0] - samples[3], low, high, rule["margin"], rule["wider_margin"])
    counts = [100 * (verdict == name).mean() for name in (REPRODUCED, CLOSE, DIFFERS)]
    return " / ".join(f"{count:.1f}" for count in counts) + f" ({100 * (reason == TOO_NOISY).mean():.1f})"


def main() -> None:
    """Print the table as Markdown."""
    config = yaml.safe_load(Path(__file__).parent.parent.joinpath("config.yaml").read_text(encoding="utf-8"))
    rule = config["comparison"]
    published = published_cells()["published_std"].to_numpy()
    print("| std over trials | " + " | ".join(f"difference {difference:g}" for difference in DIFFERENCES) + " |")
    print("| --- |" + " ---: |" * len(DIFFERENCES))
    for row, name in enumerate([*map(str, DEVIATIONS), "as published"]):
        drawn = np.random.default_rng(row).choice(published, CELLS)
        deviations = drawn if name == "as published" else np.full(CELLS, float(name))
        cells = [shares(d, deviations, rule, seed=100 * row + column) for column, d in enumerate(DIFFERENCES)]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
