# INPUTS   metrics.parquet
# OUTPUTS  figures/<experiment>.svg, .pdf


rule figure:
    input:
        metrics=rules.collect.output.metrics,
        code=code("report/figures/common.py", "report/style.py", "evaluate/collect.py"),
        kind=lambda wildcards: code(
            f"report/figures/{PLAN.experiment(wildcards.experiment).kind}.py",
            *KIND_CODE.get(PLAN.experiment(wildcards.experiment).kind, ()),
        ),
    output:
        svg=RESULTS / "figures" / "{experiment}.svg",
        pdf=RESULTS / "figures" / "{experiment}.pdf",
    log:
        LOGS / "figures" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "figures" / "{experiment}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        settings=lambda wildcards: PLAN.experiment_settings(wildcards.experiment),
    shell:
        "python -m mdpu figure --config $MDPU_CONFIG --experiment {wildcards.experiment} --metrics {input.metrics:q}"
        " --out {output.svg:q} &> {log:q}"
