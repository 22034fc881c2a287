#!/bin/sh
# Puts mdpu itself into the environment of `snakemake --sdm conda`. Snakemake runs this in the folder in which it works: a
# clone, or .test in one.
[ -f pyproject.toml ] || cd .. || exit 1
exec pip install --no-deps --editable .
