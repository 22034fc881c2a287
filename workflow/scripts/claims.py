"""Check the claims of the paper, case by case."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.claims import write_claims

with script(snakemake) as (plan, given, made):
    write_claims(plan, given.metrics, made.csv, made.json, made.cases)
