# INPUTS   summary.csv, metrics.parquet, label counts, descriptions of the images
# OUTPUTS  comparison.csv, a verdict per published number; claims.csv and claims_cases.csv; ranks.csv, .svg, .pdf;
#          audit.csv; a .json with details beside each


rule compare:
    input:
        summary=rules.collect.output.summary,
    output:
        csv=offered(RESULTS / "comparison.csv", "comparison", "Evaluation", "Verdicts, number by number"),
        json=RESULTS / "comparison.json",
    log:
        LOGS / "compare.log",
    benchmark:
        BENCHMARKS / "compare.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
        rule=PLAN.config["comparison"],
        published=PLAN.published_names,
    shell:
        "python -m mdpu evaluate comparison --config $MDPU_CONFIG &> {log:q}"


rule claims:
    input:
        summary=rules.collect.output.summary,
        metrics=rules.collect.output.metrics,
    output:
        csv=offered(RESULTS / "claims.csv", "claims", "Evaluation", "Claims"),
        json=RESULTS / "claims.json",
        cases=offered(RESULTS / "claims_cases.csv", "claims_cases", "Evaluation", "Claims, case by case"),
    log:
        LOGS / "claims.log",
    benchmark:
        BENCHMARKS / "claims.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
        rule=PLAN.config["comparison"],
        reporting=PLAN.config["protocol"]["reporting"],
        rows=sorted(PLAN.table_rows),
    shell:
        "python -m mdpu evaluate claims --config $MDPU_CONFIG &> {log:q}"


rule ranks:
    input:
        summary=rules.collect.output.summary,
    output:
        csv=offered(RESULTS / "ranks.csv", "ranks", "Evaluation", "Ranks"),
        json=RESULTS / "ranks.json",
        svg=offered(RESULTS / "ranks.svg", "ranks", "Evaluation", "Ranks"),
        pdf=offered(RESULTS / "ranks.pdf", "ranks", "Evaluation", "Ranks"),
    log:
        LOGS / "ranks.log",
    benchmark:
        BENCHMARKS / "ranks.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
        level=PLAN.config["comparison"]["level"],
        rows=sorted(PLAN.table_rows),
    shell:
        "python -m mdpu evaluate ranks --config $MDPU_CONFIG &> {log:q}"


rule audit:
    input:
        counts=COUNTS,
        descriptions=DESCRIPTIONS,
    output:
        csv=offered(RESULTS / "audit.csv", "audit", "Evaluation", "Audit of the paper"),
        json=RESULTS / "audit.json",
    log:
        LOGS / "audit.log",
    benchmark:
        BENCHMARKS / "audit.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=EVALUATION_CODE,
    shell:
        "python -m mdpu evaluate audit --config $MDPU_CONFIG &> {log:q}"
