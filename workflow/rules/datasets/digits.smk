use rule dataset as dataset_digits with:
    input:
        code=code("data/sources/digits.py"),
    wildcard_constraints:
        source="digits",
    localrule: True
