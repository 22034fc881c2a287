"""The audit: what it recomputes is what was found by hand, and it finds what is put in."""

from __future__ import annotations

import pytest

from mdpu.pipeline.evaluate import audit as module
from mdpu.pipeline.evaluate.audit import ANOMALY, NO_CASE, audit, table_findings
from mdpu.pipeline.evaluate.published import published_cells


def described(train=60000, test=10000, classes=10, positive=29492):
    description = {"train": train, "test": test, "classes": [str(name) for name in range(classes)]}
    sides = {"positive": positive, "negative": train - positive}
    return {"description": description, "counts": {"train": sides, "test": {"positive": 4926, "negative": 5074}}}


def one(findings, words, place=""):
    """Return the only finding with these words at this place."""
    found = [finding for finding in findings if words in finding.finding and place in finding.place]
    assert len(found) == 1, [finding.finding for finding in found]
    return found[0]


@pytest.fixture(scope="module")
def findings():
    return audit({})


# -- the published tables -------------------------------------------------------------------------


def test_the_counts_are_those_found_by_hand(findings):
    bold = one(findings, "A bold cell is not its row's best")
    assert (bold.count, bold.of) == (1, 84)
    assert bold.cases == ["Table V, prior 0.4, emnist-letters, ABS 89.67 is bold, the row's highest is 89.76"]
    below = one(findings, "K-Means: the accuracy is below 50 %")
    assert [case.rsplit(" ", 1)[1] for case in below.cases] == ["48.43", "46.28", "48.90"]
    assert one(findings, "Siamese, Contrastive: the accuracy is below 50 %").outcome == NO_CASE
    assert one(findings, "A baseline is more accurate than URE").count == 11
    assert one(findings, "A baseline is more accurate than ReLU").count == 0
    below_ure = one(findings, "A corrected method is below the URE")
    assert below_ure.cases == ["Table V, prior 0.4, fashion-mnist: ABS 92.19, URE 94.06"]


def test_it_finds_what_is_put_in():
    cells = published_cells()
    row = (cells["table"] == 3) & (cells["prior"] == "0.5") & (cells["dataset"] == "mnist")
    cells.loc[row & (cells["method"] == "siamese"), "published_mean"] = 99.0
    cells.loc[row & (cells["method"] == "contrastive"), "published_mean"] = 49.0
    findings = [*table_findings(cells)]
    assert "Table III, prior 0.5, mnist" in one(findings, "more accurate than URE").cases
    assert one(findings, "more accurate than ABS").count == 1
    assert one(findings, "A bold cell").count == 2
    assert one(findings, "Siamese, Contrastive: the accuracy").cases == [
        "Table III, prior 0.5, mnist, Contrastive 49.00"
    ]


# -- the datasets ---------------------------------------------------------------------------------


def test_counts_are_compared_with_the_images():
    findings = audit({"mnist": described(), "cifar-10": described(train=50000, positive=30000)})
    cifar = one(findings, "The images differ", "cifar-10")
    assert (cifar.outcome, cifar.cases) == (ANOMALY, ["train: 60,000 stated, 50,000 found"])
    mnist = [f for f in findings if f.place == "Section V-A, mnist" and "The images differ" in f.finding]
    assert [finding.outcome for finding in mnist] == [NO_CASE]
    uneven = one(findings, "share of positives", "cifar-10")
    assert uneven.cases == ["train: 0.600"]


# -- the mathematics ------------------------------------------------------------------------------


def test_the_formulas_hold_where_they_should_and_fail_where_they_do(findings):
    for words in ("a + b is not 1", "is not positive, or is not a - pi_+", "two unlabeled sets", "At M = 1"):
        assert one(findings, words).outcome == NO_CASE, words
    assert one(findings, "R_MDP >= zeta > 0").count == len(module.SIZES) * len(module.PRIORS)
    assert one(findings, "k > 0 is asked for").cases == ["ReLU is its case k = 0"]
    assert one(findings, "The ramp loss has no gradient").count == 3


def test_a_wrong_formula_is_found(monkeypatch):
    monkeypatch.setattr(module, "_shares", lambda size, prior: (0.5, 0.4))
    findings = [*module.theory_findings()]
    assert one(findings, "a + b is not 1").count == len(module.SIZES) * len(module.PRIORS)
    assert one(findings, "is not positive, or is not").outcome == ANOMALY
