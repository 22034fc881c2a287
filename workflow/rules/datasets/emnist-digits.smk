use rule dataset as dataset_emnist_digits with:
    input:
        code=code("data/sources/emnist.py"),
    wildcard_constraints:
        source="emnist-digits",
    localrule: True
