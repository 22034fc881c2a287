"""Sections of the report, for a configuration with one dataset that was run."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mdpu.evaluate.claims import check_claims
from mdpu.evaluate.comparison import compare, spreads, totals, welch_interval
from mdpu.evaluate.evidence import Evidence, paper_evidence
from mdpu.evaluate.published import published_cells
from mdpu.files import REPOSITORY, write_csv, write_json
from mdpu.kinds.table import table_section
from mdpu.report.verdicts import claims_section, verdict_section
from mdpu.study.config import load_config
from mdpu.study.grid import AXES
from mdpu.study.plan import Plan


@pytest.fixture(scope="module")
def plan():
    return Plan(load_config([REPOSITORY / "config.yaml"]))


def section_of(plan, folder, dataset, shift=None, std=0.5, trials=3):
    """Return the section where `dataset` was run with the paper's own means, shifted by method, and this deviation."""
    cells = published_cells().rename(columns={"published_mean": "mean", "published_std": "std"})
    cells = cells[cells["dataset"] == plan.published_names[dataset]].drop(columns=["table", "published_bold"])
    cells["std"] = std
    cells["mean"] += cells["method"].map(shift or {}).fillna(0.0)
    summary = cells.assign(dataset=dataset, variant="base", loss="logistic", trials=trials, diverged=0)
    rule = plan.config["comparison"]
    found = compare(summary.assign(first_epoch=91, last_epoch=100), plan.published_names, rule)
    write_csv(found, folder / "comparison.csv")
    tables = {"totals": totals(found), "spreads": spreads(found)}
    facts = {name: table.to_dict("records") for name, table in tables.items()}
    write_json(folder / "comparison.json", {"rule": rule, **facts})
    return verdict_section(plan, folder)


def rendered(name, **shown):
    """Return a section, as the page has it."""
    loader = FileSystemLoader(REPOSITORY / "report")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(f"sections/{name}.html.j2").render(**shown)


def test_only_what_was_run_is_in_the_grid(plan, tmp_path):
    section = section_of(plan, tmp_path, "mnist")
    assert [(row["title"], row["prior"]) for row in section["grid"]] == [("MNIST", p) for p in ("0.4", "0.5", "0.6")]
    glyphs = [cell["glyph"] for row in section["grid"] for cell in row["cells"]]
    assert set(glyphs) == {"=", "?"}  # equal means, but some published deviations are too wide to tell
    wide = published_cells().query("dataset == 'mnist'")
    half = [welch_interval(0, 0.5, 3, 0, std, 3, 0.95)[1] for std in wide["published_std"]]
    assert glyphs.count("?") == sum(value > 4 for value in half) > 0
    assert all(len(row["cells"]) == 4 * 6 for row in section["grid"])
    assert (section["compared"], section["comparisons"], section["cells"]) == (72, 648, 504)
    assert "MNIST" not in section["not_run"]
    assert len(section["not_run"]) == 8


def test_a_cell_stands_in_its_column_with_a_glyph_of_its_own(plan, tmp_path):
    section = section_of(plan, tmp_path, "emnist-letters-a-i", {"relu": 30.0, "abs": 1.5}, std=0.1)
    methods = section["methods"]
    for row in section["grid"]:
        assert row["title"] in ("EMNIST-Letters (A-I)", "")
        glyphs = np.array([cell["glyph"] for cell in row["cells"]]).reshape(4, 6)
        assert set(glyphs[:, methods.index("ReLU")]) <= {"≠"}
        assert set(glyphs[:, methods.index("ABS")]) <= {"≈", "?"}
        assert set(glyphs[:, methods.index("URE")]) <= {"=", "?"}
    first = section["grid"][0]["cells"][methods.index("ReLU")]
    assert first["words"].startswith("differs (+30.00 points; beyond the wider margin")


def test_the_page_tells_counts_glyphs_and_what_was_not_run(plan, tmp_path):
    section = section_of(plan, tmp_path, "mnist", {"relu": 30.0})
    page = rendered("verdict", verdict=section)
    counts = section["readings"][0]
    assert counts["reproduced"] + counts["inconclusive"] == 60
    assert (
        f"Datasets as stated: {counts['reproduced']} reproduced, 0 close, {counts['inconclusive']} inconclusive, "
        "12 differ, 432 not run." in page
    )
    sets = "Two EMNIST sets as the numbers imply: 0 reproduced, 0 close, 0 inconclusive, 0 differ, 144 not run."
    assert sets in page
    assert re.search(r"<td class=\"name\">SVHN</td>\s*(<td>0</td>){4}<td class=\"quiet\">72</td>", page)
    assert re.search(r"<td class=\"name\">ReLU</td><td>12</td><td>0.50</td>(<td>[\d.]+</td>){2}<td>\d+<", page)
    assert page.count('<td class="verdict differs"') == 12
    assert page.count('<td class="verdict inconclusive"') == counts["inconclusive"]
    assert "prediction interval" not in page  # three trials are too few for it
    assert re.search(r"Not run: Fashion-MNIST, .*SVHN\.", page)
    row = re.search(r"<td class=\"name\">ReLU</td>\s*" + 4 * r"<td>(\d+)</td>", page)
    assert row.groups() == ("0", "0", "0", "12")


