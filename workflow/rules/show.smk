# INPUTS   what the kind reads: summary.csv or metrics.parquet, or a split with its images and labels
# OUTPUTS  the files of each experiment, such as tables/<experiment>.csv, .tex or figures/<experiment>.svg, .pdf
#
# One rule per kind of experiment, all alike: a new kind needs only a file in mdpu/pipeline/experiments.


for _kind in sorted(KINDS):

    rule:
        name:
            f"show_{_kind.replace('-', '_')}"
        input:
            unpack(shown_inputs),
        output:
            [
                offered(RESULTS / file, "experiment", part_title, experiment_title)
                for file in load_kind(_kind).outputs("{experiment}")
            ],
        log:
            LOGS / "show" / "{experiment}.log",
        benchmark:
            BENCHMARKS / "show" / "{experiment}.tsv"
        wildcard_constraints:
            experiment="|".join(KINDS[_kind]),
        localrule: True
        conda:
            "../../envs/mdpu.yaml"
        params:
            code=kind_version(_kind),
            settings=lambda wildcards: experiments.settings(PLAN, wildcards.experiment),
        shell:
            "python -m mdpu show {wildcards.experiment} --config $MDPU_CONFIG &> {log:q}"
