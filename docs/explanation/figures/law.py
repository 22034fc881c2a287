"""The law of a tuple's labels, and the share of positives among members (Lemmas 5 and 6)."""

import matplotlib.pyplot as plt
import numpy as np

from mdpu.law import Law

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for place, size in enumerate((2, 3, 4)):
    law = Law.dominant(size).counts(0.4)[::-1][: size // 2 + 1]
    left.bar(
        np.arange(len(law)) + 0.27 * (place - 1),
        law,
        width=0.25,
        label=f"M = {size}",
        hatch=("", "//", "..")[place],
    )
left.set(xlabel="Negatives in a tuple, k", ylabel="Probability at prior 0.4", xticks=range(3))
left.legend()

priors = np.linspace(0.01, 0.99, 99)
for size, dash in ((1, ":"), (2, "-"), (3, "--"), (4, "-.")):
    right.plot(
        priors,
        [Law.dominant(size).coefficients(prior).a for prior in priors],
        dash,
        label=f"M = {size}",
    )
right.plot(priors, priors, color="gray", linewidth=0.8)
right.set(xlabel="Prior", ylabel="Share of positives among members, a")
right.legend()
