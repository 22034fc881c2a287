# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/emnist-digits.npz, .json


use rule dataset as dataset_emnist_digits with:
    input:
        code=source_code("emnist-digits"),
    wildcard_constraints:
        source="emnist-digits",
    localrule: True
