use rule dataset as dataset_svhn with:
    input:
        code=code("data/sources/svhn.py"),
    wildcard_constraints:
        source="svhn",
    localrule: True
