use rule dataset as dataset_emnist_letters with:
    input:
        code=code("data/sources/emnist.py"),
    wildcard_constraints:
        source="emnist-letters",
    localrule: True
