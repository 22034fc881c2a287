# INPUTS   images, labels and the split of a cell; the packed files of shipped runs that hold some of its runs
# OUTPUTS  <results_dir>/runs/<dataset>/<variant>/m<M>[-<law>]/n<n>/prior<pi>/<method>[.<loss>].parquet, the cell's runs
#
# One job per cell. Its file keeps runs by what was asked for, so a job trains what is missing, and a value that is changed
# and changed back trains nothing. A cell whose runs are all shipped has no job: `collect` reads the packed file.


rule train:
    """Train the runs of a cell that are not finished."""
    input:
        shipped=lambda wildcards: [ancient(str(file)) for file in PLAN.shipped_files(known_cell(wildcards))],
        images=lambda wildcards: PLAN.layout.images(wildcards.dataset),
        labels=ROOT / "labels/{dataset}.npz",
        split=ROOT / "splits" / f"{SPLIT}.npz",
    output:
        runs=update(ROOT / "runs" / f"{CELL}.parquet"),
    log:
        ROOT / "logs/train" / f"{CELL}.log",
    benchmark:
        ROOT / "benchmarks/train" / f"{CELL}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    resources:  # where and how to train: unlike a parameter, it is no reason to train again
        device=config["device"],
        checkpoint_seconds=config["checkpoint_seconds"],
        gpu=lambda wildcards: gpus() if PLAN.needs_gpu(known_cell(wildcards)) else 0,
        mem_mb=lambda wildcards, attempt: attempt * 2000,
        runtime=lambda wildcards, attempt: attempt * PLAN.minutes(known_cell(wildcards)),
    params:
        spec=lambda wildcards: text(PLAN.spec(known_cell(wildcards))),
        recipe=RECIPE,
    shell:
        "exec python -m mdpu train --images {input.images:q} --labels {input.labels:q} --split {input.split:q}"
        " --shipped {input.shipped:q} --out {output.runs:q} --spec {params.spec:q}"
        " --device {resources.device} --checkpoint-seconds {resources.checkpoint_seconds} &> {log:q}"
