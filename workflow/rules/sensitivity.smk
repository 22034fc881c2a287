# INPUTS   metrics.parquet
# OUTPUTS  sensitivity/<experiment>.csv, .md, .tex: how far each alternative moves each method;
#          sensitivity/<experiment>-nearest.csv: how near each combination comes to the published numbers


rule sensitivity:
    input:
        metrics=rules.collect.output.metrics,
        code=code("showing.sensitivity"),
    output:
        csv=RESULTS / "sensitivity" / "{experiment}.csv",
        markdown=RESULTS / "sensitivity" / "{experiment}.md",
        latex=RESULTS / "sensitivity" / "{experiment}.tex",
        nearest=RESULTS / "sensitivity" / "{experiment}-nearest.csv",
    log:
        LOGS / "sensitivity" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "sensitivity" / "{experiment}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        settings=lambda wildcards: PLAN.experiment_settings(wildcards.experiment),
        level=config["comparison"]["level"],
    shell:
        "python -m mdpu sensitivity --config $MDPU_CONFIG --experiment {wildcards.experiment}"
        " --metrics {input.metrics:q} --out {output.csv:q} --nearest {output.nearest:q} &> {log:q}"
