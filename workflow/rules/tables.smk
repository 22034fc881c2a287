# INPUTS   summary.csv
# OUTPUTS  tables/<experiment>.csv, .md, .tex


rule table:
    input:
        summary=rules.collect.output.summary,
        code=code("showing.table"),
    output:
        csv=RESULTS / "tables" / "{experiment}.csv",
        markdown=RESULTS / "tables" / "{experiment}.md",
        latex=RESULTS / "tables" / "{experiment}.tex",
    log:
        LOGS / "tables" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "tables" / "{experiment}.tsv"
    wildcard_constraints:
        experiment=names_of({"table"}),
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        settings=lambda wildcards: PLAN.experiment_settings(wildcards.experiment),
        published=PLAN.published_names,
    shell:
        "python -m mdpu table --config $MDPU_CONFIG --experiment {wildcards.experiment} --summary {input.summary:q}"
        " --out {output.csv:q} &> {log:q}"
