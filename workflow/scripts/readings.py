"""Judge the paper's numbers under every reading."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.rejudge import write_readings
from mdpu.pipeline.report.specification import write_specification

with script(snakemake) as (plan, given, made):
    panel = write_readings(plan, given.runs, made.csv, made.json, made.verdicts)
    write_specification(plan, panel, made.svg, made.pdf, made.columns)
