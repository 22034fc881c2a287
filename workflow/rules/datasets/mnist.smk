# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/mnist.npz, .json


use rule dataset as dataset_mnist with:
    input:
        code=source_code("mnist"),
    wildcard_constraints:
        source="mnist",
    localrule: True
