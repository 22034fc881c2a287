# INPUTS   labels of a dataset
# OUTPUTS  <results_dir>/splits/<dataset>/<variant>/m<M>[-<law>]/n<n>/prior<pi>.npz, the indices of the tuples and of the
#          unlabeled images of every trial of a cell


rule split:
    """Draw the tuples and unlabeled images of each trial of a cell."""
    input:
        labels=ROOT / "labels/{dataset}.npz",
    output:
        split=ROOT / "splits" / f"{SPLIT}.npz",
    log:
        ROOT / "logs/splits" / f"{SPLIT}.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        spec=lambda wildcards: text(PLAN.drawing(SPLIT.format(**wildcards))),
    shell:
        "exec python -m mdpu split --labels {input.labels:q} --spec {params.spec:q} --out {output.split:q} &> {log:q}"
