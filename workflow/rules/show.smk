# INPUTS   summary.csv, metrics.parquet; for Figure 1 the images and labels of the first dataset
# OUTPUTS  tables/<experiment>.csv, .tex, -paper.tex; figures/<experiment>.svg, .pdf
#
# What the kind of an experiment reads and writes decides its rule. So a new kind of figure of the metrics, or of table
# or figure without runs, needs only a file in mdpu/pipeline/show.

CSV, TEX, PAPER = (f"tables/{{experiment}}{end}" for end in (".csv", ".tex", "-paper.tex"))
SVG, PDF = (f"figures/{{experiment}}{end}" for end in (".svg", ".pdf"))
FIRST = selected(config, "datasets")[0]


def alike(reads, files):
    """The experiments whose kind reads and writes these, as a pattern for their wildcard."""
    wanted = tuple(reads), tuple(file.replace("{experiment}", "{name}") for file in files)
    kinds = {name: show.load_kind(experiment.kind) for name, experiment in PLAN.experiments.items()}
    return "|".join(name for name, kind in kinds.items() if (kind.reads, kind.files) == wanted) or "(?!)"


def shown(*files):
    """Files of an experiment, as `snakemake --report` offers them: by the part of the report, with its title."""
    part = lambda wildcards: PARTS[PLAN.experiments[wildcards.experiment].part]
    title = lambda wildcards: PLAN.experiments[wildcards.experiment].title
    return [offered(file, "experiment", part, title) for file in files]


rule table:
    input:
        summary=rules.collect.output.summary,
    output:
        shown(CSV, TEX, PAPER),
    log:
        RESULTS / "logs/show/{experiment}.log",
    wildcard_constraints:
        experiment=alike(["summary"], [CSV, TEX, PAPER]),
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


use rule table as figure_with_table with:
    input:
        metrics=rules.collect.output.metrics,
    output:
        shown(SVG, PDF, CSV),
    wildcard_constraints:
        experiment=alike(["metrics"], [SVG, PDF, CSV]),


use rule table as illustration with:
    input:
        images=PLAN.layout.images(FIRST),
        labels=PLAN.layout.labels(FIRST),
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike(["images", "labels"], [SVG, PDF]),


use rule table as formulas with:
    input:
        [],
    output:
        shown(CSV, TEX),
    wildcard_constraints:
        experiment=alike([], [CSV, TEX]),


use rule table as drawing with:
    input:
        [],
    output:
        shown(SVG, PDF),
    wildcard_constraints:
        experiment=alike([], [SVG, PDF]),
