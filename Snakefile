# The entry for users. The workflow is workflow/Snakefile, which other workflows can use as a module too.

import shutil

from snakemake.exceptions import WorkflowError


configfile: "config.yaml"


report: "workflow/captions/introduction.rst"


onstart:
    if workflow.executor_plugin.name == "slurm" and not shutil.which("sbatch"):
        raise WorkflowError(
            "a profile sends jobs to SLURM, which is not here; leave --profile or SNAKEMAKE_PROFILE out"
        )


module mdpu:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from mdpu
