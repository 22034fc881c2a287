# INPUTS   the network and files already in data_dir, or a user's own files
# OUTPUTS  <results_dir>/datasets/<source>.npz, the images, and .json, what they are


rule dataset:
    input:
        files=lambda wildcards: own_files(wildcards.source),
    output:
        images=ROOT / "datasets/{source}.npz",
        description=ROOT / "datasets/{source}.json",
    log:
        ROOT / "logs/datasets/{source}.log",
    benchmark:
        ROOT / "benchmarks/datasets/{source}.tsv"
    retries: 2
    conda:
        "../../envs/mdpu.yaml"
    params:
        source=lambda wildcards: PLAN.source_of(wildcards.source),
        expected=lambda wildcards: declared(wildcards.source),
    shell:
        "exec python -m mdpu dataset {params.source:q} {params.expected} --data-dir {config[data_dir]:q} {MIRROR}"
        " --out {output.images:q} &> {log:q}"
