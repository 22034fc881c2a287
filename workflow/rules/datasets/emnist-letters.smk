# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/emnist-letters.npz, .json


use rule dataset as dataset_emnist_letters with:
    input:
        code=source_code("emnist-letters"),
    wildcard_constraints:
        source="emnist-letters",
    localrule: True
