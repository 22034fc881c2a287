"""Compare the summary with the numbers that the configuration expects."""

from mdpu.pipeline.cli import script
from mdpu.pipeline.evaluate.verify import write_verification

with script(snakemake) as (plan, given, made):
    write_verification(plan, given.summary, made.verification)
