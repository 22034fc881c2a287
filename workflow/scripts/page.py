"""Render the report."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.report.page import write_page
from mdpu.pipeline.show import sections

with script(snakemake) as (plan, given, made):
    write_page(plan, sections(plan), given, made.page)
