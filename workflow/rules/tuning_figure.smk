# INPUTS   grids of tuning/
# OUTPUTS  figures/tuning/<tuning>.svg, .pdf


rule tuning_figure:
    input:
        grid=RESULTS / "tuning" / "{tuning}.csv",
    output:
        svg=offered(RESULTS / "figures" / "tuning" / "{tuning}.svg", "tuning", "Tuning", "{tuning}"),
        pdf=offered(RESULTS / "figures" / "tuning" / "{tuning}.pdf", "tuning", "Tuning", "{tuning}"),
    log:
        LOGS / "figures" / "tuning" / "{tuning}.log",
    benchmark:
        BENCHMARKS / "figures" / "tuning" / "{tuning}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
        title=lambda wildcards: PLAN.tuning_title(wildcards.tuning),
    shell:
        "python -m mdpu show {wildcards.tuning} --config $MDPU_CONFIG &> {log:q}"
