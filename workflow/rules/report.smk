# INPUTS   tables, figures, studies, comparison, claims, ranks, audit, results of each run and cell,
#          manifests of the finished runs, label counts, contact sheets, and the verification if numbers are expected
# OUTPUTS  report.html, one self-contained page


rule render_report:
    input:
        shown=SHOWN,
        tuning=TUNING_FIGURES,
        runs=RUNS,
        metrics=[PLAN.layout.metrics, PLAN.layout.summary] if PLAN.runs else [],
        training=MANIFESTS,
        evaluation=EVALUATION,
        labels=[PLAN.layout.labels(dataset) for dataset in PLAN.datasets],
        sheets=SHEETS,
        descriptions=DESCRIPTIONS,
        splits=[PLAN.layout.split(split).with_suffix(".json") for split in PLAN.illustrated],
        verification=VERIFICATION,
        apart=[REPOSITORY / PLAN.config["apart"]] if PLAN.config.get("apart") else [],
    output:
        page=RESULTS / "report.html",
    log:
        LOGS / "report.log",
    benchmark:
        BENCHMARKS / "report.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=[EVALUATION_CODE, *map(kind_version, sorted(KINDS))],
        plan=PLAN.summary(),
        parts={name: experiment.part for name, experiment in PLAN.experiments.items()},
        not_run=PLAN.not_run,
        datasets={dataset: PLAN.dataset(dataset) for dataset in PLAN.datasets},
        comparison=PLAN.config["comparison"],
        protocol=PLAN.config["protocol"],
    shell:
        "python -m mdpu report --config $MDPU_CONFIG &> {log:q}"
