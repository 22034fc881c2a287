use rule dataset as dataset_emnist_balanced with:
    input:
        code=code("data/sources/emnist.py"),
    wildcard_constraints:
        source="emnist-balanced",
    localrule: True
