"""The numbers that the documents print are those of results/reference, and these agree with one another."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from mdpu.evaluate.collect import summarize
from mdpu.evaluate.comparison import (
    CLOSE,
    DIFFERS,
    INCONCLUSIVE,
    NOT_RUN,
    REPRODUCED,
    compare,
    spreads,
    welch_interval,
)
from mdpu.evaluate.published import PROPOSED, published_cells
from mdpu.files import REPOSITORY
from mdpu.kinds.sensitivity.tables import KEY_TITLES
from mdpu.learn.methods import load_method
from mdpu.study.config import load_config
from mdpu.study.grid import AXES, CELL, ROW
from mdpu.study.plan import Plan
from mdpu.theory.joint import joint_information, marginal_information

REFERENCE = REPOSITORY / "results" / "reference"
FIRST = REFERENCE / "first"
SMALLER = {"mnist": 10_000, "fashion-mnist": 10_000, "emnist-letters": 7_000, "emnist-letters-a-i": 7_000}
SIZES = {"pairs": 2, "triples": 3}
PRIORS = ("0.4", "0.5", "0.6")
# Sentences of the documents with numbers in them, and what they are said of.
SENTENCES = yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text(encoding="utf-8"))
JUDGED = runpy.run_path(str(REPOSITORY / "benchmarks" / "judge_reference.py"))
COMPARED = sorted(path.parent for path in REFERENCE.glob("**/comparison.csv"))
LOSSES = ("logistic", "squared", "hinge", "ramp")
TOLD = {
    "0.30": "prior-minus-20",
    "0.40": "prior-minus-10",
    "0.45": "prior-minus-05",
    "0.50": "base",
    "0.55": "prior-plus-05",
    "0.60": "prior-plus-10",
    "0.70": "prior-plus-20",
}


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"prior": str})


@pytest.fixture(scope="module")
def cells() -> pd.DataFrame:
    """Mean and deviation over the trials of every cell of the first edition; a run that is in several is the same."""
    runs = first_edition()
    trained = runs[runs["method"] != "kmeans"]  # whose sums were divided among two threads in the first of the folders
    assert trained.groupby(list(AXES))["accuracy"].agg(np.ptp).max() < 1e-3
    return summarized(runs.drop_duplicates(list(AXES), keep="last"))


def summarized(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.groupby(list(CELL))["accuracy"].agg(["mean", "std"])


def ours(cells, dataset, size, prior, method, loss="logistic", variant="base", n=None):
    key = {"dataset": dataset, "variant": variant, "tuple_size": SIZES.get(size, size), "n": n or SMALLER[dataset]}
    return cells.loc[tuple({**key, "prior": prior, "method": method, "loss": loss}[axis] for axis in CELL)]


def theirs(dataset, size, prior, method, n=None):
    cells = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    stated = dataset.removesuffix("-a-i")
    cell = cells.loc[stated, SIZES[size], n or SMALLER[dataset], prior, method]
    return cell["published_mean"], cell["published_std"]


def table(document: str, *header: str) -> list[list[str]]:
    """Return the rows of the one Markdown table whose header has these words."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", (REPOSITORY / document).read_text(encoding="utf-8"), re.MULTILINE):
        first, _, *rows = block.splitlines()
        if all(word in first for word in header):
            found.append([[cell.strip() for cell in row.strip("|").split("|")] for row in rows])
    (rows,) = found
    return rows


def assert_says(text: str, mean: float, std: float, where: object) -> None:
    """Check that a document's number is this one, to the digits that it gives."""
    for said, value in zip(text.split(" ± "), (mean, std), strict=False):
        digits = len(said.partition(".")[2])
        assert abs(float(said) - value) <= 0.5001 * 10**-digits, where


def test_the_readmes_table(newest):
    rows = table("README.md", "accuracy in %", "ABS")
    for (name, prior, *own), (paper, _, *published) in zip(rows[::2], rows[1::2], strict=True):
        size, says = name.split(", ")
        assert (says, paper) == ("ours", "paper")
        for method, mine, printed in zip(("ure", "relu", "abs"), own, published, strict=True):
            assert_says(mine, *ours(newest, "mnist", size, prior, method), (size, prior, method))
            assert_says(printed, *theirs("mnist", size, prior, method), (size, prior, method))


