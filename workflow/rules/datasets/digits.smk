use rule dataset as dataset_digits with:
    input:
        code=source_code("digits"),
    wildcard_constraints:
        source="digits",
    localrule: True
