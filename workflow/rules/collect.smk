# INPUTS   manifests of all training jobs, and the finished runs that they name
# OUTPUTS  metrics.parquet, one row per run and epoch; summary.csv, one row per cell;
#          runs.csv, one row per run with the files that it came from


rule collect:
    input:
        manifests=MANIFESTS,
    output:
        metrics=RESULTS / "metrics.parquet",
        summary=offered(RESULTS / "summary.csv", "summary", "Runs", "Cells"),
        runs=offered(RESULTS / "runs.csv", "runs", "Runs", "Runs"),
    log:
        LOGS / "collect.log",
    benchmark:
        BENCHMARKS / "collect.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
        reporting=PLAN.config["protocol"]["reporting"],
    shell:
        "python -m mdpu collect --config $MDPU_CONFIG &> {log:q}"


rule verify:
    input:
        summary=rules.collect.output.summary,
        expected=lambda wildcards: PLAN.config["expected"],
    output:
        verification=RESULTS / "verification.json",
    log:
        LOGS / "verify.log",
    benchmark:
        BENCHMARKS / "verify.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
    shell:
        "python -m mdpu evaluate verification --config $MDPU_CONFIG &> {log:q}"