@pytest.mark.parametrize(
    ("header", "columns", "n"),
    [
        *(
            ((f"| {title}, $n$ = {n:,} ",), [(dataset, size, prior) for size in SIZES for prior in PRIORS], n)
            for dataset, title, smaller, larger in (
                ("mnist", "MNIST", 10_000, 12_000),
                ("fashion-mnist", "Fashion-MNIST", 10_000, 12_000),
                ("emnist-letters-a-i", "EMNIST-Letters (A-I)", 7_000, 8_000),
            )
            for n in (smaller, larger)
        ),
        (
            ("Fashion-MNIST, pairs",),
            [
                (dataset, size, "0.5")
                for dataset in ("fashion-mnist", "emnist-letters", "emnist-letters-a-i")
                for size in SIZES
            ],
            None,
        ),
        (("| neighbours |",), [("mnist", size, prior) for size in SIZES for prior in PRIORS], 10_000),
    ],
    ids=[
        *(f"{name}, {size} n" for name in ("MNIST", "Fashion-MNIST", "A-I") for size in ("smaller", "larger")),
        "at prior 0.5",
        "neighbours",
    ],
)
def test_the_tables_of_methods(newest, header, columns, n):
    method = None
    for name, *values in table("docs/explanation/findings.md", *header):
        method = method if name == "paper" else name.strip("`")
        for column, text in zip(columns, values, strict=True):
            expected = theirs(*column, method, n) if name == "paper" else ours(newest, *column, method, n=n)
            assert_says(text, *expected, (method, column))


BAGS_TITLES = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist", "EMNIST-Letters (A-I)": "emnist-letters-a-i"}


def best_of(cells: pd.DataFrame, dataset: str, size: str, prior: str, n: int) -> pd.Series:
    """Return mean and deviation of the best method that neither learns from bags nor is a control, in a row."""
    row = cells.xs(
        (dataset, "base", SIZES[size], n, prior, "logistic"), level=[axis for axis in CELL if axis != "method"]
    )
    rivals = [name for name in row.index if not (name.startswith("bag-") or load_method(name).control)]
    return row.loc[row.loc[rivals, "mean"].idxmax()]


def assert_row_of_bags(cells, title: str, kind: str, values: list[str]) -> None:
    """Check a row of a table of bags, whose title names a dataset and n."""
    dataset, n = BAGS_TITLES[title.partition(", $n$ = ")[0]], int(title.partition(" = ")[2].replace(",", ""))
    paper = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"]).sort_index()
    for (size, prior), text in zip([(size, prior) for size in SIZES for prior in PRIORS], values, strict=True):
        if kind == "paper's best":
            row = paper.loc[dataset.removesuffix("-a-i"), SIZES[size], n, prior]
            expected = row.loc[row["published_mean"].idxmax(), ["published_mean", "published_std"]]
        elif kind == "others' best":
            expected = best_of(cells, dataset, size, prior, n)
        else:
            expected = ours(cells, dataset, size, prior, kind.strip("`"), n=n)
        assert_says(text, *expected, (title, kind, size, prior))


def test_the_table_of_bags(newest):
    title, rows = "", table("docs/explanation/findings.md", "| Bags |")
    assert len(rows) == 24
    for name, kind, *values in rows:
        title = name or title
        assert_row_of_bags(newest, title, kind, values)


def test_the_readmes_table_of_bags(newest):
    rows = table("README.md", "accuracy in %", "triples")
    assert len(rows) == 3
    for kind, *values in rows:
        assert_row_of_bags(newest, "MNIST, $n$ = 10,000", kind, values)
    rows = bag_facts()["rows"]
    assert f"In all {rows} rows" in words("README.md") and bag_facts()["paper"] == rows


def first_edition() -> pd.DataFrame:
    return pd.concat([read(path) for path in sorted(FIRST.glob("*/runs.csv"))])


@pytest.fixture(scope="module")
def newest(cells) -> pd.DataFrame:
    """The cells of the second edition, and those of the first that the second does not have."""
    return newest_of(cells)


