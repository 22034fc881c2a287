# The entry for users. The workflow is workflow/Snakefile, which other workflows can use as a module too.


configfile: "config.yaml"


module mdpu:
    snakefile:
        "workflow/Snakefile"
    config:
        config


use rule * from mdpu
