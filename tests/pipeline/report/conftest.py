"""A report of synthetic runs that compares with the paper."""

import pytest
import yaml
from synthetic import write_results

from mdpu.pipeline.config import load_config
from mdpu.pipeline.plan import Plan

HOSTILE = """<script>alert(1)</script> & "Ü" 'x' \\{} 100% #1 ~^"""
# Both families of methods, both groups of a table's head, and names that a template must not take
# for markup.
OPEN = {
    "kind": "table",
    "title": "An open choice",
    "part": "beyond",
    "tuple_size": [2],
    "variant": ["without"],
    "n": 10000,
}
SYNTHETIC = {
    "name": "synthetic",
    "datasets": ["mnist", "emnist-letters-a-i"],
    "experiments": [
        "figure1",
        "table1",
        "table2",
        "table4",
        "figure5",
        "extended-pairs",
        "bags-size",
        "open",
    ],
    "definitions": {
        "datasets": {"emnist-letters-a-i": {"title": HOSTILE}},
        "variants": {"without": {"sampling": {"replacement": False}}},
        "experiments": {"open": OPEN, "table4": {"title": f"Table IV: {HOSTILE}"}},
    },
}


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory):
    """The plan of a report of synthetic runs, whose page is written."""
    folder = tmp_path_factory.mktemp("synthetic")
    (folder / "synthetic.yaml").write_text(
        yaml.safe_dump(SYNTHETIC, allow_unicode=True), encoding="utf-8"
    )
    config = load_config([folder / "synthetic.yaml"])
    plan = Plan(config | {"results_dir": str(folder / "results")})
    write_results(plan)
    return plan