def newest_of(first: pd.DataFrame) -> pd.DataFrame:
    second = summarized(read(REFERENCE / "runs.csv"))
    return pd.concat([first[~first.index.isin(second.index)], second]).sort_index()


def bag_facts() -> dict[str, object]:
    """Return what docs/explanation/findings.md counts of the methods on bags, by name."""
    cells = newest_of(summarized(first_edition().drop_duplicates(list(AXES), keep="last")))
    runs = read(REFERENCE / "runs.csv").query("variant == 'base'")
    bags = runs[runs["method"].eq("bag-relu") & in_tables(runs)]
    facts: dict[str, object] = dict.fromkeys(
        ("rows", "paper", "paper_significant", "others", "others_significant", "tested", "free"), 0
    )
    published = published_cells().set_index(["dataset", "tuple_size", "n", "prior"]).sort_index()
    gains, costs, names = [], [], {size: name for name, size in SIZES.items()}
    for dataset, size, n, prior in sorted(set(bags[list(ROW)].itertuples(index=False, name=None))):
        row = (dataset, names[size], prior)
        relu, free = (ours(cells, *row, method, n=n) for method in ("bag-relu", "bag-free"))
        paper = published.loc[dataset.removesuffix("-a-i"), size, n, prior]
        paper = paper.sort_values("published_mean").iloc[-1][["published_mean", "published_std"]]
        rivals = {"paper": paper.tolist(), "others": best_of(cells, *row, n).tolist()}
        for name, (mean, std) in rivals.items():
            facts[name] += relu["mean"] > mean
            low, _ = welch_interval(relu["mean"], relu["std"], 3, mean, std, 3, 0.95)
            facts[f"{name}_significant"] += low > 0
        facts["tested"] += not np.isnan(rivals["others"][1])
        facts["rows"] += 1
        gains.append(relu["mean"] - max(mean for mean, _ in rivals.values()))
        costs.append(relu["mean"] - free["mean"])
        facts["free"] += costs[-1] <= 1.5
    facts |= {"least_gain": min(gains), "free_cost": max(costs)}
    facts |= prior_facts() | choice_facts(runs) | gap_facts(cells) | loss_facts(cells) | collected_facts(cells)
    return facts | second_facts(runs[in_tables(runs)]) | cost_facts()


def cost_facts() -> dict[str, object]:
    """Return how many times as long as ReLU the methods on bags take, on pairs."""
    costs = pd.read_json(REFERENCE / "method-cost.jsonl", lines=True).query("tuple_size == 2")
    return {f"cost_{row.method}".replace("-", "_"): row.times_relu for row in costs.itertuples()}


def in_tables(runs: pd.DataFrame) -> pd.Series:
    """Return whether runs belong to a row of the paper's Tables II to V."""
    stated = set(published_cells()[list(ROW)].itertuples(index=False, name=None))
    rows = runs[list(ROW)].assign(dataset=runs["dataset"].str.removesuffix("-a-i"))
    return pd.Series([row in stated for row in rows.itertuples(index=False, name=None)], runs.index)


