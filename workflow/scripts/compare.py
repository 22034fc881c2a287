"""Give a verdict on every published number."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.comparison import write_comparison

with script(snakemake) as (plan, given, made):
    write_comparison(plan, given.summary, made.csv, made.json)
