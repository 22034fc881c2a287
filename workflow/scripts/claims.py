"""Check the claims of the paper, case by case."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.claims import write_claims

with script(snakemake) as (plan, inputs, outputs):
    write_claims(plan, inputs.metrics, outputs.csv, outputs.json, outputs.cases)
