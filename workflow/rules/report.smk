# INPUTS   tables, figures, verdicts, claims, results of each run and cell, label counts, contact sheets, and the
#          numbers that are expected
# OUTPUTS  report.html, one self-contained page


rule report:
    """Write the page."""
    input:
        shown=SHOWN,
        runs=[PLAN.layout.runs, PLAN.layout.summary, PLAN.layout.metrics] if PLAN.runs else [],
        judged=JUDGED,
        labels=[PLAN.layout.labels(dataset) for dataset in PLAN.datasets],
        images=[PLAN.layout.images(dataset).with_suffix(".json") for dataset in PLAN.datasets],
        sheets=[sheet for dataset in PLAN.datasets for sheet in PLAN.layout.sheets(dataset)],
        expected=(PLAN.runs and config.get("expected")) or [],
        apart=APART_FILES,
    output:
        page=offered("report.html", "page", "Report", "Page"),
    log:
        RESULTS / "logs/report.log",
    localrule: True
    conda:
        "../../envs/mdpu.yaml"
    params:
        protocol=text(config["protocol"]),
        comparison=text(config["comparison"]),
        datasets=text({dataset: PLAN.dataset(dataset) for dataset in PLAN.datasets}),
        experiments=text({name: [shown.part, shown.title] for name, shown in PLAN.experiments.items()}),
        not_run=text(PLAN.not_run),
        apart=text(APART.config if APART else None),
    script:
        "../scripts/report.py"