def loss_facts(cells: pd.DataFrame) -> dict[str, object]:
    """Return the points that methods lose on MNIST without a part, with a prior told wrong, and with broken tuples."""

    def mean(method: str, size: str = "pairs", prior: str = "0.5", variant: str = "base") -> float:
        return float(ours(cells, "mnist", size, prior, method, variant=variant)["mean"])

    facts: dict[str, object] = {}
    for part, method in (("joint", "marginal-relu"), ("correction", "bag-ure")):
        facts |= {
            f"{part}_{prior[2:]}": mean("bag-relu", prior=prior) - mean(method, prior=prior) for prior in PRIORS[1:]
        }
    others_told, neighbours = ("bag-abs", "bag-nce", "bag-likelihood"), ("bag-count", "bag-em")
    lost = {
        (method, size, variant): mean(method, size) - mean(method, size, variant=variant)
        for method in ("relu-part", "bag-relu", *others_told, *neighbours, "bag-free")
        for size in SIZES
        for variant in ("prior-minus-10", "prior-plus-10")
    }
    assert not any(loss for (method, *_), loss in lost.items() if method == "bag-free")
    for variant, name in (("prior-minus-10", "low"), ("prior-plus-10", "high")):
        facts |= {f"{name}_{size}": lost["bag-relu", size, variant] for size in SIZES}
        others = [lost[method, size, variant] for method in others_told for size in SIZES]
        facts |= {f"{name}_least": min(others), f"{name}_most": max(others)}
        facts |= {f"{name}_{m[4:]}_{size}": lost[m, size, variant] for m in neighbours for size in SIZES}
    facts["em_gains"] = -facts.pop("low_em_triples")
    part = [loss for (method, *_), loss in lost.items() if method == "relu-part"]
    facts |= {"part_least": min(part), "part_most": max(part)}
    for method in ("abs", "relu-part", "bag-relu", "bag-free"):
        for size in SIZES:
            for share in ("05", "10", "20"):
                loss = mean(method, size) - mean(method, size, variant=f"broken-{share}")
                facts[f"broken_{share}_{method}_{size}".replace("-", "_")] = loss
    wrong = [mean(method, variant="broken-20") for method in ("ure", "abs", "relu-part", "bag-relu", "bag-free")]
    return facts | {"broken_20_least": min(wrong), "broken_20_most": max(wrong)}


def collected_facts(cells: pd.DataFrame) -> dict[str, object]:
    """Return what is said of the size and of the number of tuples, on MNIST at prior 0.5."""

    def mean(method: str, size: str | int, n: int = 10_000) -> float:
        return float(ours(cells, "mnist", size, "0.5", method, n=n)["mean"])

    facts: dict[str, object] = {}
    for method in ("abs", "relu-part", "bag-relu"):
        by_size = [mean(method, size) for size in range(2, 8)]
        even, odd = by_size[::2], by_size[1::2]
        assert all(low < high for low, high in [*zip(even, odd, strict=True), *zip(even[1:], odd[:-1], strict=True)])
        name = method.replace("-", "_")
        facts |= {f"{name}_least_size": min(by_size), f"{name}_most_size": max(by_size)}
        facts[f"{name}_seven"] = by_size[1] - by_size[5]
    behind = [
        ours(cells, "mnist", size, prior, "bag-relu")["mean"] - ours(cells, "mnist", size, prior, "bag-em")["mean"]
        for size in SIZES
        for prior in PRIORS
    ]
    facts |= {"em_least": min(behind), "em_most": max(behind)}
    for size in SIZES:
        facts[f"third_{size}"] = mean("bag-relu", size, 4_000)
        facts[f"others_whole_{size}"] = max(mean(method, size, 12_000) for method in ("abs", "relu-part"))
        facts[f"late_gain_{size}"] = mean("bag-relu", size, 12_000) - mean("bag-relu", size, 8_000)
    return facts


def second_facts(runs: pd.DataFrame) -> dict[str, object]:
    """Return what the claims of the second edition count; every method has the same rows."""
    rows = {
        method: set(group[list(ROW)].itertuples(index=False, name=None)) for method, group in runs.groupby("method")
    }
    assert all(rows[method] == rows["bag-relu"] for method in (*PROPOSED, "relu-part", "supervised", "bag-free"))
    facts: dict[str, object] = {}
    for claim, said in read(REFERENCE / "claims.csv").set_index("claim")["ours"].items():
        name, (held, _, cases) = str(claim).replace("-", "_"), said.partition(" of ")
        facts |= {f"claim_{name}": said, f"held_{name}": held, f"cases_{name}": cases}
    return facts


def prior_facts() -> dict[str, object]:
    estimates = read(REFERENCE / "bags-priors.csv")
    true = estimates["prior"].astype(float)
    error = (estimates["estimated_prior"] - true).abs()
    worst = estimates.loc[error.idxmax()]
    titles = {name: title for title, name in BAGS_TITLES.items()}
    sizes = {size: name for name, size in SIZES.items()}

    def inside(prior: pd.Series) -> pd.Series:
        return estimates["estimated_prior_low"].le(prior) & estimates["estimated_prior_high"].ge(prior)

    return {
        "near": int((error <= 0.03).sum()),
        "largest_error": error.max(),
        "worst": f"{sizes[worst['tuple_size']]} of {titles[worst['dataset']]} at {worst['prior']}",
        "held": int(inside(true).sum()),
        "estimated": len(estimates),
        "twice": 2 * len(estimates),
        "noticed_10": int(sum((~inside(true + side * 0.1)).sum() for side in (-1, 1))),
        "noticed_05": int(sum((~inside(true + side * 0.05)).sum() for side in (-1, 1))),
    }


