# INPUTS   the network, or files already in data_dir
# OUTPUTS  <results_dir>/datasets/cifar-10.npz, .json


use rule dataset as dataset_cifar_10 with:
    input:
        code=source_code("cifar-10"),
    wildcard_constraints:
        source="cifar-10",
    localrule: True
