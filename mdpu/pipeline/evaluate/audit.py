"""The audit of the paper: its contradictions and gaps, recomputed wherever possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import yaml

from mdpu.law import Law
from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.published import BASELINES, CORRECTED, NUMERALS, PROPOSED, published_cells
from mdpu.pipeline.files import read_json, resource, write_csv, write_json
from mdpu.pipeline.plan import Plan

ANOMALIES = resource("mdpu/pipeline/evaluate/anomalies.yaml")
PUBLISHED_ROW = ["table", "prior", "dataset"]
WIDE_DEVIATION = 5.0  # points
EVEN = 0.02  # how far from one half the share of positives may be for a dataset to count as balanced
SIZES, PRIORS = range(1, 11), [tenth / 10 for tenth in range(1, 10)]  # where formulas are checked

RECOMPUTED, READ = "recomputed", "read"
ANOMALY, NO_CASE, NO_DATA = "anomaly", "no case", "not run"


@dataclass(frozen=True)
class Finding:
    """One finding of the audit: the fault in words, and whether there is a case of it.

    `checked` is ``recomputed`` from the published numbers, the images or the formulas, or ``read``. `outcome` is
    ``anomaly``, ``no case`` (looked for and not found), or ``not run`` (its data are not here). `count` of the cases,
    `of` the places checked, and `cases` are of recomputed findings.
    """

    kind: str
    place: str
    finding: str
    checked: str
    outcome: str
    count: int | None = None
    of: int | None = None
    cases: list[str] = field(default_factory=list)


def audit(datasets: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Return all findings: tables, datasets, protocol, mathematics, references.

    `datasets` are the published ones that this configuration runs as the paper states them, each with the
    ``description`` of its source and the ``counts`` of its sides.
    """
    findings = [*table_findings(published_cells()), *dataset_findings(datasets), *theory_findings()]
    findings += [Finding(**entry, checked=READ, outcome=ANOMALY) for entry in _typed()["read"]]
    kinds = ("tables", "datasets", "protocol", "mathematics", "references")
    return sorted(findings, key=lambda finding: kinds.index(finding.kind))


def _typed() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(ANOMALIES.read_text(encoding="utf-8"))
    return content


def _computed(kind: str, place: str, finding: str, cases: list[str], of: int) -> Finding:
    return Finding(kind, place, finding, RECOMPUTED, ANOMALY if cases else NO_CASE, len(cases), of, cases)


def _name(cell: Any) -> str:
    """Return the name of a published cell or row in lists of cases."""
    method = f", {load_method(cell.method).title}" if hasattr(cell, "method") else ""
    return f"Table {NUMERALS[cell.table]}, prior {cell.prior}, {cell.dataset}{method}"


def table_findings(cells: pd.DataFrame) -> list[Finding]:
    """Return the contradictions among the 504 cells, as `published_cells` returns them."""
    found = partial(_computed, "tables", "Tables II-V")
    marked = cells.assign(best=cells.groupby(PUBLISHED_ROW)["published_mean"].transform("max"))
    wrong = [
        f"{_name(cell)} {cell.published_mean:.2f} is bold, the row's highest is {cell.best:.2f}"
        for cell in marked[marked["published_bold"] & (marked["published_mean"] < marked["best"])].itertuples()
    ]
    alike = cells.groupby(["published_mean", "published_std"])
    copies = [
        f"{mean:.2f} ± {std:.2f}: " + " and ".join(map(_name, group.itertuples()))
        for (mean, std), group in alike
        if len(group) > 1
    ]
    others = [method for method in cells["method"].unique() if method != "kmeans"]
    rows = cells.pivot(index=PUBLISHED_ROW, columns="method", values="published_mean").reset_index()
    above = {method: rows[rows[list(BASELINES)].max(axis=1) > rows[method]] for method in PROPOSED}
    below = [
        f"{_name(row)}: {load_method(method).title} {getattr(row, method):.2f}, URE {row.ure:.2f}"
        for row in rows.itertuples()
        for method in CORRECTED
        if getattr(row, method) < row.ure
    ]
    wide = cells[cells["published_std"] > WIDE_DEVIATION]
    spread = [f"{_name(cell)} ± {cell.published_std:.2f}" for cell in wide.itertuples()]
    copied = "The same mean and deviation stand in more than one cell, a sign of copying."
    return [
        found("A bold cell is not its row's best.", wrong, int(cells["published_bold"].sum())),
        found(copied, copies, alike.ngroups),
        *(_below_chance(cells, methods) for methods in (["kmeans"], others)),
        *(
            found(
                f"A baseline is more accurate than {load_method(method).title}.",
                [*map(_name, worse.itertuples())],
                len(rows),
            )
            for method, worse in above.items()
        ),
        found("A corrected method is below the URE.", below, len(CORRECTED) * len(rows)),
        *(_drops(cells, *tables, method) for tables in ((2, 3), (4, 5)) for method in PROPOSED),
        found(f"The deviation over trials exceeds {WIDE_DEVIATION:g} points.", spread, len(cells)),
    ]


