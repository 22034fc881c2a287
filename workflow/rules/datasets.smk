# INPUTS   the network, files already in data_dir, or a user's own files
# OUTPUTS  <results_dir>/datasets/<source>.npz, .json; <results_dir>/datasets/own/<dataset>.npz, .json
#
# One rule file per source in datasets/, discovered by being there and named like the source.


RULES = Path(workflow.current_basedir)  # the folder of this file, even if another workflow uses it


rule dataset:
    input:
        files=lambda wildcards: OWN_FILES[wildcards.source],
        code=code("data.dataset"),
    output:
        images=IMAGES / "{source}.npz",
        description=IMAGES / "{source}.json",
    log:
        LOGS / "datasets" / "{source}.log",
    benchmark:
        BENCHMARKS / "datasets" / "{source}.tsv"
    wildcard_constraints:
        source="own/[a-z0-9-]+",
    retries: 2
    localrule: True
    conda:
        str(RULES.parent.parent / "envs" / "mdpu.yaml")  # the rules below inherit it from another folder
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        source=lambda wildcards: PLAN.source_of(wildcards.source),
    shell:
        "python -m mdpu dataset {params.source:q} --config $MDPU_CONFIG --out {output.images:q} &> {log:q}"


for _file in sorted((RULES / "datasets").glob("*.smk")):

    include: str(_file)


rule datasets:
    input:
        sorted({str(PLAN.layout.images(dataset)) for dataset in PLAN.datasets}),
    localrule: True
