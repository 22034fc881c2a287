# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/svhn.npz, .json


use rule dataset as dataset_svhn with:
    input:
        code=source_code("svhn"),
    wildcard_constraints:
        source="svhn",
    localrule: True
