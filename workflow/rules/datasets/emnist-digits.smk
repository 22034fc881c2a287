use rule dataset as dataset_emnist_digits with:
    input:
        code=source_code("emnist-digits"),
    wildcard_constraints:
        source="emnist-digits",
    localrule: True
