use rule dataset as dataset_mnist with:
    input:
        code=code("data/sources/mnist.py"),
    wildcard_constraints:
        source="mnist",
    localrule: True
