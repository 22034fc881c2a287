# INPUTS   images, labels and splits of a cohort
# OUTPUTS  trained/<cohort>.<identity>.json, the fingerprints of the cohort's finished runs, and who trained them;
#          <results_dir>/cache/, the finished runs themselves
#
# Only a cohort with a run that is not finished has a job: the others' manifests are written when the workflow starts. A
# manifest is named by what its runs are made from, so a changed setting or training code makes another one. On a
# cluster, a job that ran out of memory or time gets more at its next attempt, and resumes from its checkpoints.


rule train:
    input:
        unpack(cohort_inputs),
    output:
        manifest=RESULTS / "trained" / "{cohort}.{identity}.json",
    log:
        PLAN.layout.training_log("{cohort}", "{identity}"),
    benchmark:
        BENCHMARKS / "train" / "{cohort}.{identity}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    threads: lambda wildcards: PLAN.config["threads"] if PLAN.cohort(wildcards.cohort).needs_gpu else 1
    resources:
        gpu=lambda wildcards: gpus() if PLAN.cohort(wildcards.cohort).needs_gpu else 0,
        mem_mb=lambda wildcards, attempt: attempt * PLAN.config["memory_mb"],
        runtime=lambda wildcards, attempt: attempt * PLAN.minutes(wildcards.cohort),
    shell:
        "python -m mdpu train {wildcards.cohort:q} --config $MDPU_CONFIG --threads {threads} &> {log:q}"
