use rule dataset as dataset_mnist with:
    input:
        code=source_code("mnist"),
    wildcard_constraints:
        source="mnist",
    localrule: True
