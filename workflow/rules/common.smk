# The plan of the configuration, and what the rule files need from it. Nothing is computed here.

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from mdpu.pipeline.data.sources import SOURCES
from mdpu.errors import UserError
from mdpu.pipeline.lock import CHECKED, TOKEN
from mdpu.pipeline.report.sections import format_name
from mdpu.pipeline import experiments, plan
from mdpu.pipeline.config import canonical
from mdpu.pipeline.failed import without_failed
from mdpu.pipeline.cache import adopt, identity
from mdpu.pipeline.code import kind_version, room_version, source_version, training_version
from mdpu.pipeline.experiments import load_kind
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import PARTS, Plan, has_gpu

try:
    PLAN = Plan(canonical(config))
    if workflow.is_main_process and not {CHECKED, TOKEN} & os.environ.keys():  # ./run has checked them
        experiments.check(PLAN.config)
    if PLAN.config.get("without_failed"):
        PLAN = Plan(without_failed(PLAN.config))
        for _job, _reason in PLAN.failed.items():
            logger.warning(f"left out: {_job}: {_reason}")
    JOBS = PLAN.jobs
    OWN_FILES = PLAN.own_files
    # The commands get the resolved configuration through the environment. Its name changes with every edit, so as a
    # parameter it would rerun every job. What a job depends on is in its params.
    os.environ["MDPU_CONFIG"] = str(PLAN.layout.write_config())
except UserError as error:
    raise WorkflowError(str(error))


envvars:
    "MDPU_CONFIG",


RESULTS = PLAN.layout.results
IMAGES = PLAN.layout.images_folder
LOGS = RESULTS / "logs"
BENCHMARKS = RESULTS / "benchmarks"
SIDES = ("positive", "negative")
MANIFESTS = [PLAN.layout.manifest(job, identity(PLAN, job)) for job in JOBS]
# The version of the code behind the rules before and after training: a parameter, so comments rerun nothing.
DATA_CODE = room_version("data")
EVALUATION_CODE = room_version("evaluate")
SHEETS = [RESULTS / "sheets" / dataset / f"{side}.png" for dataset in PLAN.datasets for side in SIDES]
DESCRIPTIONS = sorted({str(PLAN.layout.images(dataset).with_suffix(".json")) for dataset in PLAN.datasets})
COUNTS = [PLAN.layout.labels(dataset).with_suffix(".json") for dataset in PLAN.datasets]
# Files between the images and the numbers. As targets, lost ones are remade.
TRACED = [*PLAN.prepared, *map(PLAN.layout.tuned, PLAN.tunings)]
KINDS = {}  # the kinds in use, each with the names of its experiments
for _name, _experiment in PLAN.experiments.items():
    KINDS.setdefault(_experiment.kind, []).append(_name)
SHOWN = [RESULTS / file for name, shown in PLAN.experiments.items() for file in load_kind(shown.kind).outputs(name)]
TABLES = [path for path in SHOWN if path.parent == RESULTS / "tables"]
FIGURES = [path for path in SHOWN if path.parent == RESULTS / "figures"]
TUNING_FIGURES = [
    RESULTS / "figures" / "tuning" / f"{name}.{suffix}" for name in PLAN.tunings for suffix in ("svg", "pdf")
]
RUNS = [RESULTS / "runs.csv"] if PLAN.runs else []
JUDGED = ("comparison", "claims", "ranks", "audit") if PLAN.runs else ("audit",)
EVALUATION = [RESULTS / f"{name}.json" for name in JUDGED]
VERIFICATION = [RESULTS / "verification.json"] if PLAN.config.get("expected") and PLAN.runs else []

if workflow.is_main_process:
    try:
        adopt(PLAN)
    except UserError as error:
        raise WorkflowError(str(error))


wildcard_constraints:
    dataset="[a-z0-9-]+",
    experiment="[a-z0-9-]+",
    split=r"[a-z0-9./-]+",
    tuning="[a-z0-9/-]+",
    job=r"[a-z0-9./-]+",
    identity="[0-9a-f]{16}",


def training_code(runs, network):
    """The versions of the code that trains some runs."""
    return sorted({training_version(run.method, network) for run in runs})


def offered(file, caption, category, shown):
    """An output that `snakemake --report` offers, with a caption of workflow/captions and labels.

    What is shown is a text with wildcards, or a function of them, as the category is.
    """
    labels = {"Shown": shown, "Format": format_name(file)}
    if callable(shown):
        labels = lambda wildcards: {"Shown": shown(wildcards), "Format": format_name(file)}
    return report(file, caption=f"../captions/{caption}.rst", category=category, labels=labels)


def part_title(wildcards):
    return PARTS[PLAN.experiment(wildcards.experiment).part]


def experiment_title(wildcards):
    return PLAN.experiment(wildcards.experiment).title


def shown_inputs(wildcards):
    return experiments.inputs(PLAN, wildcards.experiment)


def job_inputs(wildcards):
    job = PLAN.job(wildcards.job)
    tuning = next(filter(None, map(PLAN.tuning_name, job.runs)), None)
    return {
        **({"tuned": PLAN.layout.tuned(tuning)} if tuning else {}),
        "images": PLAN.layout.images(job.dataset),
        "labels": PLAN.layout.labels(job.dataset),
        # A split that an illustration draws again is the same; how it is drawn is part of the manifest's name.
        "splits": ancient([PLAN.layout.split(split) for split in job.splits]),
    }


def gpus():
    """The number of GPUs to request for a job that can use one: 0 if all jobs run here and there is none.

    So jobs run side by side on a laptop. A login node and a dry run cannot tell which GPUs a cluster has.
    """
    without = workflow.local_exec and not workflow.dryrun and not has_gpu()
    return {"cpu": 0, "cuda": 1, "auto": 0 if without else 1}[PLAN.config["device"]]


def drawing(wildcards):
    """The options of `mdpu split`, so that a split is drawn again by hand from what the job prints."""
    options = {key.replace("_", "-"): value for key, value in PLAN.drawing(wildcards.split).items()}
    flags = {key: options.pop(key) for key in ("replacement", "overlap")}
    switched = [f"--{key}" if value else f"--no-{key}" for key, value in flags.items()]
    return " ".join([*(f"--{key} {value}" for key, value in options.items()), *switched])


def tuning(wildcards):
    return PLAN.tunings[wildcards.tuning]
