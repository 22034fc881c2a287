"""Write the table or figure of an experiment, by its kind."""

from mdpu.pipeline import show
from mdpu.pipeline.cli import script

with script(snakemake) as (plan, given, _):
    show.write(plan, snakemake.wildcards.experiment, vars(given), snakemake.output)
