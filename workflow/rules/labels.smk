# INPUTS   images of the dataset's source
# OUTPUTS  <results_dir>/labels/<dataset>.npz with +1, -1 or 0 per image, and their counts (.json);
#          sheets/<dataset>/positive.png, negative.png, some images of each side


rule labels:
    """Binarize the class ids of a dataset to +1 and -1."""
    input:
        images=lambda wildcards: PLAN.layout.images(wildcards.dataset),
    output:
        labels=ROOT / "labels/{dataset}.npz",
        counts=ROOT / "labels/{dataset}.json",
    log:
        ROOT / "logs/labels/{dataset}.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        sides=lambda wildcards: text({side: PLAN.dataset(wildcards.dataset).get(side, []) for side in SIDES}),
        counts=lambda wildcards: text(PLAN.dataset(wildcards.dataset).get("counts", {})),
    shell:
        "exec python -m mdpu labels --images {input.images:q} --sides {params.sides:q} --counts {params.counts:q}"
        " --out {output.labels:q} &> {log:q}"


rule sheet:
    """Draw some images of each side of a dataset."""
    input:
        images=lambda wildcards: PLAN.layout.images(wildcards.dataset),
        labels=ROOT / "labels/{dataset}.npz",
    output:
        positive=offered("sheets/{dataset}/positive.png", "sheet", "Data", "{dataset}, positive side"),
        negative=offered("sheets/{dataset}/negative.png", "sheet", "Data", "{dataset}, negative side"),
    log:
        RESULTS / "logs/sheets/{dataset}.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    shell:
        "exec python -m mdpu sheet --images {input.images:q} --labels {input.labels:q}"
        " --out {output.positive:q} {output.negative:q} &> {log:q}"
