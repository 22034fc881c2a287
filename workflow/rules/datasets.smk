# INPUTS   nothing but the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/<source>.npz, .json
#
# One rule file per source in datasets/, discovered by being there.

for _file in sorted((Path(workflow.basedir) / "workflow" / "rules" / "datasets").glob("*.smk")):

    include: str(_file)
