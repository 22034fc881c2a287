rule dataset_mnist:
    output:
        images=IMAGES / "mnist.npz",
        description=IMAGES / "mnist.json",
    log:
        LOGS / "datasets" / "mnist.log",
    benchmark:
        BENCHMARKS / "datasets" / "mnist.tsv"
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
        "python -m mdpu dataset mnist --data-dir {params.data_dir:q} --out {output.images:q} &> {log:q}"
