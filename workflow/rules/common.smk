# The plan of a configuration, and helpers that several rule files need. Nothing is written here.

import json
import os
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import update_config

from mdpu.errors import UserError
from mdpu.pipeline import show
from mdpu.pipeline.cli import has_gpu
from mdpu.pipeline.config import as_yaml, from_snakemake, load_yaml, selected
from mdpu.pipeline.data import own, sources
from mdpu.pipeline.data.labels import SIDES
from mdpu.pipeline.evaluate import rejudge
from mdpu.pipeline.files import REPOSITORY, digest
from mdpu.pipeline.plan import PARTS, Plan
from mdpu.pipeline.report import apart
from mdpu.pipeline.start import DRY
from mdpu.settings import RECIPE

os.environ.pop("PYTHONOPTIMIZE", None)  # claims are read from docstrings, which it can drop
# Rules start `python`: this one, also where its environment is not activated. A conda environment comes before it.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]))
sys.executable = shlex.quote(sys.executable)  # Snakemake gives it to a shell as it is, and a path may hold spaces

try:
    update_config(config, as_yaml(workflow.config_settings.config))
    config.update(from_snakemake(config))
    for file in workflow.config_settings.configfiles:
        load_yaml(Path(file))  # it refuses keys that Snakemake would drop
    show.check(config)
    if config.get("expected") and not Path(config["expected"]).exists():  # with --directory, as `shipped`
        config["expected"] = os.path.relpath(REPOSITORY / config["expected"])
    PLAN = Plan(config)
    APART = apart.apart_plan(PLAN)
except UserError as error:
    raise WorkflowError(str(error))

ROOT, RESULTS = PLAN.layout.root, PLAN.layout.results
SPLIT = "{dataset}/{variant}/m{size}/n{n}/prior{prior}"
CELL = f"{SPLIT}/{{method}}"
APART_FILES = apart.packed_files(APART)
FIRST = selected(config, "datasets")[0]
CSV, TEX, PAPER = (f"tables/{{experiment}}{end}" for end in (".csv", ".tex", "-paper.tex"))
SVG, PDF = (f"figures/{{experiment}}{end}" for end in (".svg", ".pdf"))


wildcard_constraints:
    source="[a-z0-9-]+|own/[a-z0-9-]+",
    dataset="[a-z0-9-]+",
    variant="[a-z0-9-]+",
    size="[0-9]+(-[a-z0-9-]+)?",
    n="[0-9]+",
    prior="0[.][0-9]+",
    method="[a-z0-9-]+([.][a-z-]+)?",
    experiment="[a-z0-9-]+",


def text(value):
    """A parameter of a command, as JSON. Its keys have an order, because Snakemake compares params as text."""
    return json.dumps(value, sort_keys=True)


def own_files(source):
    """The files that the images of a dataset are made from, if they are the user's own."""
    if not source.startswith("own/"):
        return []
    return own.inputs(Path(PLAN.source_of(source)).expanduser())


def declared(source):
    """The option that says which images a dataset of the user's own has to have, if the configuration does."""
    sha256 = source.startswith("own/") and PLAN.dataset(source.removeprefix("own/")).get("sha256")
    return f"--sha256 {sha256}" if sha256 else ""


def run_files():
    """For each cell its own file, or the packed files in which all of its runs are shipped."""
    files = []
    for cell in PLAN.cells:
        files += [PLAN.layout.run_file(cell)] if PLAN.to_train(cell) else PLAN.shipped_files(cell)
    return list(dict.fromkeys(files))


def offered(file, caption, category, shown):
    """An output that `snakemake --report` offers, with a caption of workflow/captions."""
    labels = lambda w: {"Shown": shown(w) if callable(shown) else shown, "Format": file.rpartition(".")[2].upper()}
    return report(RESULTS / file, caption=f"../captions/{caption}.rst", category=category, labels=labels)


def shown(*files):
    """Files of an experiment as offered ones: by the part of the report, with the experiment's title."""
    part = lambda wildcards: PARTS[PLAN.experiments[wildcards.experiment].part]
    title = lambda wildcards: PLAN.experiments[wildcards.experiment].title
    return [offered(file, "experiment", part, title) for file in files]


def alike(reads, files):
    """The experiments whose kind reads and writes these, as a pattern for their wildcard."""
    wanted = tuple(reads), tuple(file.replace("{experiment}", "{name}") for file in files)
    kinds = {name: show.load_kind(experiment.kind) for name, experiment in PLAN.experiments.items()}
    return "|".join(name for name, kind in kinds.items() if (kind.reads, kind.files) == wanted) or "(?!)"


def known_cell(wildcards):
    """The name of a cell; it is a user's mistake if no experiment has it."""
    name = CELL.format(**wildcards)
    if name not in PLAN.cells:
        raise WorkflowError(f"no selected experiment has the cell {name}; choose others, or define one")
    return name


def gpus():
    """The GPUs of a job that trains a network: 0 if jobs run here and there is none, so that they run in parallel."""
    without = workflow.local_exec and not workflow.dryrun and not has_gpu()
    return {"cpu": 0, "cuda": 1, "auto": 0 if without else 1}[config["device"]]


if any(map(DRY.fullmatch, sys.argv)):
    missing = [cell for cell in PLAN.cells if PLAN.to_train(cell) and not PLAN.layout.run_file(cell).exists()]
    core_hours = sum(PLAN.core_minutes(cell) or 0 for cell in missing) / 60
    gpu_hours = sum(PLAN.gpu_minutes(cell) for cell in missing) / 60
    large = sum(PLAN.gpu_minutes(cell) > 0 for cell in missing)
    work = f"{core_hours:.1f} hours of one core" if missing else "nothing"
    if large:
        work += f", and {large} cells of ResNet-34, which are about {gpu_hours:.0f} hours of an H100"
    print(f"to train: {work}", file=sys.stderr)

SHOWN = [file for name in PLAN.experiments for file in show.outputs(PLAN, name)]
TABLES = [file for file in SHOWN if file.parent == RESULTS / "tables"]
FIGURES = [file for file in SHOWN if file.parent == RESULTS / "figures"]
JUDGED = [RESULTS / f"{name}.json" for name in ("comparison", "claims") if PLAN.runs]
JUDGED += [RESULTS / "readings.json"] if rejudge.is_compared(PLAN) else []
