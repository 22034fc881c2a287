"""Gather the histories of all runs into one tidy table, and summarize them per cell and per run."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.provenance import write_collection

with script(snakemake) as (plan, inputs, outputs):
    write_collection(plan, inputs.runs, outputs.metrics, outputs.summary, outputs.runs)
