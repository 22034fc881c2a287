# INPUTS   images, labels and splits of a cohort
# OUTPUTS  histories/<cohort>.parquet, one row per run and epoch, and its provenance (.json)
#
# A cohort takes unchanged runs from the store of finished runs, and trains the others. On a cluster, a job that ran out
# of memory or time gets more at its next attempt, and resumes from its checkpoints.


rule train:
    input:
        unpack(cohort_inputs),
    output:
        histories=RESULTS / "histories" / "{cohort}.parquet",
        provenance=RESULTS / "histories" / "{cohort}.json",
    log:
        PLAN.layout.training_log("{cohort}"),
    benchmark:
        BENCHMARKS / "train" / "{cohort}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    threads: lambda wildcards: PLAN.config["threads"] if PLAN.cohort(wildcards.cohort).needs_gpu else 1
    resources:
        gpu=lambda wildcards: gpus() if PLAN.cohort(wildcards.cohort).needs_gpu else 0,
        mem_mb=lambda wildcards, attempt: attempt * PLAN.config["memory_mb"],
        runtime=lambda wildcards, attempt: attempt * PLAN.minutes(wildcards.cohort),
    params:
        splits=RESULTS / "splits",
        store=PLAN.layout.store,
        checkpoints=RESULTS / "checkpoints",
        progress=lambda wildcards: PLAN.layout.progress(wildcards.cohort),
        tuned=lambda wildcards, input: f"--tuned {input.tuned}" if "tuned" in input.keys() else "",
        settings=lambda wildcards: PLAN.cohort_settings(wildcards.cohort),
    shell:
        "python -m mdpu train --config $MDPU_CONFIG --cohort {wildcards.cohort:q} --images {input.images:q}"
        " --labels {input.labels:q} --splits {params.splits:q} --store {params.store:q}"
        " --checkpoints {params.checkpoints:q} --threads {threads} {params.tuned}"
        " --progress {params.progress:q} --out {output.histories:q} &> {log:q}"
