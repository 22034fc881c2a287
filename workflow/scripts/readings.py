"""Judge the paper's numbers under every reading."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.rejudge import write_readings
from mdpu.pipeline.report.specification import write_specification

with script(snakemake) as (plan, inputs, outputs):
    panel = write_readings(plan, inputs.runs, outputs.csv, outputs.json, outputs.verdicts)
    write_specification(plan, panel, outputs.svg, outputs.pdf, outputs.columns)
