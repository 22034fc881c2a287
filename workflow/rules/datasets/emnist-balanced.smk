use rule dataset as dataset_emnist_balanced with:
    input:
        code=source_code("emnist-balanced"),
    wildcard_constraints:
        source="emnist-balanced",
    localrule: True
