# INPUTS   images, labels and splits of a cohort
# OUTPUTS  histories/<cohort>.parquet, one row per run and epoch, and its provenance (.json)
#
# A cohort takes the runs that have not changed from the store of finished runs, and trains the others.


def cohort_inputs(wildcards):
    cohort = PLAN.cohort(wildcards.cohort)
    return {
        "images": PLAN.images(cohort.dataset),
        "labels": PLAN.labels(cohort.dataset),
        "splits": [PLAN.split(split) for split in cohort.splits],
        "code": training_code(run.method for run in cohort.runs),
    }


rule train:
    input:
        unpack(cohort_inputs),
    output:
        histories=RESULTS / "histories" / "{cohort}.parquet",
        provenance=RESULTS / "histories" / "{cohort}.json",
    params:
        settings=lambda wildcards: PLAN.cohort_settings(wildcards.cohort),
    log:
        LOGS / "train" / "{cohort}.log",
    benchmark:
        BENCHMARKS / "train" / "{cohort}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    threads: config["threads"]
    resources:
        gpu=0 if config["device"] == "cpu" else 1,
        mem_mb=8000,
        runtime=240,
    shell:
        "python -m mdpu train --config {CONFIG:q} --cohort {wildcards.cohort:q} --images {input.images:q}"
        " --labels {input.labels:q} --splits {RESULTS:q}/splits --store {PLAN.store:q} --threads {threads}"
        " --out {output.histories:q} &> {log:q}"
