# INPUTS   tables, figures, studies, comparison, claims, ranks, audit, results of each run and cell,
#          histories and what trained them, label counts, contact sheets, diagnostics of the splits, and the
#          verification if numbers are expected
# OUTPUTS  report.html, one self-contained page


rule render_report:
    input:
        shown=SHOWN,
        tuning=TUNING_FIGURES,
        runs=RUNS,
        metrics=[PLAN.layout.metrics, PLAN.layout.summary] if PLAN.runs else [],
        training=[history.with_suffix(".json") for history in HISTORIES],
        evaluation=EVALUATION,
        labels=[PLAN.layout.labels(dataset) for dataset in PLAN.datasets],
        sheets=SHEETS,
        descriptions=sorted({str(PLAN.layout.images(dataset).with_suffix(".json")) for dataset in PLAN.datasets}),
        splits=[PLAN.layout.split(split).with_suffix(".json") for split in PLAN.splits],
        verification=VERIFICATION,
        code=code("showing.report", *map(kind_module, sorted(KINDS))),
    output:
        page=RESULTS / "report.html",
    log:
        LOGS / "report.log",
    benchmark:
        BENCHMARKS / "report.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        results=RESULTS,
        plan=PLAN.summary(),
        parts={experiment: PLAN.part(experiment) for experiment in PLAN.experiments},
        not_run=PLAN.not_run,
        datasets={dataset: PLAN.dataset(dataset) for dataset in PLAN.datasets},
        comparison=PLAN.config["comparison"],
        protocol=PLAN.config["protocol"],
    shell:
        "python -m mdpu report --config $MDPU_CONFIG --results {params.results:q} --out {output.page:q} &> {log:q}"
