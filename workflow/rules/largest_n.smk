# INPUTS   counts of the labels of those datasets whose counts are not in the configuration
# OUTPUTS  largest_n.csv, .md, .tex: the largest n that sampling without replacement allows


rule largest_n:
    input:
        counts=[PLAN.layout.labels(dataset).with_suffix(".json") for dataset in PLAN.uncounted],
        code=code("evaluation.largest_n"),
    output:
        csv=offered(RESULTS / "largest_n.csv", "largest_n", "Data", "Largest n"),
        markdown=offered(RESULTS / "largest_n.md", "largest_n", "Data", "Largest n"),
        latex=offered(RESULTS / "largest_n.tex", "largest_n", "Data", "Largest n"),
    log:
        LOGS / "largest_n.log",
    benchmark:
        BENCHMARKS / "largest_n.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        labels=RESULTS / "labels",
        settings=PLAN.pool_settings(),
    shell:
        "python -m mdpu largest-n --config $MDPU_CONFIG --labels {params.labels:q} --out {output.csv:q} &> {log:q}"
