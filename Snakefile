configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/labels.smk"
include: "workflow/rules/splits.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/show.smk"
include: "workflow/rules/tuning_figure.smk"
include: "workflow/rules/largest_n.smk"
include: "workflow/rules/comparison.smk"
include: "workflow/rules/report.smk"


# On a cluster these run where Snakemake does: each takes seconds, in which a job would hardly have left the queue. The
# downloads do so too, because nodes may have no network.
localrules:
    all,
    tables,
    figures,
    evaluation,
    report,
    labels,
    sheet,
    collect,
    verify,
    tuning_figure,
    largest_n,
    compare,
    claims,
    ranks,
    audit,
    render_report,


rule all:
    default_target: True
    input:
        rules.render_report.output,
        SHOWN,
        LARGEST_N,
        TUNING_FIGURES,
        rules.audit.output,
        [] if not PLAN.runs else [rules.collect.output, rules.compare.output, rules.claims.output, rules.ranks.output],
        VERIFICATION,
        SHEETS,
        TRACED,
        [path.with_suffix(".json") for path in TRACED],


rule report:
    input:
        rules.render_report.output,


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURES,
        TUNING_FIGURES,


rule evaluation:
    input:
        EVALUATION,