def choice_facts(bags: pd.DataFrame) -> dict[str, object]:
    regrets = read(REFERENCE / "bags-choice.csv")
    relu = regrets[regrets["method"] == "bag-relu"]
    claims = read(REFERENCE / "claims.csv").set_index("claim")["ours"]
    hold, _, runs = claims["bags-hold-their-accuracy"].partition(" of ")
    assert int(runs) == (bags["method"] == "bag-relu").sum()
    means = {f"regret_{way}": np.average(relu[way], weights=relu["trials"]) for way in ("bags", "members", "protocol")}
    for way in ("protocol", "bags"):
        costs = regrets.groupby("method")[way].mean()[list(PROPOSED)]
        means[f"proposed_{way}"] = "{:.1f}, {:.1f} and {:.1f}".format(*costs)
    others = pd.concat([read(REFERENCE / f"bags-choice-{name}.csv") for name in ("neighbours", "ablation")])
    means |= {f"others_{way}": others[way].max() for way in ("protocol", "bags")}
    return means | {"hold": int(hold), "runs": int(runs)}


def gap_facts(cells: pd.DataFrame) -> dict[str, object]:
    """Return how far bag-relu is below full supervision on MNIST and on the letters."""
    gaps = {}
    for dataset, name in (("mnist", "gap"), ("emnist-letters-a-i", "gap_letters")):
        for size in SIZES:
            by_prior = [
                ours(cells, dataset, size, prior, "supervised")["mean"]
                - ours(cells, dataset, size, prior, "bag-relu")["mean"]
                for prior in PRIORS
            ]
            gaps[f"{name}_{size}"] = "{:.1f}, {:.1f} and {:.1f}".format(*by_prior)
    return gaps


@pytest.mark.parametrize(
    ("header", "variants"),
    [
        ("| bags, told |", ("prior-minus-10", "base", "prior-plus-10")),
        ("| bags, broken |", ("base", "broken-05", "broken-10", "broken-20")),
    ],
)
def test_the_tables_of_bags_in_other_variants(newest, header, variants):
    rows = table("docs/explanation/findings.md", header)
    assert len(rows) >= 10
    for size, method, *values in rows:
        for variant, text in zip(variants, values, strict=True):
            where = size, method.strip("`"), variant
            assert_says(text, *ours(newest, "mnist", size, "0.5", where[1], variant=variant), where)


def test_the_table_of_bags_against_n(newest):
    rows = table("docs/explanation/findings.md", "| bags, $n$ |")
    assert len(rows) == 8
    for size, method, *values in rows:
        for n, text in zip(range(2_000, 14_000, 2_000), values, strict=True):
            assert_says(text, *ours(newest, "mnist", size, "0.5", method.strip("`"), n=n), (size, method, n))


def test_the_table_of_tuple_sizes(newest):
    methods, information = table("docs/explanation/findings.md", "| bags, $M$ |"), {}
    for name, *values in methods[-2:]:
        information[name] = [float(value) for value in values]
    for kept, bits in zip(information.values(), (joint_information, marginal_information), strict=True):
        assert kept == [round(bits(size, 0.5), 3) for size in range(2, 8)]
    for method, *values in methods[:-2]:
        for size, text in zip(range(2, 8), values, strict=True):
            assert_says(text, *ours(newest, "mnist", size, "0.5", method.strip("`")), (size, method))


