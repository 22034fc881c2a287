# INPUTS   metrics.parquet; grids of tuning/
# OUTPUTS  figures/<experiment>.svg, .pdf; figures/tuning/<tuning>.svg, .pdf


rule figure:
    input:
        metrics=rules.collect.output.metrics,
        code=code("showing.figure"),
        kind=lambda wildcards: code(
            "showing.figure", f"mdpu.report.figures.{PLAN.experiment(wildcards.experiment).kind}"
        ),
    output:
        svg=RESULTS / "figures" / "{experiment}.svg",
        pdf=RESULTS / "figures" / "{experiment}.pdf",
    log:
        LOGS / "figures" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "figures" / "{experiment}.tsv"
    wildcard_constraints:
        experiment=names_of(RUN_FIGURES),
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


rule tuning_figure:
    input:
        grid=RESULTS / "tuning" / "{tuning}.csv",
        code=code("showing.tuning"),
    output:
        svg=RESULTS / "figures" / "tuning" / "{tuning}.svg",
        pdf=RESULTS / "figures" / "tuning" / "{tuning}.pdf",
    log:
        LOGS / "figures" / "tuning" / "{tuning}.log",
    benchmark:
        BENCHMARKS / "figures" / "tuning" / "{tuning}.tsv"
    wildcard_constraints:
        tuning="[a-z0-9/-]+",
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        title=lambda wildcards: PLAN.tuning_title(wildcards.tuning),
    shell:
        "python -m mdpu tuning --config $MDPU_CONFIG --tuning {wildcards.tuning} --grid {input.grid:q}"
        " --out {output.svg:q} &> {log:q}"
