"""How often does the rule of the verdicts give each of them, when the truth is known?

    python benchmarks/verdict_error_rates.py

Simulates three trials of ours against three of the paper's, normal with a common standard deviation, and prints
the shares of reproduced / close / differs in percent, and of the close ones that are too noisy to tell. The row
"as published" draws the deviation of every simulated cell from the 504 published ones. The last row draws two, ours and
the paper's, of a cell of URE, ReLU or ABS in results/reference/mnist. Margins and level are those of config.yaml. Four
seconds of one core; the standard error of a share is at most 0.2 points.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from mdpu.evaluate.comparison import CLOSE, DIFFERS, REPRODUCED, TOO_NOISY, judge, welch_interval
from mdpu.evaluate.published import PROPOSED, TRIALS, published_cells
from mdpu.files import read_csv

DIFFERENCES = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0)
DEVIATIONS = (0.3, 0.7, 1.5, 3.0)
CELLS = 60_000


def shares(difference: float, deviations: np.ndarray, rule: dict[str, float], seed: int) -> str:
    """Return the verdicts' shares of `CELLS` simulated cells, as the table shows them; deviations are ours, theirs."""
    random = np.random.default_rng(seed)
    ours, paper = (random.normal(size=(TRIALS, CELLS)) * of_side for of_side in deviations)
    ours += difference
    samples = [value for trials in (ours, paper) for value in (trials.mean(0), trials.std(0, ddof=1), TRIALS)]
    low, high = welch_interval(*samples, rule["level"])
    verdict, reason = judge(samples[0] - samples[3], low, high, rule["margin"], rule["wider_margin"])
    counts = [100 * (verdict == name).mean() for name in (REPRODUCED, CLOSE, DIFFERS)]
    return " / ".join(f"{count:.1f}" for count in counts) + f" ({100 * (reason == TOO_NOISY).mean():.1f})"


def main() -> None:
    """Print the table as Markdown."""
    root = Path(__file__).parent.parent
    rule = yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))["comparison"]
    published = published_cells()["published_std"].to_numpy()
    mnist = read_csv(root / "results/reference/mnist/comparison.csv")
    mnist = mnist.loc[mnist["method"].isin(PROPOSED) & mnist["n"].eq(10_000), ["std", "published_std"]].to_numpy().T
    print("| std over trials | " + " | ".join(f"difference {difference:g}" for difference in DIFFERENCES) + " |")
    print("| --- |" + " ---: |" * len(DIFFERENCES))
    drawn = {name: np.full((2, CELLS), name) for name in DEVIATIONS}
    drawn["as published"] = np.tile(np.random.default_rng(len(DEVIATIONS)).choice(published, CELLS), (2, 1))
    drawn["ours and the paper's on MNIST"] = np.random.default_rng(0).choice(mnist, CELLS, axis=1)
    for row, (name, deviations) in enumerate(drawn.items()):
        cells = [shares(d, deviations, rule, seed=100 * row + column) for column, d in enumerate(DIFFERENCES)]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
