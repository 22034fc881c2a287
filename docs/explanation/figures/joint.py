"""What a pair says jointly and member by member, for the posteriors of its two members."""

import matplotlib.pyplot as plt
import numpy as np

from mdpu.law import Law

PRIOR = 0.5
grid = np.linspace(0, 1, 101)
pairs = np.stack(np.meshgrid(grid, grid), axis=-1)  # (101, 101, 2)
pair = Law.dominant(2)
joint = pair.passes(pairs, 1 - pairs)[0] / pair.rate(PRIOR)
share = pair.coefficients(PRIOR)
members = share.a / PRIOR * pairs + share.b / (1 - PRIOR) * (1 - pairs)

figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for axis, ratio, title in (
    (axes[0], joint, "Jointly"),
    (axes[1], members.prod(axis=-1), "Member by member"),
):
    shown = axis.contourf(grid, grid, ratio, levels=np.arange(0, 1.9, 0.2), cmap="cividis")
    axis.set(title=title, xlabel="$r(x_1)$", ylabel="$r(x_2)$", aspect="equal")
figure.colorbar(shown, ax=list(axes[:2]), label="Density ratio", shrink=0.8)

sizes = np.arange(2, 8)
axes[2].bar(
    sizes - 0.2,
    [Law.dominant(size).joint_information(PRIOR) for size in sizes],
    0.4,
    label="jointly",
)
axes[2].bar(
    sizes + 0.2,
    [Law.dominant(size).marginal_information(PRIOR) for size in sizes],
    0.4,
    label="by member",
    hatch="//",
)
axes[2].set(xlabel="Tuple size M", ylabel="Nats a tuple")
axes[2].legend(loc="upper left", fontsize="small")
axes[2].set_ylim(0, 1)
