# Where a user looks first. The workflow itself is workflow/Snakefile, which any other workflow can take as this one does.


configfile: "config.yaml"


module mdpu:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from mdpu
