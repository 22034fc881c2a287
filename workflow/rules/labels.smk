# INPUTS   images of the dataset's source
# OUTPUTS  labels/<dataset>.npz with +1, -1 or 0 per image, and their counts (.json);
#          sheets/<dataset>/positive.png, negative.png, some images of each side


rule labels:
    input:
        images=lambda wildcards: PLAN.layout.images(wildcards.dataset),
    output:
        labels=RESULTS / "labels" / "{dataset}.npz",
        counts=RESULTS / "labels" / "{dataset}.json",
    log:
        LOGS / "labels" / "{dataset}.log",
    benchmark:
        BENCHMARKS / "labels" / "{dataset}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=DATA_CODE,
        sides=lambda wildcards: {
            side: PLAN.dataset(wildcards.dataset).get(side, []) for side in ("positive", "negative", "dropped")
        },
        counts=lambda wildcards: PLAN.dataset(wildcards.dataset).get("counts", {}),
    shell:
        "python -m mdpu labels {wildcards.dataset} --config $MDPU_CONFIG &> {log:q}"


rule sheet:
    input:
        images=lambda wildcards: PLAN.layout.images(wildcards.dataset),
        labels=RESULTS / "labels" / "{dataset}.npz",
    output:
        positive=offered(RESULTS / "sheets" / "{dataset}" / "positive.png", "sheet", "Data", "{dataset}, positive side"),
        negative=offered(RESULTS / "sheets" / "{dataset}" / "negative.png", "sheet", "Data", "{dataset}, negative side"),
    log:
        LOGS / "sheets" / "{dataset}.log",
    benchmark:
        BENCHMARKS / "sheets" / "{dataset}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    params:
        code=DATA_CODE,
    shell:
        "python -m mdpu sheet {wildcards.dataset} --config $MDPU_CONFIG &> {log:q}"