def test_the_table_of_tuning():
    regrets = read(REFERENCE / "bags-tuning.csv").set_index(["prior", "method"])
    rows = table("docs/explanation/findings.md", "| tuning |")
    assert len(rows) == len(regrets)
    for prior, method, *values in rows:
        found = regrets.loc[(prior, method.strip("`")), ["best", "protocol", "bags", "members"]]
        for text, value in zip(values, found, strict=True):
            assert_says(text, value, 0.0, (prior, method))


def test_the_table_of_the_ablation(newest):
    rows = table("docs/explanation/findings.md", "| without |")
    assert len(rows) == 7
    for method, _, *values in rows:
        for prior, text in zip(("0.5", "0.6"), values, strict=True):
            assert_says(text, *ours(newest, "mnist", "pairs", prior, method.strip("`")), (method, prior))


def test_the_table_of_finishes():
    measured = pd.read_json(REFERENCE / "finishing.jsonl", lines=True)
    rows = table("docs/explanation/findings.md", "| finish |")
    for (_, accuracy, gain), row in zip(rows, measured.to_dict("records"), strict=True):
        assert_says(accuracy, row["accuracy"], row["std"], row["candidate"])
        if gain != "–":
            assert_says(gain, row["gain"], row["gain_std"], row["candidate"])


def test_the_table_of_calibration():
    measured = pd.read_json(REFERENCE / "calibration.jsonl", lines=True)
    errors = (100 * measured.pivot(index="method", columns="prior", values="calibration_error")).round(1)
    rows = table("docs/how-to/estimator.md", "calibration error")
    assert {name.strip("`"): [float(value) for value in values] for name, *values in rows} == {
        str(method): errors.loc[method].tolist() for method in errors.index
    }
    measured["doubt"] = measured["confidence"] < measured["accuracy"]
    doubts = measured.groupby("method")["doubt"].agg(["all", "any"])
    assert doubts.loc[["bag-relu", "relu-part"], "all"].all()
    assert not doubts.loc["relu", "any"]
    assert errors.T["bag-nce"].lt(errors.T.drop(columns="bag-nce").min(axis=1)).all()


def test_what_is_said_of_bags():
    facts, said = bag_facts(), words("docs/explanation/findings.md")
    for sentence in SENTENCES["bags"]:
        assert sentence.strip().format(**facts) in said


@pytest.fixture(scope="module")
def verdicts() -> pd.DataFrame:
    """The verdicts of the second edition, and those of the first of the baselines, which the second does not have."""
    first = read(FIRST / "tables" / "comparison.csv")
    return pd.concat([read(REFERENCE / "comparison.csv"), first[~first["method"].isin(PROPOSED)]])


def test_the_table_of_verdicts(verdicts):
    found = verdicts[verdicts["method"].isin(PROPOSED)]
    titles = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist", "EMNIST-Letters (A-I)": "emnist-letters-a-i"}
    for name, *counts in table("docs/explanation/findings.md", "reproduced", "inconclusive"):
        key = titles.get(name, name.strip("`"))
        named_rows = found if name == "all" else found[(found["method"] == key) | (found["dataset"] == key)]
        expected = [(named_rows["verdict"] == verdict).sum() for verdict in (REPRODUCED, CLOSE, INCONCLUSIVE, DIFFERS)]
        assert [int(count) for count in counts] == expected, name


def words(document: str) -> str:
    """Return a document with every run of white space as one space."""
    return " ".join((REPOSITORY / document).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("document", "rows", "sentence"), SENTENCES["verdicts"])
def test_the_sentences_that_count_verdicts(verdicts, document, rows, sentence):
    chosen = verdicts if "method" in rows else verdicts[verdicts["method"].isin(PROPOSED)]
    for axis, value in rows.items():
        chosen = chosen[chosen[axis] == value]
    counts = {verdict: (chosen["verdict"] == verdict).sum() for verdict in (REPRODUCED, CLOSE, INCONCLUSIVE, DIFFERS)}
    assert sentence.format(**counts) in words(document)


def test_the_table_of_claims():
    found = pd.read_csv(REFERENCE / "claims.csv").query("said_by != 'project'")
    found = found[["claim", "ours", "in_single_trials", "paper"]]
    rows = [
        [name.strip("`"), *others]
        for name, *others in table("docs/explanation/findings.md", "claim", "in single trials")
    ]
    assert rows == found.to_numpy().tolist()


