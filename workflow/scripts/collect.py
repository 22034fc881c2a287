"""Gather the histories of all runs into one tidy table, and summarize them per cell and per run."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.provenance import write_collection

with script(snakemake) as (plan, given, made):
    write_collection(plan, given.runs, made.metrics, made.summary, made.runs)
