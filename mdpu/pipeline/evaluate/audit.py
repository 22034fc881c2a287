"""The audit of the paper: its contradictions and gaps, recomputed wherever possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import Any

import pandas as pd
import yaml

from mdpu.law import Law
from mdpu.learn.method import CorrectedRisk
from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.published import BASELINES, CORRECTED, METHODS, NUMERALS, PROPOSED, published_cells
from mdpu.pipeline.files import read_json, resource, write_csv, write_json
from mdpu.pipeline.plan import Plan

KINDS = ("tables", "datasets", "protocol", "mathematics", "references")  # of findings, in order
PUBLISHED_ROW = ["table", "prior", "dataset"]
WIDE_DEVIATION = 5.0  # points
EVEN = 0.02  # how far from one half the share of positives may be for a dataset to count as balanced
SIZES, PRIORS = range(1, 11), [tenth / 10 for tenth in range(1, 10)]  # where formulas are checked
MISCLASSIFIED = (-0.5, -1.0, -3.0)  # margins

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


@cache
def typed() -> dict[str, Any]:
    """Return what was read from the paper by hand: findings, and the counts and shares that it states."""
    return yaml.safe_load(resource("mdpu/pipeline/evaluate/anomalies.yaml").read_text(encoding="utf-8"))


def audit(datasets: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Return all findings, in the order of `KINDS`.

    `datasets` are the published ones that this configuration runs as the paper states them, each with the
    ``description`` of its source and the ``counts`` of its sides.
    """
    findings = [*table_findings(published_cells()), *dataset_findings(datasets), *theory_findings()]
    findings += [Finding(**entry, checked=READ, outcome=ANOMALY) for entry in typed()["read"]]
    return sorted(findings, key=lambda finding: KINDS.index(finding.kind))


def _computed(kind: str, place: str, finding: str, cases: list[str], of: int) -> Finding:
    return Finding(kind, place, finding, RECOMPUTED, ANOMALY if cases else NO_CASE, len(cases), of, cases)


def _row(cell: Any) -> str:
    """Return the name of a row of the published tables, that of a cell."""
    return f"Table {NUMERALS[cell.table]}, prior {cell.prior}, {cell.dataset}"


def _cell(cell: Any) -> str:
    return f"{_row(cell)}, {load_method(cell.method).title}"


def table_findings(cells: pd.DataFrame) -> Iterator[Finding]:
    """Yield the contradictions among the 504 cells, as `published_cells` returns them."""
    found = partial(_computed, "tables", "Tables II-V")
    best = cells.assign(best=cells.groupby(PUBLISHED_ROW)["published_mean"].transform("max"))
    bold = best[best["published_bold"]]
    wrong = [
        f"{_cell(cell)} {cell.published_mean:.2f} is bold, the row's highest is {cell.best:.2f}"
        for cell in bold[bold["published_mean"] < bold["best"]].itertuples()
    ]
    yield found("A bold cell is not its row's best.", wrong, len(bold))
    alike = cells.groupby(["published_mean", "published_std"])
    copies = [
        f"{mean:.2f} ± {std:.2f}: " + " and ".join(map(_cell, group.itertuples()))
        for (mean, std), group in alike
        if len(group) > 1
    ]
    yield found("The same mean and deviation stand in more than one cell, a sign of copying.", copies, alike.ngroups)
    is_kmeans = cells["method"] == "kmeans"
    others = ", ".join(load_method(method).title for method in METHODS if method != "kmeans")
    impossible = "K-Means: the accuracy is below 50 %, impossible with the best assignment of clusters to classes."
    for text, some in ((impossible, cells[is_kmeans]), (f"{others}: the accuracy is below 50 %.", cells[~is_kmeans])):
        below = some[some["published_mean"] < 50]
        yield found(text, [f"{_cell(cell)} {cell.published_mean:.2f}" for cell in below.itertuples()], len(some))
    rows = cells.pivot(index=PUBLISHED_ROW, columns="method", values="published_mean").reset_index()
    for method in PROPOSED:
        above = rows[rows[list(BASELINES)].max(axis=1) > rows[method]]
        text = f"A baseline is more accurate than {load_method(method).title}."
        yield found(text, [*map(_row, above.itertuples())], len(rows))
    below_ure = [
        f"{_row(row)}: {load_method(method).title} {getattr(row, method):.2f}, URE {row.ure:.2f}"
        for row in rows.itertuples()
        for method in CORRECTED
        if getattr(row, method) < row.ure
    ]
    yield found("A corrected method is below the URE.", below_ure, len(CORRECTED) * len(rows))
    yield from _drops(cells, 2, 3)
    yield from _drops(cells, 4, 5)
    wide = cells[cells["published_std"] > WIDE_DEVIATION]
    text = f"The deviation over trials exceeds {WIDE_DEVIATION:g} points."
    yield found(text, [f"{_cell(cell)} ± {cell.published_std:.2f}" for cell in wide.itertuples()], len(cells))


