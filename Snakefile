# The entry for users. The workflow is workflow/Snakefile, which other workflows can use as a module.


include: "workflow/Snakefile"
