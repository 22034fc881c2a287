"""Render the report."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.report.page import write_page

with script(snakemake) as (plan, _, outputs):
    write_page(plan, outputs.page)
