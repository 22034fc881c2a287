# INPUTS   the file of every cell, or the packed file in which its runs are shipped; descriptions of a user's own images
# OUTPUTS  metrics.parquet, one row per run and epoch; summary.csv, one row per cell; runs.csv, one row per run with the
#          key and the file that it came from


rule collect:
    """Put the measures of all runs into one table, with a row for each cell."""
    input:
        runs=run_files(),
        descriptions=[
            PLAN.layout.images(name).with_suffix(".json") for name in PLAN.datasets if PLAN.checksum(name) is None
        ],
    output:
        metrics=RESULTS / "metrics.parquet",
        summary=offered("summary.csv", "summary", "Runs", "Cells"),
        runs=offered("runs.csv", "runs", "Runs", "Runs"),
    log:
        RESULTS / "logs/collect.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        asked=digest({run.name: PLAN.key(run) for run in PLAN.runs}),
        reporting=text(PLAN.protocol.reporting),
    script:
        "../scripts/collect.py"