def _drops(cells: pd.DataFrame, smaller: int, larger: int) -> Iterator[Finding]:
    """Yield where each proposed method loses accuracy from the table of the smaller n to that of the larger."""
    after = cells.loc[cells["table"] == larger, ["method", "prior", "dataset", "published_mean"]]
    pairs = cells[cells["table"] == smaller].merge(after, on=["method", "prior", "dataset"], suffixes=("", "_after"))
    for method in PROPOSED:
        own = pairs[pairs["method"] == method]
        cases = [
            f"prior {pair.prior}, {pair.dataset}: {pair.published_mean:.2f} to {pair.published_mean_after:.2f}"
            for pair in own[own["published_mean_after"] < own["published_mean"]].itertuples()
        ]
        text = f"{load_method(method).title}: more data lower the accuracy, against the text."
        yield _computed("tables", f"Tables {NUMERALS[smaller]} to {NUMERALS[larger]}", text, cases, len(own))


def dataset_findings(datasets: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Compare the paper's statements about each dataset with its images; see `audit`."""
    for name, stated in typed()["stated"].items():
        place = f"Section V-A, {name}"
        text = "The images differ from what is stated: {train:,} for training, {test:,} for testing, {classes} classes."
        text = text.format(**stated)
        if name not in datasets:
            yield Finding("datasets", place, text, RECOMPUTED, NO_DATA)
            continue
        description, counts = datasets[name]["description"], datasets[name]["counts"]
        here = {**description, "classes": len(description["classes"])}
        cases = [f"{key}: {stated[key]:,} stated, {here[key]:,} found" for key in stated if stated[key] != here[key]]
        yield _computed("datasets", place, text, cases, len(stated))
        shares = {part: sides["positive"] / (sides["positive"] + sides["negative"]) for part, sides in counts.items()}
        uneven = [f"{part}: {share:.3f}" for part, share in shares.items() if abs(share - 0.5) > EVEN]
        text = f"The share of positives is not within {EVEN:g} of one half."
        yield _computed("datasets", place, text, uneven, len(shares))
        yield _impossible_draws(name, counts["train"])


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


def theory_findings() -> Iterator[Finding]:
    """Check the paper's formulas, and identities that it does not state, on a grid of tuple sizes and priors."""
    import torch

    from mdpu.losses import LOSSES

    found = partial(_computed, "mathematics")

    def on_grid(place: str, text: str, fails: Callable[[int, float], bool], sizes: Sequence[int] = SIZES) -> Finding:
        grid = [(size, prior) for size in sizes for prior in PRIORS]
        return found(place, text, [f"M = {M}, prior {prior:g}" for M, prior in grid if fails(M, prior)], len(grid))

    corrections = [method for method in map(load_method, CORRECTED) if isinstance(method, CorrectedRisk)]
    not_positive = [f"{method.title} is its case k = {method.k:g}" for method in corrections if method.k <= 0]
    text = "k > 0 is asked for, which a correction of the paper does not meet."
    yield found("Eq. 14", text, not_positive, len(corrections))
    yield on_grid("Lemma 6", "a + b is not 1.", lambda M, prior: not _close(sum(_shares(M, prior)), 1))
    yield on_grid("Section IV", "a pi_- - b pi_+ is not positive, or is not a - pi_+.", _is_no_denominator)
    text = "The weights are not those of learning from two unlabeled sets with class priors a and pi_+."
    yield on_grid("Theorem 1", text, _differs_from_two_unlabeled_sets)
    text = "At M = 1, a is not 1 or b is not 0: it would not be positive and unlabeled learning."
    yield on_grid("Lemma 6", text, lambda M, prior: _shares(M, prior) != (1, 0), sizes=[1])
    text = (
        "R_MDP >= zeta > 0 is assumed, but a classifier that scores positives +1 and negatives -1 has R_MDP < 0 under "
        "the logistic loss."
    )
    yield on_grid("Theorem 3", text, lambda M, prior: _tuple_risk(M, prior) < 0)
    ramp = LOSSES["ramp"].margin_loss
    flat = [f"margin {at:g}" for at in MISCLASSIFIED if ramp(torch.tensor(at)) == ramp(torch.tensor(at - 0.1))]
    text = "The ramp loss has no gradient on points that are misclassified."
    yield found("Table I", text, flat, len(MISCLASSIFIED))


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


def write_audit(plan: Plan) -> None:
    """Audit the paper, and write the findings as CSV with all their cases (.json) beside them.

    Those of the plan's datasets are audited that have the name of a published row.
    """
    layout = plan.layout
    datasets = {
        name: {
            "description": read_json(layout.images(name).with_suffix(".json")),
            "counts": read_json(layout.labels(name).with_suffix(".json"))["counts"],
        }
        for name in plan.datasets
        if plan.published_names[name] == name
    }
    findings = [asdict(finding) for finding in audit(datasets)]
    table = pd.DataFrame(findings).assign(cases=["; ".join(finding["cases"]) for finding in findings])
    write_csv(table.astype({"count": "Int64", "of": "Int64"}), layout.results / "audit.csv")
    write_json(layout.results / "audit.json", {"findings": findings})
