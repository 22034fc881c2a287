# INPUTS   runs.csv, metrics.parquet; for Figure 1 the images and labels of the first dataset
# OUTPUTS  tables/<experiment>.csv, .tex, -paper.tex; figures/<experiment>.svg, .pdf
#
# The files that a kind reads and writes decide its rule. So a new kind of figure of the metrics, or of table
# or figure without runs, needs only a file in mdpu/pipeline/show.


rule table:
    input:
        runs=rules.collect.output.runs,
    output:
        shown(CSV, TEX, PAPER),
    log:
        RESULTS / "logs/show/{experiment}.log",
    wildcard_constraints:
        experiment=alike(["runs"], [CSV, TEX, PAPER]),
    """Make a table of the cells."""
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        settings=lambda wildcards: text(show.settings(PLAN, wildcards.experiment)),
    script:
        "../scripts/show.py"


use rule table as figure with:
    input:
        metrics=rules.collect.output.metrics,
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike(["metrics"], [SVG, PDF]),
    """Draw a figure of the measures."""
    localrule: True


use rule table as figure_with_table with:
    input:
        metrics=rules.collect.output.metrics,
    output:
        shown(SVG, PDF, CSV),
    wildcard_constraints:
        experiment=alike(["metrics"], [SVG, PDF, CSV]),
    """Draw a figure of the measures, with its numbers in a table."""
    localrule: True


use rule table as illustration with:
    input:
        images=PLAN.layout.images(FIRST),
        labels=PLAN.layout.labels(FIRST),
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike(["images", "labels"], [SVG, PDF]),
    """Draw images of the first dataset."""
    localrule: True


use rule table as formulas with:
    input:
        [],
    output:
        shown(CSV, TEX),
    wildcard_constraints:
        experiment=alike([], [CSV, TEX]),
    """Make a table of formulas."""
    localrule: True


use rule table as drawing with:
    input:
        [],
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike([], [SVG, PDF]),
    """Draw a figure that needs no run."""
    localrule: True