@pytest.mark.parametrize(("document", "whose", "claim", "sentence"), SENTENCES["claims"])
def test_the_sentences_that_count_claims(document, whose, claim, sentence):
    found = pd.read_csv(REFERENCE / "claims.csv").set_index("claim").loc[claim]
    hold, cases = (int(number) for number in found[whose].split(" of "))
    in_trials = re.fullmatch(r"(\d+) % \((\d+) to (\d+)\)", str(found.get("in_single_trials")))
    shares = dict(zip(("rate", "low", "high"), in_trials.groups(), strict=True)) if in_trials else {}
    assert sentence.format(hold=hold, fail=cases - hold, cases=cases, **shares) in words(document)


def test_the_papers_part_wise_correction_beats_the_published_ones_on_mnist(newest):
    part, whole = (
        [ours(newest, "mnist", size, prior, method)["mean"] for size in SIZES for prior in PRIORS for method in methods]
        for methods in (("relu-part", "relu-part"), ("relu", "abs"))
    )
    difference = np.subtract(part, whole)
    assert (
        f"published corrections in {(difference > 0).sum()} of {len(difference)} comparisons on MNIST, by "
        f"{difference.min():.1f} to {difference.max():.1f} points" in words("README.md")
    )


def test_the_ratios_of_deviations():
    found = spreads(read(REFERENCE / "comparison.csv")).set_index("method").loc[list(PROPOSED)]
    ratios, larger = (
        [f"{value:{form}}" for value in found[name]] for name, form in (("ratio", ".1f"), ("larger", "d"))
    )
    assert set(found["cells"]) == {24}  # the letters A to I are another reading
    said = words("docs/explanation/findings.md")
    assert "of URE, ReLU and ABS are {}, {} and {} times the paper's (root mean squares)".format(*ratios) in said
    assert "and larger in {}, {} and {}.".format(*larger) in said


def test_the_bounds_of_precision():
    wide = pd.read_csv(FIRST / "mnist" / "precision.csv").pivot_table(
        index=["method", "seed"], columns="precision", values="accuracy"
    )
    for title, *_, deviation, least in table("docs/explanation/performance.md", "at least", "deviation"):
        difference = (wide["bf16"] - wide["fp32"]).loc[title.lower()]
        bound = stats.ttest_1samp(difference, 0.0, alternative="greater").confidence_interval(0.95).low
        assert_says(deviation, difference.std(), 0.0, title)
        assert_says(least, bound, 0.0, title)


def test_the_table_of_sizes(cells):
    for size, method, *values in table("docs/explanation/findings.md", "| $n$ tuples |"):
        for n, text in zip(range(2_000, 14_000, 2_000), values, strict=True):
            assert_says(text, *ours(cells, "mnist", size, "0.5", method.strip("`"), n=n), (size, method, n))


def test_the_table_of_the_sensitivity_study():
    found = read(FIRST / "sensitivity" / "sensitivity.csv").astype({"value": str})
    columns = [(dataset, method) for dataset in ("mnist", "fashion-mnist") for method in ("ure", "relu", "abs")]
    (_, _, _, *accuracies), *rows = table("docs/explanation/protocol.md", "alternative", "Fashion-MNIST URE")
    for (dataset, method), said in zip(columns, accuracies, strict=True):
        matching = found[(found["dataset"] == dataset) & (found["method"] == method)]
        assert_says(said.removesuffix(" %"), matching["base_mean"].iloc[0], 0.0, (dataset, method))
    alternatives = list(dict.fromkeys(found[["key", "value"]].itertuples(index=False, name=None)))
    order = {key: place for place, key in enumerate(KEY_TITLES)}
    expected = sorted(alternatives, key=lambda alternative: order[alternative[0]])
    for (key, value), (_, _, _, *cells) in zip(expected, rows, strict=True):
        for (dataset, method), text in zip(columns, cells, strict=True):
            key_rows = found[(found["key"] == key) & (found["value"] == value)]
            cell = key_rows[(key_rows["dataset"] == dataset) & (key_rows["method"] == method)].to_dict("records")
            if text == "–":
                assert not cell
                continue
            assert_says(text.strip("*"), cell[0]["difference"], cell[0]["std"], (key, value, dataset, method))
            assert text.startswith("**") == (cell[0]["low"] > 0 or cell[0]["high"] < 0), (key, value, dataset, method)


