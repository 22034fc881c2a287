"""From histories to verdicts. Every function takes a plan and the files to read and to write, named by the rules:

- `collect.write_collection(plan, files, metrics, summary, runs)`
- `comparison.write_comparison(plan, summary, csv, json)`
- `claims.write_claims(plan, summary, metrics, csv, json, cases)`
- `verify.write_verification(plan, summary, json)`

This file imports nothing, so that a command that needs one of them loads no other.
"""
