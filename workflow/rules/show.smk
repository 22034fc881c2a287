# INPUTS   runs.csv, metrics.parquet; for Figure 1 the images and labels of the first dataset
# OUTPUTS  tables/<experiment>.csv, .tex, -paper.tex; figures/<experiment>.svg, .pdf
#
# The files that a kind reads and writes decide its rule. So a new kind of figure of the metrics, or of table
# or figure without runs, needs only a file in mdpu/pipeline/show.


rule table:
    """Make a table of the cells."""
    input:
        runs=rules.collect.output.runs,
    output:
        shown(CSV, TEX, PAPER),
    log:
        RESULTS / "logs/show/{experiment}.log",
    wildcard_constraints:
        experiment=alike(["runs"], [CSV, TEX, PAPER]),
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        settings=lambda wildcards: text(show.settings(PLAN, wildcards.experiment)),
    script:
        "../scripts/show.py"


use rule table as figure with:
    """Draw a figure of the measures."""
    input:
        metrics=rules.collect.output.metrics,
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike(["metrics"], [SVG, PDF]),
    localrule: True


use rule table as figure_with_table with:
    """Draw a figure of the measures, with its numbers in a table."""
    input:
        metrics=rules.collect.output.metrics,
    output:
        shown(SVG, PDF, CSV),
    wildcard_constraints:
        experiment=alike(["metrics"], [SVG, PDF, CSV]),
    localrule: True


use rule table as illustration with:
    """Draw images of the first dataset."""
    input:
        images=PLAN.layout.images(FIRST),
        labels=PLAN.layout.labels(FIRST),
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike(["images", "labels"], [SVG, PDF]),
    localrule: True


use rule table as formulas with:
    """Make a table of formulas."""
    input:
        [],
    output:
        shown(CSV, TEX),
    wildcard_constraints:
        experiment=alike([], [CSV, TEX]),
    localrule: True


use rule table as drawing with:
    """Draw a figure that needs no run."""
    input:
        [],
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike([], [SVG, PDF]),
    localrule: True
