# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/fashion-mnist.npz, .json


use rule dataset as dataset_fashion_mnist with:
    input:
        code=source_code("fashion-mnist"),
    wildcard_constraints:
        source="fashion-mnist",
    localrule: True
