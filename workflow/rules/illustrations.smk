# INPUTS   images, labels and one split, for the setting; nothing but the code for the losses
# OUTPUTS  figures/<experiment>.svg, .pdf, tables/<experiment>.csv, .md, .tex of experiments that show no run


rule illustrate_setting:
    input:
        unpack(setting_inputs),
        code=code("showing.setting"),
    output:
        svg=RESULTS / "figures" / "{experiment}.svg",
        pdf=RESULTS / "figures" / "{experiment}.pdf",
    log:
        LOGS / "figures" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "figures" / "{experiment}.tsv"
    wildcard_constraints:
        experiment=names_of({"setting"}),
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=2000,
        runtime=5,
    params:
        settings=lambda wildcards: PLAN.experiment_settings(wildcards.experiment),
        dataset=lambda wildcards: PLAN.experiment(wildcards.experiment).split.split("/")[0],
    shell:
        "python -m mdpu setting --config $MDPU_CONFIG --dataset {params.dataset} --images {input.images:q}"
        " --labels {input.labels:q} --split {input.split:q} --out {output.svg:q} &> {log:q}"


rule illustrate_losses:
    input:
        code=code("showing.losses"),
    output:
        svg=RESULTS / "figures" / "{experiment}.svg",
        pdf=RESULTS / "figures" / "{experiment}.pdf",
    log:
        LOGS / "figures" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "figures" / "{experiment}.tsv"
    wildcard_constraints:
        experiment=names_of({"losses"}),
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=1000,
        runtime=5,
    shell:
        "python -m mdpu losses --out {output.svg:q} &> {log:q}"


rule write_formulas:
    input:
        code=code("showing.formulas"),
    output:
        csv=RESULTS / "tables" / "{experiment}.csv",
        markdown=RESULTS / "tables" / "{experiment}.md",
        latex=RESULTS / "tables" / "{experiment}.tex",
    log:
        LOGS / "tables" / "{experiment}.log",
    benchmark:
        BENCHMARKS / "tables" / "{experiment}.tsv"
    wildcard_constraints:
        experiment=names_of({"formulas"}),
    conda:
        "../../envs/mdpu.yaml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        title=lambda wildcards: PLAN.experiment(wildcards.experiment).title,
    shell:
        "python -m mdpu formulas --config $MDPU_CONFIG --experiment {wildcards.experiment}"
        " --out {output.csv:q} &> {log:q}"
