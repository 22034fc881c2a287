"""Write the table or figure of an experiment, by its kind."""

from mdpu.pipeline import show
from mdpu.pipeline.cli import script

with script(snakemake) as (plan, inputs, _):
    show.write(plan, snakemake.wildcards.experiment, vars(inputs), snakemake.output)
