"""Sections of the report, for a configuration with one dataset that was run."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.claims import check_claims
from mdpu.pipeline.evaluate.comparison import compare, spreads, totals
from mdpu.pipeline.evaluate.evidence import Evidence, paper_evidence
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.files import REPOSITORY, write_csv, write_json
from mdpu.pipeline.plan import AXES, Plan
from mdpu.pipeline.report.page import environment, typeset
from mdpu.pipeline.report.verdicts import claims_section, verdict_section


@pytest.fixture(scope="module")
def plan():
    return Plan(load_config([REPOSITORY / "config.yaml"]))


def section_of(plan, folder, dataset, shift=None, std=0.5, trials=3):
    """Return the section where `dataset` was run with the paper's own means, shifted by method, and this deviation."""
    cells = published_cells().rename(columns={"published_mean": "mean", "published_std": "std"})
    cells = cells[cells["dataset"] == plan.published_names[dataset]].drop(columns=["table", "published_bold"])
    cells["std"] = std
    cells["mean"] += cells["method"].map(shift or {}).fillna(0.0)
    summary = cells.assign(dataset=dataset, variant="base", loss="logistic", law="dominant", trials=trials, diverged=0)
    rule = plan.config["comparison"]
    found = compare(summary.assign(first_epoch=91, last_epoch=100), plan.published_names, rule)
    write_csv(found, folder / "comparison.csv")
    tables = {"totals": totals(found), "spreads": spreads(found)}
    facts = {name: table.to_dict("records") for name, table in tables.items()}
    write_json(folder / "comparison.json", {"rule": rule, **facts})
    plan.layout.results = folder
    return verdict_section(plan)


def rendered(name, **shown):
    """Return a section, as the page has it."""
    return environment().get_template(f"sections/{name}.html.j2").render(**shown)


def test_a_cell_stands_in_its_column_with_a_glyph_of_its_own(plan, tmp_path):
    section = section_of(plan, tmp_path, "emnist-letters-a-i", {"relu": 30.0, "abs": 1.5}, std=0.1)
    (methods,) = {tuple(shown) for shown in section["columns"].values()}
    for row in section["grid"]:
        assert row["title"] == "EMNIST-Letters (A-I)"
        glyphs = np.array([[cell["glyph"] for cell in cells] for cells in row["cells"]])
        assert glyphs.shape == (4, 6)
        assert set(glyphs[:, methods.index("relu")]) <= {"≠"}
        assert set(glyphs[:, methods.index("abs")]) <= {"≈", "?"}
        assert set(glyphs[:, methods.index("ure")]) <= {"=", "?"}
    first = section["grid"][0]["cells"][0][methods.index("relu")]
    assert first["words"].startswith("differs (+30.00 points; beyond the wider margin")


def test_a_claim_lists_our_failing_cases_and_leads_to_their_cells(plan, tmp_path):
    key = {"dataset": "mnist", "variant": "base", "tuple_size": 2, "prior": "0.5", "loss": "logistic"}
    key |= {"law": "dominant"}
    means = {("ure", 10000): 84.0, ("ure", 12000): 83.0, ("relu", 10000): 76.0, ("relu", 12000): 90.0}
    rows = [{"method": method, "n": n, "mean": mean} for (method, n), mean in means.items()]
    rule = plan.config["comparison"]
    cells = pd.DataFrame(rows).assign(**key, std=0.5, trials=3)
    trials = pd.concat([cells.assign(seed=seed, accuracy=cells["mean"]) for seed in (1, 2, 3)])
    ours = Evidence(cells, rule, trials=trials[[*AXES, "accuracy"]])
    claims, cases = check_claims(ours, paper_evidence(rule))
    write_csv(cases, tmp_path / "claims_cases.csv")
    write_json(tmp_path / "claims.json", {"claims": claims.to_dict("records")})
    plan.layout.results = tmp_path
    section = {row["claim"]: row for row in claims_section(plan)}
    cell = "mnist/base/m2/n10000/prior0.5/relu/logistic"
    assert section["corrected-beats-ure"]["failing"] == [
        {"words": cell, "cell": cell, "seed": None, "left": "76", "right": "84"}
    ]
    (case,) = section["accuracy-grows-with-n"]["failing"]
    assert (case["cell"], case["left"], case["right"]) == ("mnist/base/m2/n12000/prior0.5/ure/logistic", "83", "84")
    (average,) = section["corrected-beats-ure-at-priors"]["failing"]  # over two n: the average is no single cell
    assert (average["cell"], average["left"], average["right"]) == (None, "83", "83.5")
    page = rendered("claims", claims=list(section.values()), level="95 %", files={"claims": []})
    # One of two cases holds in each of three trials; the deviation over trials cannot be told from one.
    cells = r'<td data-label="Cases">1 of 2 \(50 %\)</td><td data-label="Effect">\S+</td>'
    assert re.search(cells + r'<td data-label="In single trials">50 % \(', page)
    assert 'data-label="In single trials" class="quiet">counted, not tested</td>' in page
    assert "our 1 case where it does not hold" in page
    assert f'<li><a href="#{cell}">{cell}</a>: 76, 84</li>' in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-0.12 ± 0.30", "−0.12 ± 0.30"),
        ("+0.1 (-0.2)", "+0.1 (−0.2)"),
        ("CIFAR-10, 0.4-0.6", "CIFAR-10, 0.4-0.6"),
        ("the paper's `bag-relu`", "the paper’s <code>bag-relu</code>"),
        ("<b> & `<i>`", "&lt;b&gt; &amp; <code>&lt;i&gt;</code>"),
    ],
)
def test_words_are_typeset_and_never_markup(text, shown):
    assert typeset(text) == shown
