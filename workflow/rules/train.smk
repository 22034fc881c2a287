# INPUTS   images, labels and splits of a training job
# OUTPUTS  trained/<job>.<identity>.json, the fingerprints of the training job's finished runs, and who trained them;
#          <results_dir>/cache/, the finished runs themselves
#
# Only training jobs with a run that is not finished run: the others' manifests are written when the workflow starts. A
# manifest is named by what its runs are made from, so a changed setting or training code makes another one. On a
# cluster, a job that ran out of memory or time gets more at its next attempt, and resumes from its checkpoints.


rule train:
    input:
        unpack(job_inputs),
    output:
        manifest=RESULTS / "trained" / "{job}.{identity}.json",
    log:
        PLAN.layout.training_log("{job}", "{identity}"),
    benchmark:
        BENCHMARKS / "train" / "{job}.{identity}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    threads: lambda wildcards: PLAN.config["threads"] if PLAN.job(wildcards.job).needs_gpu else 1
    resources:
        gpu=lambda wildcards: gpus() if PLAN.job(wildcards.job).needs_gpu else 0,
        mem_mb=lambda wildcards, attempt: attempt * PLAN.config["memory_mb"],
        runtime=lambda wildcards, attempt: attempt * PLAN.minutes(wildcards.job),
    shell:
        "python -m mdpu train {wildcards.job:q} --config $MDPU_CONFIG --threads {threads} &> {log:q}"
