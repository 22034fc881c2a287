# INPUTS   summary.csv, metrics.parquet; for claims and readings the runs, among them shipped ones of no experiment
# OUTPUTS  comparison.csv, claims.csv, claims_cases.csv, readings.csv, details (.json) beside each; figures/readings.svg,
#          and tables/readings.csv, which names its columns;
#          verdicts.json, a row a number and reading, for other sites (workflow/schemas/verdicts.schema.json)


rule compare:
    """Compare the means of the cells with the published numbers."""
    input:
        summary=rules.collect.output.summary,
    output:
        csv=offered("comparison.csv", "comparison", "Evaluation", "Verdicts, number by number"),
        json=RESULTS / "comparison.json",
    log:
        RESULTS / "logs/compare.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        rule=text(config["comparison"]),
        published=text([PLAN.published_names, PLAN.readings]),
    script:
        "../scripts/compare.py"


rule claims:
    """Judge the claims of the paper."""
    input:
        metrics=rules.collect.output.metrics,
        shipped=PLAN.shipped_on(PLAN.datasets),  # runs of other readings
    output:
        csv=offered("claims.csv", "claims", "Evaluation", "Claims"),
        json=RESULTS / "claims.json",
        cases=offered("claims_cases.csv", "claims_cases", "Evaluation", "Claims, case by case"),
    log:
        RESULTS / "logs/claims.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        rule=text(config["comparison"]),
        reporting=text(PLAN.protocol.reporting),
        readings=text([config["definitions"][name] for name in ("choices", "readings")]),
        rows=text(sorted(PLAN.table_rows)),
        published=text(PLAN.published_names),
    script:
        "../scripts/claims.py"


rule readings:
    """Judge each number under each reading of the paper."""
    input:
        runs=sorted({*run_files(), *rejudge.reading_files(PLAN), *APART_FILES}),
    output:
        csv=offered("readings.csv", "readings", "Evaluation", "Every reading, number by number"),
        json=RESULTS / "readings.json",
        verdicts=RESULTS / "verdicts.json",
        svg=offered("figures/readings.svg", "readings", "Evaluation", "Every number under every reading"),
        pdf=RESULTS / "figures/readings.pdf",
        columns=offered("tables/readings.csv", "readings", "Evaluation", "Every reading, with its counts of verdicts"),
    log:
        RESULTS / "logs/readings.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        rule=text([config[name] for name in ("comparison", "protocol")]),
        asked=digest({run.name: PLAN.key(run) for run in PLAN.runs}),
        readings=text([config["definitions"][name] for name in ("choices", "readings")]),
    script:
        "../scripts/readings.py"