def test_the_table_of_losses(cells):
    for size, method, *values in table("docs/explanation/findings.md", *LOSSES):
        for loss, text in zip(LOSSES, values, strict=True):
            assert_says(text, *ours(cells, "mnist", size, "0.5", method.strip("`"), loss), (size, method, loss))


def test_the_table_of_told_priors(cells):
    for size, method, *values in table("docs/explanation/findings.md", "told $"):
        for variant, text in zip(TOLD.values(), values, strict=True):
            where = size, method, variant
            assert_says(text, *ours(cells, "mnist", size, "0.5", method.strip("`"), variant=variant), where)


@pytest.mark.parametrize("folder", COMPARED, ids=lambda folder: folder.name)
def test_comparisons_are_by_the_rule_as_it_stands(folder):
    """Else: python benchmarks/judge_reference.py."""
    plan = Plan(load_config([REPOSITORY / "config.yaml"]))
    found = compare(summarize(read(folder / "runs.csv")), plan.published_names, plan.config["comparison"])
    kept = read(folder / "comparison.csv")
    found = found[found["verdict"] != NOT_RUN].reset_index(drop=True)
    assert list(found.columns) == list(kept.columns)
    assert found["verdict"].tolist() == kept["verdict"].tolist()
    assert found["cell"].tolist() == kept["cell"].tolist()


@pytest.mark.parametrize(
    "folder", ["", "first/tables", "first/tables-mnist", "first/letters", "first/sensitivity", "first/sides"]
)
def test_claims_are_as_they_stand(folder):
    """Else: python benchmarks/judge_reference.py."""
    script = runpy.run_path(str(REPOSITORY / "benchmarks" / "judge_reference.py"))
    place = REFERENCE / folder
    found = script["judged_claims"](place, read(place / "runs.csv"), script["finished_runs"](place))
    pd.testing.assert_frame_equal(found.reset_index(drop=True), pd.read_csv(place / "claims.csv"))


@pytest.mark.parametrize("folder", COMPARED, ids=lambda folder: folder.name)
def test_comparisons_are_of_the_runs_beside_them_and_of_the_published_cells(folder):
    cells = summarized(read(folder / "runs.csv"))
    published = published_cells().set_index(["dataset", "tuple_size", "n", "prior", "method"])
    for row in read(folder / "comparison.csv").to_dict("records"):
        key = {**row, "variant": "base", "loss": "logistic"}
        mean, std = cells.loc[tuple(key[axis] for axis in CELL)]
        assert row["mean"] == pytest.approx(mean, abs=1e-3), row
        assert row["std"] == pytest.approx(std, abs=1e-3, nan_ok=True), row
        cell = published.loc[row["published_dataset"], row["tuple_size"], row["n"], row["prior"], row["method"]]
        assert (row["published_mean"], row["published_std"]) == (cell["published_mean"], cell["published_std"]), row
        assert row["difference"] == pytest.approx(row["mean"] - row["published_mean"], abs=1e-3), row


@pytest.mark.parametrize(
    ("packed", "folders"),
    [
        (FIRST, [FIRST / name for name in ("tables", "tables-mnist", "letters", "sides", "sensitivity")]),
        (REFERENCE, [REFERENCE]),
    ],
    ids=["first", "second"],
)
def test_the_packed_runs_are_those_of_the_rows(packed, folders):
    histories = pd.read_parquet(packed / "finished.parquet")
    last = histories[histories["epoch"] > 90].groupby(list(AXES))["accuracy"].mean() * 100
    rows = pd.concat([read(folder / "runs.csv") for folder in folders])
    rows = rows.drop_duplicates(list(AXES)).set_index(list(AXES))["accuracy"]
    pd.testing.assert_series_equal(last.loc[rows.index], rows, check_names=False, rtol=0, atol=1e-4)
    assert {"fingerprint", "origin"} <= set(histories.columns)
