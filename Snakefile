configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/labels.smk"
include: "workflow/rules/splits.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/sensitivity.smk"
include: "workflow/rules/largest_n.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    tables,
    figures,
    report,


rule all:
    default_target: True
    input:
        rules.render_report.output,
        TABLES,
        FIGURES,
        SENSITIVITY,
        rules.largest_n.output,
        VERIFICATION,


rule report:
    input:
        rules.render_report.output,


rule tables:
    input:
        TABLES,


rule figures:
    input:
        FIGURES,