def test_with_five_trials_the_page_tells_predictions_and_equivalence(plan, tmp_path):
    section = section_of(plan, tmp_path, "mnist", {"relu": 30.0}, trials=5)
    everything = section["totals"][0]
    assert (everything["tested"], everything["predicted"]) == (72, 60)
    assert 0 < everything["equivalent"] < 60
    page = " ".join(rendered("verdict", verdict=section).split())
    assert (
        "Of the 72 comparisons with at least 5 trials of ours, the paper's number lies in the 95 % prediction interval "
        f"of ours in 60, and the two are equivalent within 1.0 points (two one-sided tests) in "
        f"{everything['equivalent']}." in page
    )


def test_a_verdict_leads_to_the_runs_of_its_cell(plan, tmp_path):
    section = section_of(plan, tmp_path, "mnist")
    first = section["grid"][0]["cells"][section["methods"].index("ReLU")]
    assert first["cell"] == "mnist/base/m2/n10000/prior0.4/relu/logistic"
    page = rendered("verdict", verdict=section)
    assert page.count('<a class="ours" href="#mnist/base/m') == 72


def test_a_claim_lists_our_failing_cases_and_leads_to_their_cells(plan, tmp_path):
    key = {"dataset": "mnist", "variant": "base", "tuple_size": 2, "prior": "0.5", "loss": "logistic"}
    means = {("ure", 10000): 84.0, ("ure", 12000): 83.0, ("relu", 10000): 76.0, ("relu", 12000): 90.0}
    rows = [{"method": method, "n": n, "mean": mean} for (method, n), mean in means.items()]
    rule = plan.config["comparison"]
    cells = pd.DataFrame(rows).assign(**key, std=0.5, trials=3)
    trials = pd.concat([cells.assign(seed=seed, accuracy=cells["mean"]) for seed in (1, 2, 3)])
    ours = Evidence(cells, rule, trials=trials[[*AXES, "accuracy"]])
    claims, cases = check_claims(ours, paper_evidence(rule))
    write_csv(cases, tmp_path / "claims_cases.csv")
    write_json(tmp_path / "claims.json", {"claims": claims.to_dict("records")})
    section = {row["claim"]: row for row in claims_section(plan, tmp_path)}
    cell = "mnist/base/m2/n10000/prior0.5/relu/logistic"
    assert section["corrected-beats-ure"]["failing"] == [
        {"words": cell, "cell": cell, "seed": None, "left": "76", "right": "84"}
    ]
    (case,) = section["accuracy-grows-with-n"]["failing"]
    assert (case["cell"], case["left"], case["right"]) == ("mnist/base/m2/n12000/prior0.5/ure/logistic", "83", "84")
    (average,) = section["corrected-beats-ure-at-priors"]["failing"]  # over two n: the average is no single cell
    assert (average["cell"], average["left"], average["right"]) == (None, "83", "83.5")
    page = rendered("claims", claims=list(section.values()), level="95 %")
    # One of two cases holds in each of three trials; the deviation over trials cannot be told from one.
    assert "<td>1 of 2 (50 %)</td><td>50 % (" in page
    assert '<td>0 of 2 (0 %)</td><td class="quiet">counted, not tested</td>' in page
    assert "1 of our cases where it does not hold" in page
    assert f'<li><a href="#{cell}">{cell}</a>: 76, 84</li>' in page


def test_rows_of_a_table_are_prior_by_prior_as_in_the_paper(plan):
    chosen = Plan({**plan.config, "datasets": ["mnist", "fashion-mnist"], "experiments": ["table2"]})
    keys = pd.DataFrame(chosen.experiment("table2").runs).drop(columns="seed").drop_duplicates()
    reported = {"trials": 3, "diverged": 0, "first_epoch": 91, "last_epoch": 100}
    cells = keys.assign(mean=80.0, std=1.0, **reported, published_mean=81.0, published_std=1.0, difference=-1.0)
    section = table_section(chosen, "table2", "Table II", cells)
    expected = [(prior, title) for prior in ("0.4", "0.5", "0.6") for title in ("MNIST", "Fashion-MNIST")]
    assert [(row["prior"], row["dataset"]) for row in section["rows"]] == expected
    page = rendered("table", section=section)
    assert page.count('<tr class="group">') == 2


def test_without_a_run_it_is_one_sentence(plan, tmp_path):
    page = rendered("verdict", verdict=section_of(plan, tmp_path, "mnist") | {"compared": 0})
    assert "None of the paper's 504 numbers was run" in page
    assert "<table" not in page
