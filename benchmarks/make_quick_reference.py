r"""Make results/reference/quick.csv, the expected numbers of ./run, from results/quick/summary.csv.

The tolerance is one point. What another CPU does to the numbers was measured by making them again with one thread and
AVX2 instead of two threads and AVX-512: the largest difference of any cell was 0.04 points, while a wrong risk weight,
split or optimizer setting moves cells by several.

    MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 \
        snakemake --configfile config/quick.yaml --config threads=1 results_dir=/tmp/avx2 --cores 2

    ./run; python benchmarks/make_quick_reference.py
"""

from pathlib import Path

import pandas as pd

TOLERANCE = 1.0  # points
ROOT = Path(__file__).resolve().parent.parent

summary = pd.read_csv(ROOT / "results/quick/summary.csv", dtype={"prior": str})
summary["tolerance"] = TOLERANCE
keys = ["dataset", "variant", "tuple_size", "n", "prior", "method", "loss"]
reference = summary[[*keys, "mean", "tolerance"]].round({"mean": 3})
reference.to_csv(ROOT / "results/reference/quick.csv", index=False)
print(reference.to_string(index=False))
