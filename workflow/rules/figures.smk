# INPUTS   metrics.parquet
# OUTPUTS  figures/<experiment>.svg, .pdf


rule figure:
    input:
        metrics=rules.collect.output.metrics,
        code=code("report/figures.py", "report/style.py"),
    output:
        svg=RESULTS / "figures" / "{experiment}.svg",
        pdf=RESULTS / "figures" / "{experiment}.pdf",
    params:
        title=lambda wildcards: PLAN.experiment(wildcards.experiment).title,
    log:
        LOGS / "figures" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "figures" / "{experiment}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=1000,
        runtime=5,
    shell:
        "python -m mdpu figure --config {CONFIG:q} --experiment {wildcards.experiment} --metrics {input.metrics:q}"
        " --out {output.svg:q} &> {log:q}"
