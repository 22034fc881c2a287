# The plan of the configuration, and what every rule file uses of it. Nothing is computed here.

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError

from mdpu.errors import UserError
from mdpu.experiment import PACKAGE, Plan, training_code

try:
    PLAN = Plan(config)
    COHORTS = PLAN.cohorts
    OWN_FILES = PLAN.own_files
except UserError as error:
    raise WorkflowError(str(error))

# The resolved configuration reaches the commands through the environment: its name changes with every
# edit, and as a parameter it would make every job run again. What a job depends on is in its params.
os.environ["MDPU_CONFIG"] = str(PLAN.write())


envvars:
    "MDPU_CONFIG",


RESULTS = PLAN.results
IMAGES = PLAN.images_folder
LOGS = RESULTS / "logs"
BENCHMARKS = RESULTS / "benchmarks"
SIDES = ("positive", "negative")
TABLES = [
    RESULTS / "tables" / f"{name}.{suffix}"
    for name, experiment in PLAN.experiments.items()
    if experiment.kind == "table"
    for suffix in ("csv", "md", "tex")
]
FIGURES = [
    RESULTS / "figures" / f"{name}.{suffix}"
    for name, experiment in PLAN.experiments.items()
    if experiment.kind != "table"
    for suffix in ("svg", "pdf")
]
SENSITIVITY = [
    RESULTS / "sensitivity" / f"{name}{ending}"
    for name, experiment in PLAN.experiments.items()
    if experiment.kind == "sensitivity"
    for ending in (".csv", ".md", ".tex", "-nearest.csv")
]
VERIFICATION = [RESULTS / "verification.json"] if config.get("expected") else []

# What figures of a kind are made with, beside their own module and what all figures share.
KIND_CODE = {
    "sensitivity": (
        "evaluate/sensitivity.py",
        "evaluate/published.py",
        "evaluate/published_tables.csv",
        "report/sensitivity.py",
    )
}


wildcard_constraints:
    dataset="[a-z0-9-]+",
    variant="[a-z0-9-]+",
    tuple_size="[0-9]+",
    prior=r"0\.[0-9]+",
    n="[0-9]+",
    seed="[0-9]+",
    experiment="[a-z0-9-]+",
    cohort=r"[a-z0-9./-]+",


def code(*files):
    """The mdpu sources of a stage: editing them reruns it, which Snakemake would not notice by itself."""
    return [os.path.relpath(PACKAGE / file) for file in files]


def cohort_inputs(wildcards):
    cohort = PLAN.cohort(wildcards.cohort)
    tuning = next(filter(None, map(PLAN.tuning_name, cohort.runs)), None)
    return {
        **({"tuned": PLAN.tuned(tuning)} if tuning else {}),
        "images": PLAN.images(cohort.dataset),
        "labels": PLAN.labels(cohort.dataset),
        "splits": [PLAN.split(split) for split in cohort.splits],
        "code": [os.path.relpath(file) for file in training_code(run.method for run in cohort.runs)],
    }


def sampling(wildcards):
    return PLAN.sampling(wildcards.variant, int(wildcards.n))


def tuning(wildcards):
    return PLAN.tunings[f"{wildcards.dataset}/{wildcards.variant}/m{wildcards.tuple_size}"]
