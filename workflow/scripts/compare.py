"""Give a verdict on every published number."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.comparison import write_comparison

with script(snakemake) as (plan, inputs, outputs):
    write_comparison(plan, inputs.summary, outputs.csv, outputs.json)
