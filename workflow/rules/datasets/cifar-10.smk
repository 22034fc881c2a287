use rule dataset as dataset_cifar_10 with:
    input:
        code=code("data/sources/cifar10.py"),
    wildcard_constraints:
        source="cifar-10",
    localrule: True
