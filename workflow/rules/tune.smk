# INPUTS   images of a dataset, and a split of a separate trial
# OUTPUTS  tuning/<dataset>/<variant>/m<M>[-<law>].csv: every point of the grid for every method, with its estimated
#          error and whether it was chosen
#
# Only if protocol.training.hyperparameters is tuned.


rule tune:
    input:
        images=lambda wildcards: PLAN.layout.images(tuning(wildcards).dataset),
        split=lambda wildcards: PLAN.layout.split(tuning(wildcards).runs[0].split),
    output:
        grid=offered(RESULTS / "tuning" / "{tuning}.csv", "tuning", "Tuning", "{tuning}"),
    log:
        LOGS / "tuning" / "{tuning}.log",
    benchmark:
        BENCHMARKS / "tuning" / "{tuning}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    threads: PLAN.config["threads"]
    resources:
        gpu=lambda wildcards: gpus(),
        mem_mb=lambda wildcards, attempt: attempt * PLAN.config["memory_mb"],
        runtime=lambda wildcards, attempt: attempt * 240,
    params:
        code=lambda wildcards: training_code(tuning(wildcards).runs, tuning(wildcards).network),
        settings=lambda wildcards: PLAN.tuning_settings(wildcards.tuning),
    shell:
        "python -m mdpu tune {wildcards.tuning} --config $MDPU_CONFIG --threads {threads} &> {log:q}"
