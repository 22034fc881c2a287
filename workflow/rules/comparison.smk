# INPUTS   summary.csv, metrics.parquet, label counts, descriptions of the images
# OUTPUTS  comparison.csv, a verdict per published number; claims.csv and claims_cases.csv; ranks.csv, .svg, .pdf;
#          audit.csv; a .json with provenance and details beside each


rule compare:
    input:
        summary=rules.collect.output.summary,
        code=code("evaluation.compare"),
    output:
        csv=RESULTS / "comparison.csv",
        json=RESULTS / "comparison.json",
    log:
        LOGS / "compare.log",
    benchmark:
        BENCHMARKS / "compare.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        rule=PLAN.config["comparison"],
        published=PLAN.published_names,
    shell:
        "python -m mdpu compare --config $MDPU_CONFIG --summary {input.summary:q} --out {output.csv:q} &> {log:q}"


rule claims:
    input:
        summary=rules.collect.output.summary,
        metrics=rules.collect.output.metrics,
        code=code("evaluation.claims"),
    output:
        csv=RESULTS / "claims.csv",
        json=RESULTS / "claims.json",
        cases=RESULTS / "claims_cases.csv",
    log:
        LOGS / "claims.log",
    benchmark:
        BENCHMARKS / "claims.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        rule=PLAN.config["comparison"],
        reporting=PLAN.config["protocol"]["reporting"],
        rows=sorted(PLAN.table_rows),
    shell:
        "python -m mdpu claims --config $MDPU_CONFIG --summary {input.summary:q} --metrics {input.metrics:q}"
        " --out {output.csv:q} --cases {output.cases:q} &> {log:q}"


rule ranks:
    input:
        summary=rules.collect.output.summary,
        code=code("evaluation.ranks"),
    output:
        csv=RESULTS / "ranks.csv",
        json=RESULTS / "ranks.json",
        svg=RESULTS / "ranks.svg",
        pdf=RESULTS / "ranks.pdf",
    log:
        LOGS / "ranks.log",
    benchmark:
        BENCHMARKS / "ranks.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        level=PLAN.config["comparison"]["level"],
        rows=sorted(PLAN.table_rows),
    shell:
        "python -m mdpu ranks --config $MDPU_CONFIG --summary {input.summary:q} --out {output.csv:q}"
        " --figure {output.svg:q} &> {log:q}"


rule audit:
    input:
        counts=[PLAN.layout.labels(dataset).with_suffix(".json") for dataset in PLAN.datasets],
        descriptions=sorted({str(PLAN.layout.images(dataset).with_suffix(".json")) for dataset in PLAN.datasets}),
        code=code("evaluation.audit"),
    output:
        csv=RESULTS / "audit.csv",
        json=RESULTS / "audit.json",
    log:
        LOGS / "audit.log",
    benchmark:
        BENCHMARKS / "audit.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        labels=RESULTS / "labels",
    shell:
        "python -m mdpu audit --config $MDPU_CONFIG --labels {params.labels:q} --out {output.csv:q} &> {log:q}"
