# INPUTS   nothing
# OUTPUTS  <results_dir>/datasets/digits.npz, .json


use rule dataset as dataset_digits with:
    input:
        code=source_code("digits"),
    wildcard_constraints:
        source="digits",
    localrule: True
