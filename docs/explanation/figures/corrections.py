"""The corrections f of a part of the risk (Eqs. 14 to 16)."""

import matplotlib.pyplot as plt
import numpy as np

risk = np.linspace(-1, 1, 201)
figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
for name, k, dash in (("URE", -1, "-"), ("ReLU", 0, "--"), ("ABS", 1, "-.")):
    axis.plot(risk, np.where(risk >= 0, risk, -k * risk), dash, label=name)
axis.axhline(0, color="gray", linewidth=0.8)
axis.set(xlabel="Estimated risk R", ylabel="What is minimised, f(R)")
axis.legend()
