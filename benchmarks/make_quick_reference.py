"""Make results/reference/quick.csv, the expected numbers of ./run, from results/quick/summary.csv.

The tolerance of a cell covers what another CPU may do to 60 epochs of float32 training: trajectories part at the
last bit and end as if they were other trials. It is three standard errors of the difference of two such means, each
over the cell's trials, with the standard deviation pooled over all cells, and at least one point.

    ./run; python benchmarks/make_quick_reference.py
"""

from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent

summary = pd.read_csv(ROOT / "results/quick/summary.csv", dtype={"prior": str})
pooled = np.sqrt((summary["std"] ** 2).mean())
summary["tolerance"] = np.maximum(1.0, 3 * pooled * np.sqrt(2 / summary["trials"])).round(2)
keys = ["dataset", "variant", "tuple_size", "n", "prior", "method", "loss"]
reference = summary[[*keys, "mean", "tolerance"]].round({"mean": 3})
reference.to_csv(ROOT / "results/reference/quick.csv", index=False)
print(reference.to_string(index=False))
