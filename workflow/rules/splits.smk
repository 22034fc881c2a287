# INPUTS   labels of a dataset
# OUTPUTS  splits/<dataset>/<variant>/m<M>[-<law>]/prior<pi>/n<n>/seed<seed>.npz with the indices of the tuples
#          and of the unlabeled images of one trial, and how well they follow the law (.json)


rule split:
    input:
        labels=lambda wildcards: PLAN.layout.labels(wildcards.split.partition("/")[0]),
    output:
        split=RESULTS / "splits" / "{split}.npz",
        diagnostics=RESULTS / "splits" / "{split}.json",
    log:
        LOGS / "splits" / "{split}.log",
    benchmark:
        BENCHMARKS / "splits" / "{split}.tsv"
    conda:
        "../../envs/mdpu.yaml"
    resources:
        runtime=lambda wildcards, attempt: attempt,
        split_slots=1,  # the profiles of clusters say how many run at once in a job of many splits
    params:
        code=DATA_CODE,
        drawing=drawing,
    shell:
        "python -m mdpu split --labels {input.labels:q} {params.drawing} --out {output.split:q} &> {log:q}"


# What tells which runs are finished. ./run makes it first, so that nothing starts for a run that is.
rule prepare:
    input:
        PLAN.prepared,
    localrule: True
