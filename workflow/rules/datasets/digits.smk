rule dataset_digits:
    output:
        images=IMAGES / "digits.npz",
        description=IMAGES / "digits.json",
    log:
        LOGS / "datasets" / "digits.log",
    benchmark:
        BENCHMARKS / "datasets" / "digits.tsv"
    retries: 2
    localrule: True
    conda:
        "../../../envs/mdpu.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        data_dir=config["data_dir"],
    shell:
        "python -m mdpu dataset digits --data-dir {params.data_dir:q} --out {output.images:q} &> {log:q}"
