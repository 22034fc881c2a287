rule dataset_digits:
    output:
        images=IMAGES / "digits.npz",
        description=IMAGES / "digits.json",
    params:
        data_dir=config["data_dir"],
    log:
        LOGS / "datasets" / "digits.log",
    benchmark:
        BENCHMARKS / "datasets" / "digits.tsv"
    conda:
        "../../../envs/mdpu.yaml"
    localrule: True
    retries: 2
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "python -m mdpu dataset digits --data-dir {params.data_dir:q} --out {output.images:q} &> {log:q}"