def _below_chance(cells: pd.DataFrame, methods: list[str]) -> Finding:
    compared = cells[cells["method"].isin(methods)]
    below = compared[compared["published_mean"] < 50]
    text = f"{', '.join(load_method(method).title for method in methods)}: the accuracy is below 50 %."
    if methods == ["kmeans"]:
        text = "K-Means: the accuracy is below 50 %, impossible with the best assignment of clusters to classes."
    cases = [f"{_name(cell)} {cell.published_mean:.2f}" for cell in below.itertuples()]
    return _computed("tables", "Tables II-V", text, cases, len(compared))


def _drops(cells: pd.DataFrame, smaller: int, larger: int, method: str) -> Finding:
    method_cells = cells[cells["method"] == method].set_index(["prior", "dataset"])
    before, after = (method_cells.loc[method_cells["table"] == table, "published_mean"] for table in (smaller, larger))
    after = after.reindex(before.index)
    cases = [
        f"prior {prior}, {dataset}: {before[prior, dataset]:.2f} to {after[prior, dataset]:.2f}"
        for prior, dataset in before.index[after < before]
    ]
    text = f"{load_method(method).title}: more data lower the accuracy, against the text."
    return _computed("tables", f"Tables {NUMERALS[smaller]} to {NUMERALS[larger]}", text, cases, len(before))


