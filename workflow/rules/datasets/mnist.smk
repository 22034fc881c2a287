rule dataset_mnist:
    output:
        images=IMAGES / "mnist.npz",
        description=IMAGES / "mnist.json",
    params:
        data_dir=config["data_dir"],
    log:
        LOGS / "datasets" / "mnist.log",
    benchmark:
        BENCHMARKS / "datasets" / "mnist.tsv"
    conda:
        "../../../envs/mdpu.yaml"
    localrule: True
    retries: 2
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "python -m mdpu dataset mnist --data-dir {params.data_dir:q} --out {output.images:q} &> {log:q}"
