"""Sections of the report and what its script gets, from tables made up for the purpose."""

import re

import numpy as np
import pandas as pd
import pytest
from contrast import contrast

from mdpu.methods import available_methods
from mdpu.pipeline.config import load_config, merge
from mdpu.pipeline.evaluate.claims import check_claims
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.comparison import compare, spreads, totals
from mdpu.pipeline.evaluate.evidence import Evidence, paper_evidence
from mdpu.pipeline.evaluate.published import published_summary
from mdpu.pipeline.files import REPOSITORY, resource, write_csv, write_json
from mdpu.pipeline.plan import AXES, Plan
from mdpu.pipeline.report.cells import cell_lines, training_lines
from mdpu.pipeline.report.html import typeset
from mdpu.pipeline.report.page import environment, is_of_paper
from mdpu.pipeline.report.verdicts import claims_section, verdict_section


@pytest.fixture(scope="module")
def plan():
    return Plan(load_config())


@pytest.mark.parametrize(
    ("name", "of_paper"), [("quick", False), ("reference", True), ("own-split", True)]
)
def test_only_a_page_of_the_papers_datasets_is_headed_as_a_reproduction(name, of_paper):
    chosen = Plan(load_config([resource(f"config/{name}.yaml")]))
    assert is_of_paper(chosen) == of_paper
    datasets = [chosen.dataset(dataset) for dataset in chosen.datasets]
    head = environment().get_template("sections/head.html.j2")
    title = re.search(
        "<h1>(.*)</h1>", head.render(of_paper=of_paper, datasets=datasets, name=name)
    )[1]
    assert title.endswith(": a reproduction") == of_paper
    assert title.startswith(datasets[0]["title"]) != of_paper


def test_a_method_of_others_says_after_what_it_was_written():
    macros = environment().get_template("macros.html.j2").module
    assert {name for name in available_methods() if macros.based(name)} == {
        *("siamese", "siamese-mixed", "contrastive", "kmeans", "kmeans-members", "kmeans-means"),
        *("nnpu", "llp", "bag-em"),
    }
    assert "°" in macros.based("kmeans") and "after the paper’s text" in macros.based("kmeans")
    assert "‡" in macros.based("llp") and "as its authors wrote it" in macros.based("llp")
    assert (
        macros.bases_of(["ure", "llp"]).strip() == "‡ as its authors wrote it, adapted to tuples."
    )
    assert macros.bases_of(["ure"]).strip() == ""


def test_a_cell_stands_in_its_column_with_a_glyph_of_its_own(plan):
    """The letters A to I were run, with the paper's own means, those of ReLU and of ABS shifted."""
    cells = (
        published_summary()
        .query("dataset == 'emnist-letters'")
        .assign(dataset="emnist-letters-a-i", std=0.1)
    )
    cells["mean"] += cells["method"].map({"relu": 30.0, "abs": 1.5}).fillna(0.0)
    rule = plan.config["comparison"]
    found = compare(
        cells.assign(diverged=0, first_epoch=91, last_epoch=100), plan.published_names, rule
    )
    facts = {
        name: count(found).to_dict("records")
        for name, count in (("totals", totals), ("spreads", spreads))
    }
    section = verdict_section(plan, found, {"rule": rule, **facts})
    (methods,) = {tuple(shown) for shown in section["columns"].values()}
    for row in section["grid"]:
        assert row["title"] == "EMNIST-Letters (A-I)"
        glyphs = np.array([[cell["glyph"] for cell in cells] for cells in row["cells"]])
        assert glyphs.shape == (4, 6)
        assert set(glyphs[:, methods.index("relu")]) <= {"≠"}
        assert set(glyphs[:, methods.index("abs")]) <= {"≈", "?"}
        assert set(glyphs[:, methods.index("ure")]) <= {"=", "?"}
    first = section["grid"][0]["cells"][0][methods.index("relu")]
    assert first["words"].startswith("differs (+30.00 points")


def test_a_claim_lists_our_failing_cases_and_leads_to_their_cells(plan, tmp_path):
    key = {
        "dataset": "mnist",
        "variant": "base",
        "tuple_size": 2,
        "prior": "0.5",
        "loss": "logistic",
    }
    key |= {"law": "dominant"}
    means = {
        ("ure", 10000): 84.0,
        ("ure", 12000): 83.0,
        ("relu", 10000): 76.0,
        ("relu", 12000): 90.0,
    }
    rows = [{"method": method, "n": n, "mean": mean} for (method, n), mean in means.items()]
    rule = plan.config["comparison"]
    cells = pd.DataFrame(rows).assign(**key, std=0.5, trials=3)
    trials = pd.concat([cells.assign(seed=seed, accuracy=cells["mean"]) for seed in (1, 2, 3)])
    claims, cases = check_claims(
        Evidence(cells, rule, trials=trials[[*AXES, "accuracy"]]), paper_evidence(rule)
    )
    write_csv(cases, tmp_path / "cases.csv")
    write_json(tmp_path / "claims.json", {"claims": claims.to_dict("records")})
    section = {
        row["claim"]: row
        for row in claims_section(tmp_path / "claims.json", tmp_path / "cases.csv")
    }
    cell = "mnist/base/m2/n10000/prior0.5/relu"
    failing = {"words": cell, "cell": cell, "seed": None, "left": "76", "right": "84"}
    assert section["corrected-beats-ure"]["failing"] == [failing]
    # over two n: the average is no single cell
    (average,) = section["corrected-beats-ure-at-priors"]["failing"]
    assert (average["cell"], average["left"], average["right"]) == (None, "83", "83.5")
    template = environment().get_template("sections/claims.html.j2")
    page = template.render(claims=list(section.values()), level="95 %", files={"claims": []})
    # One of two cases holds in each of three trials; an interval over trials cannot be told from
    # one.
    shown = (
        r'<td data-label="Cases">1 of 2 \(50 %\)</td><td data-label="Effect">\S+ <span '
        r'class="quiet">points</span></td>'
    )
    assert re.search(shown + r'<td data-label="In single trials">50 % \(', page)
    assert 'data-label="In single trials" class="quiet">counted, not tested</td>' in page
    assert f'<li><a href="#{cell}">{cell}</a>: 76, 84</li>' in page