def dataset_findings(datasets: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Compare the paper's statements about each dataset with its images; see `audit`."""
    findings = []
    for name, stated in _typed()["stated"].items():
        place = f"Section V-A, {name}"
        text = "The images differ from what is stated: {train:,} for training, {test:,} for testing, {classes} classes."
        text = text.format(**stated)
        if name not in datasets:
            findings.append(Finding("datasets", place, text, RECOMPUTED, NO_DATA))
            continue
        description, counts = datasets[name]["description"], datasets[name]["counts"]
        at_hand = {**description, "classes": len(description["classes"])}
        cases = [
            f"{key}: {stated[key]:,} stated, {at_hand[key]:,} found" for key in stated if stated[key] != at_hand[key]
        ]
        findings.append(_computed("datasets", place, text, cases, len(stated)))
        shares = {part: sides["positive"] / (sides["positive"] + sides["negative"]) for part, sides in counts.items()}
        uneven = [f"{part}: {share:.3f}" for part, share in shares.items() if abs(share - 0.5) > EVEN]
        text = f"The share of positives is not within {EVEN:g} of one half."
        findings.append(_computed("datasets", place, text, uneven, len(shares)))
        findings.append(_impossible_draws(name, counts["train"]))
    return findings


def _impossible_draws(name: str, pool: Mapping[str, int]) -> Finding:
    """Return where tuples and as many unlabeled images cannot be drawn without replacement."""
    published = published_cells()
    drawn = published.loc[published["dataset"] == name, ["tuple_size", "n", "prior"]].drop_duplicates()
    cases = []
    for size, n, prior in drawn.itertuples(index=False):
        law, positive = Law.dominant(size).coefficients(float(prior)), float(prior)
        needed = {"positive": n * (size * law.a + positive), "negative": n * (size * law.b + 1 - positive)}
        lacking = [f"{needed[side]:,.0f} of {pool[side]:,} {side}s" for side in needed if needed[side] > pool[side]]
        if lacking:
            cases.append(f"M = {size}, n = {n:,}, prior {prior}: needs {' and '.join(lacking)}")
    text = "Without replacement, n tuples and n unlabeled images without overlap would need more images than there are."
    return _computed("protocol", f"Tables II-V, {name}", text, cases, len(drawn))


def theory_findings() -> list[Finding]:
    """Check the paper's formulas, and identities that it does not state, on a grid of tuple sizes and priors."""
    found = partial(_computed, "mathematics")

    def on_grid(place: str, text: str, fails: Callable[[int, float], bool], sizes: Sequence[int] = SIZES) -> Finding:
        grid = [(size, prior) for size in sizes for prior in PRIORS]
        return found(place, text, [f"M = {M}, prior {prior:g}" for M, prior in grid if fails(M, prior)], len(grid))

    titles = {name: (load_method(name).title, getattr(load_method(name), "k", math.nan)) for name in CORRECTED}
    not_positive = [f"{title} is its case k = {slope:g}" for title, slope in titles.values() if not slope > 0]
    gradient = _ramp_gradient(np.array([-0.5, -1.0, -3.0]))
    flat = [f"margin {margin:g}" for margin, slope in gradient.items() if slope == 0]
    return [
        found(
            "Eq. 14", "k > 0 is asked for, which a correction of the paper does not meet.", not_positive, len(titles)
        ),
        on_grid("Lemma 6", "a + b is not 1.", lambda M, prior: not _close(sum(_shares(M, prior)), 1)),
        on_grid("Section IV", "a pi_- - b pi_+ is not positive, or is not a - pi_+.", _is_no_denominator),
        on_grid(
            "Theorem 1",
            "The weights are not those of learning from two unlabeled sets with class priors a and pi_+.",
            _differs_from_two_unlabeled_sets,
        ),
        on_grid(
            "Lemma 6",
            "At M = 1, a is not 1 or b is not 0: it would not be positive and unlabeled learning.",
            lambda M, prior: not (_close(_shares(M, prior)[0], 1) and _shares(M, prior)[1] == 0),
            sizes=(1,),
        ),
        on_grid(
            "Theorem 3",
            "R_MDP >= zeta > 0 is assumed, but a classifier that scores positives +1 and negatives -1 has R_MDP < 0 "
            "under the logistic loss.",
            lambda M, prior: _tuple_risk(M, prior) < 0,
        ),
        found("Table I", "The ramp loss has no gradient on points that are misclassified.", flat, len(gradient)),
    ]


def _close(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)


def _is_no_denominator(M: int, prior: float) -> bool:
    denominator = Law.dominant(M).coefficients(prior).denominator
    return not (denominator > 0 and _close(denominator, _shares(M, prior)[0] - prior))


def _tuple_risk(M: int, prior: float) -> float:
    """Return R_MDP of scores +1 for positives and -1 for negatives under the logistic loss."""
    law, weights = Law.dominant(M).coefficients(prior), Law.dominant(M).risk_weights(prior)
    right, wrong = math.log1p(math.exp(-1)), math.log1p(math.exp(1))
    as_positive, as_negative = law.a * right + law.b * wrong, law.a * wrong + law.b * right
    return weights.tuple_positive * as_positive + weights.tuple_negative * as_negative


def _differs_from_two_unlabeled_sets(M: int, prior: float) -> bool:
    """Compare with Lu et al. (2018), whose sets have class priors theta = a and theta' = pi_+."""
    theta, other = Law.dominant(M).coefficients(prior).a, prior
    weights = (
        (1 - other) * prior / (theta - other),
        -other * (1 - prior) / (theta - other),
        -(1 - theta) * prior / (theta - other),
        theta * (1 - prior) / (theta - other),
    )
    return not all(map(_close, weights, Law.dominant(M).risk_weights(prior)))


def _shares(size: int, prior: float) -> tuple[float, float]:
    """Return Lemma 6's a and b by its own sums, apart from `mdpu.law`."""
    negative, most = 1 - prior, size // 2
    terms = [prior ** (size - k) * negative**k for k in range(most + 1)]
    total = sum(math.comb(size, k) * terms[k] for k in range(most + 1))
    a = sum(math.comb(size - 1, k) * terms[k] for k in range(most + 1)) / total
    b = sum(math.comb(size - 1, k - 1) * terms[k] for k in range(1, most + 1)) / total
    return a, b


def _ramp_gradient(margins: np.ndarray) -> dict[float, float]:
    """Return the derivative of the ramp loss at margins."""
    import torch

    from mdpu.losses import LOSSES

    at = torch.tensor(margins, requires_grad=True)
    LOSSES["ramp"].margin_loss(at).sum().backward()
    assert at.grad is not None
    return dict(zip(margins.tolist(), at.grad.tolist(), strict=True))


def write_audit(plan: Plan) -> None:
    """Audit the paper, and write the findings as CSV with all their cases (.json) beside them.

    Those of the plan's datasets are audited that have the name of a published row.
    """
    layout, stated = plan.layout, [name for name in plan.datasets if plan.published_names[name] == name]
    datasets = {
        name: {
            "description": read_json(layout.images(name).with_suffix(".json")),
            "counts": read_json(layout.labels(name).with_suffix(".json"))["counts"],
        }
        for name in stated
    }
    findings = [asdict(finding) for finding in audit(datasets)]
    table = pd.DataFrame(findings).assign(cases=["; ".join(finding["cases"]) for finding in findings])
    write_csv(table.astype({"count": "Int64", "of": "Int64"}), layout.results / "audit.csv")
    write_json(layout.results / "audit.json", {"findings": findings})
