# INPUTS   the network and files already in data_dir, or a user's own files
# OUTPUTS  <results_dir>/datasets/<source>.npz, the images, and .json, their description


rule dataset:
    """Fetch and verify the images of a source."""
    input:
        files=lambda wildcards: own_files(wildcards.source),
    output:
        images=ROOT / "datasets/{source}.npz",
        description=ROOT / "datasets/{source}.json",
    log:
        ROOT / "logs/datasets/{source}.log",
    retries: 2
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    resources:  # where to fetch from and to: unlike a parameter, it is no reason to run again
        data_dir=config["data_dir"],
        mirror=f"--mirror {shlex.quote(config['mirror'])}" if config["mirror"] else "",
    params:
        source=lambda wildcards: PLAN.source_of(wildcards.source),
        expected=lambda wildcards: declared(wildcards.source),
        checksum=lambda wildcards: getattr(sources.SOURCES.get(wildcards.source), "checksum", ""),  # a reason to run
    shell:
        "exec python -m mdpu dataset {params.source:q} {params.expected} --data-dir {resources.data_dir:q} {resources.mirror}"
        " --out {output.images:q} &> {log:q}"
