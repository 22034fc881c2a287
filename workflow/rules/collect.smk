# INPUTS   histories of all cohorts
# OUTPUTS  metrics.parquet and .csv, one row per run and epoch; summary.csv, one row per cell;
#          runs.csv, one row per run with the files that it came from


rule collect:
    input:
        histories=HISTORIES,
        code=code("evaluation.collect"),
    output:
        metrics=RESULTS / "metrics.parquet",
        csv=RESULTS / "metrics.csv",
        summary=offered(RESULTS / "summary.csv", "summary", "Runs", "Cells"),
        runs=offered(RESULTS / "runs.csv", "runs", "Runs", "Runs"),
    log:
        LOGS / "collect.log",
    benchmark:
        BENCHMARKS / "collect.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        histories=RESULTS / "histories",
        reporting=PLAN.config["protocol"]["reporting"],
    shell:
        "python -m mdpu collect --config $MDPU_CONFIG --histories {params.histories:q} --out {output.metrics:q}"
        " --summary {output.summary:q} --runs {output.runs:q} &> {log:q}"


rule verify:
    input:
        summary=rules.collect.output.summary,
        expected=lambda wildcards: PLAN.config["expected"],
        code=code("evaluation.verify"),
    output:
        verification=RESULTS / "verification.json",
    log:
        LOGS / "verify.log",
    benchmark:
        BENCHMARKS / "verify.tsv"
    conda:
        "../../envs/mdpu.yaml"
    shell:
        "python -m mdpu verify --summary {input.summary:q} --expected {input.expected:q}"
        " --out {output.verification:q} &> {log:q}"
