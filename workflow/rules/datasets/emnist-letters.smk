use rule dataset as dataset_emnist_letters with:
    input:
        code=source_code("emnist-letters"),
    wildcard_constraints:
        source="emnist-letters",
    localrule: True
