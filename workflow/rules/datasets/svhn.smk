use rule dataset as dataset_svhn with:
    input:
        code=source_code("svhn"),
    wildcard_constraints:
        source="svhn",
    localrule: True
