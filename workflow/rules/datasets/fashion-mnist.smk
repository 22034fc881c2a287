use rule dataset as dataset_fashion_mnist with:
    input:
        code=code("data/sources/mnist.py"),
    wildcard_constraints:
        source="fashion-mnist",
    localrule: True
