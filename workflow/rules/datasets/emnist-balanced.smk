# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/emnist-balanced.npz, .json


use rule dataset as dataset_emnist_balanced with:
    input:
        code=source_code("emnist-balanced"),
    wildcard_constraints:
        source="emnist-balanced",
    localrule: True
