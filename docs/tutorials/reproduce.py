"""
Reproduce the paper
===================

The pipeline goes from raw images to a report in which each of the paper's numbers has a verdict.
This lesson does by hand what the pipeline does for one cell of a table. Then it looks at what came
out for the paper's own dataset, MNIST.

You need a checkout of the repository, because the configurations and the kept results are there.
"""

# %%
# What a configuration asks for
# -----------------------------
# ``config.yaml`` is the paper's whole experiment. ``config/quick.yaml`` is laid over it, and asks
# for tables of the same shape on handwritten digits that need no download. A *plan* lists the runs.

from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

layers = [REPOSITORY / "config.yaml", REPOSITORY / "config" / "quick.yaml"]
plan = Plan(load_config(layers))
print(len(plan.runs), "runs, such as", plan.runs[0].name)

# %%
# One cell
# --------
# A *cell* is what a table has in one place: a dataset, tuple size, prior, number of tuples and
# method, here with three seeds. These are the cells of URE, ReLU and ABS on 800 pairs at prior 0.5.

cell = "digits/base/m2/n800/prior0.5/{method}"
runs = [
    run
    for name in ("ure", "relu", "abs")
    for run in plan.cells[cell.format(method=name)]
]

# %%
# Images get a side, and each trial draws its tuples and unlabeled images. A trial's name is the key
# of all its random numbers, so these are the tuples that the pipeline draws.

from mdpu.data import draw_split
from mdpu.pipeline.data.labels import binarize
from mdpu.pipeline.data.sources import SOURCES

images = SOURCES["digits"].read([])
labels = binarize(images, plan.dataset("digits"))
train_labels = labels["train"]
samples = [draw_split(train_labels, 2, 0.5, 800, 800, run.trial) for run in runs]

# %%
# Nine trainings of 50 epochs follow, one after the other.

from mdpu.networks import TestSet
from mdpu.settings import Task
from mdpu.train import train

test = images.test_images, labels["test"]
evaluation = TestSet(*test, images.train_images, train_labels)
settings = plan.protocol.settings("base", "mlp")
models = []
for run, sample in zip(runs, samples, strict=True):
    task = Task(run.method, tuple_size=2, prior=0.5)
    data = [sample], [run.trial]
    models += train(task, images.train_images, *data, settings, evaluation=evaluation)

# %%
# The numbers
# -----------
# An accuracy is the mean of the last ten epochs, and a cell is the mean of its seeds. The
# repository keeps the expected numbers of the quick experiment, with tolerances.

import pandas as pd

share = evaluation.share_positive


def accuracy(history):
    """Return the accuracy of every epoch, in percent."""
    positives = history["true_positive_rate"]
    negatives = history["true_negative_rate"]
    return 100 * (share * positives + (1 - share) * negatives)


methods = [run.method for run in runs]
reached = [accuracy(model.history).tail(10).mean() for model in models]
groups = pd.Series(reached, index=methods).groupby(level=0, sort=False)
ours = groups.agg(["mean", "std"])

reference = REPOSITORY / "results" / "reference"
expected = pd.read_csv(reference / "quick.csv").set_index("method")
expected = expected.query("tuple_size == 2 and prior == 0.5")
expected = expected.rename(columns={"mean": "expected"})
table = ours.join(expected[["expected", "tolerance"]])
table["within"] = (table["mean"] - table["expected"]).abs() <= table["tolerance"]
print(table.round(2))

# %%
# ``./run`` does this for all runs of the quick experiment, in minutes, and writes the report.
#
# The risk that falls below zero
# ------------------------------
# Why are there corrections at all? URE minimises an unbiased estimate of a risk, and a risk is
# never negative. Its estimate becomes negative. ReLU and ABS minimise a corrected one.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for run, model in zip(runs, models, strict=True):
    if run.seed == runs[0].seed:
        history = model.history
        axes[0].plot(history["epoch"], history["objective"], label=run.method)
        axes[1].plot(history["epoch"], accuracy(history), label=run.method)
axes[0].axhline(0, color="gray", linewidth=0.8)
axes[0].set(xlabel="Epoch", ylabel="Objective")
axes[1].set(xlabel="Epoch", ylabel="Test accuracy (%)")
axes[1].legend()
plt.show()

# %%
# What came out on MNIST
# ----------------------
# The paper's own images take longer: ``./run paper --config 'datasets=[mnist]'``. The results of
# such a run are kept in the repository. Here they are beside the published numbers of Tables II to
# V; bars are standard deviations. ``./run verify`` trains a sample of these runs again.

kept = pd.read_csv(reference / "comparison.csv")
kept = kept[(kept["dataset"] == "mnist") & kept["method"].isin(("ure", "relu", "abs"))]

figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
for method, rows in kept.groupby("method", sort=False):
    numbers = (rows[key] for key in ("published_mean", "mean", "std", "published_std"))
    axis.errorbar(*numbers, fmt="o", markersize=4, label=method)
axis.plot([76, 94], [76, 94], color="gray", linewidth=0.8)
axis.set(xlabel="Published accuracy (%)", ylabel="Ours (%)")
axis.set_title("MNIST, pairs and triples")
axis.legend()
plt.show()

print(kept["verdict"].value_counts().to_string())

# %%
# Where to go next
# ----------------
# - :doc:`/explanation/findings`: what reproduces and what does not, with reasons.
# - :doc:`/explanation/comparison`: the rule behind *reproduced*, *close*, *inconclusive* and
#   *differs*.
# - :doc:`/explanation/protocol`: what the paper leaves open, and what was chosen.