def test_claims_stand_beside_other_readings_and_a_case_of_one_leads_nowhere(plan, tmp_path):
    key = {
        "dataset": "mnist",
        "tuple_size": 2,
        "n": 10000,
        "prior": "0.5",
        "method": "ure",
        "loss": "logistic",
    }
    frames = [
        pd.DataFrame([{**key, "variant": v, "mean": m}])
        for v, m in (("base", 80.0), ("optimizer adamw", 85.0))
    ]
    cells = pd.concat(frames, ignore_index=True).assign(law="dominant", std=1.0, trials=3)
    sides = [Evidence(own, plan.config["comparison"]) for own in (cells, cells.assign(mean=80.0))]
    claims, cases = check_claims(
        sides[0], paper_evidence(plan.config["comparison"]), {"literal": sides[1]}
    )
    write_csv(cases, tmp_path / "cases.csv")
    rows = claims.astype(object).where(claims.notna(), None).to_dict("records")
    write_json(tmp_path / "claims.json", {"claims": rows})
    rows = claims_section(tmp_path / "claims.json", tmp_path / "cases.csv")
    given = {"level": "95 %", "files": {"claims": []}, "named": {"literal": "all epochs"}}
    page = environment().get_template("sections/claims.html.j2").render(claims=rows, **given)
    assert re.search(
        r'data-label="Literal"><span class="chip holds">holds</span> <span class="quiet">1 of 1<',
        page,
    )
    assert "<li>mnist/optimizer adamw/m2/n10000/prior0.5/ure: 5, 2</li>" in page


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


@pytest.fixture(scope="module")
def lines():
    """Two cells of two trials, sixty epochs each; ABS diverges in its second trial."""
    few = {"seed": [1, 2], "method": ["ure", "abs"]}
    selection = {"datasets": ["mnist"], "experiments": ["table2"]}
    plan = Plan(merge(load_config(), selection | {"definitions": definitions(few)}))
    epochs = np.arange(1, 61)
    frames = []
    for run in plan.runs:
        rate = (
            np.full(60, np.nan)
            if (run.method, run.seed) == ("abs", 2)
            else 0.6 + 0.31 * epochs / 60
        )
        rates = dict.fromkeys(("true_positive_rate", "true_negative_rate", "accuracy"), rate)
        frames.append(pd.DataFrame({**vars(run), "epoch": epochs, "risk": 0.1, **rates}))
    metrics = pd.concat(frames, ignore_index=True)
    made = {
        "key": "k",
        "file": "runs/x.parquet",
        "device": "A",
        "date": "2026-02-01T00:00:00+00:00",
    }
    runs = run_accuracies(metrics, plan.protocol.reporting).assign(**made)
    runs = runs.assign(
        run=[run.name for run in plan.runs],
        precision=runs["seed"].map({1: "float32", 2: "bfloat16"}),
    )
    return cell_lines(plan, runs, metrics, training_lines(runs))


def definitions(table2):
    return {"experiments": {"table2": {**table2, "prior": [0.5]}}}


def test_the_runs_of_a_cell_share_a_line(lines):
    by_method = {line["name"].split("/")[-1]: line for line in lines}
    ure = by_method["ure"]
    assert ure["title"] == "MNIST, pairs, n = 10,000, prior 0.5, URE"
    assert ure["epochs"] == "averaged over epochs 51 to 60"
    assert ure["reduced"]

    first, second = ure["trials"]
    assert first["seed"] == 1
    assert second["seed"] == 2
    assert {first["origin"], second["origin"]} == {"A", "B"}
    mean = 60 + 31 * np.arange(51, 61).mean() / 60
    assert first["accuracy"] == pytest.approx(mean, abs=0.0051)
    diverged = by_method["abs"]["trials"][1]
    assert diverged["accuracy"] is None


def test_the_training_is_summed_up_by_device_and_precision():
    rows = [
        ("b", "GPU", "float32", "2026-02-03"),
        ("a", "CPU", "bfloat16", "2026-01-02"),
        ("c", "GPU", "float32", "2026-02-01"),
    ]
    runs = pd.DataFrame(rows, columns=["run", "device", "precision", "date"])
    runs["date"] += "T00:00"
    old, new = training_lines(runs)
    assert (old["letter"], old["device"], old["precision"], old["runs"]) == (
        "A",
        "CPU",
        "bfloat16",
        ["a"],
    )
    assert (new["letter"], new["first"], new["last"], new["runs"]) == (
        "B",
        "2026-02-01",
        "2026-02-03",
        ["b", "c"],
    )


def test_text_on_every_ground_can_be_read():
    text = (REPOSITORY / "report/tokens.css").read_text()
    for scheme in (0, 1):
        of = {
            name: values[scheme]
            for name, *values in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", text)
        }
        pairs = [
            ("ink", "page"),
            ("quiet", "page"),
            ("quiet", "raised"),
            ("accent", "page"),
            ("ink", "marked"),
        ]
        pairs += [(f"{tone}-ink", f"{tone}-back") for tone in ("good", "near", "open", "bad")]
        pairs += [("on-solid", tone) for tone in ("good", "near", "open", "bad")]
        low = {pair: contrast(*(of[name] for name in pair)) for pair in pairs}
        assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
