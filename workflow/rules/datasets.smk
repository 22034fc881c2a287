# INPUTS   the network, files already in data_dir, or a user's own files
# OUTPUTS  <results_dir>/datasets/<source>.npz, .json; <results_dir>/datasets/own/<dataset>.npz, .json
#
# One rule per source of mdpu/pipeline/data/sources, named after it, and one for a user's own files.


for _source in (*SOURCES, "own"):

    rule:
        name:
            f"dataset_{_source.replace('-', '_')}"
        input:
            files=lambda wildcards: OWN_FILES.get(wildcards.source, []),
        output:
            images=IMAGES / "{source}.npz",
            description=IMAGES / "{source}.json",
        log:
            LOGS / "datasets" / "{source}.log",
        benchmark:
            BENCHMARKS / "datasets" / "{source}.tsv"
        wildcard_constraints:
            source="own/[a-z0-9-]+" if _source == "own" else _source,
        retries: 2
        localrule: True
        conda:
            "../../envs/mdpu.yaml"
        resources:
            mem_mb=2000,
            runtime=60,
        params:
            code=DATA_CODE if _source == "own" else source_version(_source),
            source=lambda wildcards: PLAN.source_of(wildcards.source),
        shell:
            "python -m mdpu dataset {params.source:q} --config $MDPU_CONFIG --out {output.images:q} &> {log:q}"


rule datasets:
    input:
        sorted({str(PLAN.layout.images(dataset)) for dataset in PLAN.datasets}),
    localrule: True
