"""Sentences of the documents: their numbers are those of the shipped rows, and what they name is
there.
"""

import re
import subprocess
import sys

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from scipy import stats
from tracked import list_files

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.comparison import NOT_RUN
from mdpu.pipeline.evaluate.published import PROPOSED, in_one_reading, published_cells
from mdpu.pipeline.files import REPOSITORY, read_json

REFERENCE = REPOSITORY / "results" / "reference"
ENDS = "md|py|smk|yaml|j2|rst|toml|sh"
TEXTS = {
    name: (REPOSITORY / name).read_text(encoding="utf-8")
    for name in list_files("--others", "--exclude-standard")
    if re.fullmatch(rf"(?!results/|tests/|\.|CHANGELOG).*\.({ENDS})|run|Snakefile", name)
}
SUMMARIES = ["README.md", "ARTIFACT.md", "docs/explanation/article.md"]
VERDICTS = ("reproduced", "close", "inconclusive", "differs")
COUNTS = (
    r"\b(\d+)(?: of the \d+ numbers)? reproduced, (\d+) close, (\d+) inconclusive[^|\d]* and (\d+) "
    r"(?:that )?differ"
)
LISTED = r"\b(\d+), (\d+), (\d+) and (\d+)\b"  # the same without words
AXES = ["dataset", "tuple_size", "n", "prior"]


def compared(folder: str = "") -> pd.DataFrame:
    """Return the shipped comparisons of URE, ReLU and ABS, each published number once."""
    rows = pd.read_csv(REFERENCE / folder / "comparison.csv", dtype={"prior": str})
    return in_one_reading(rows[rows["verdict"] != NOT_RUN]).query("method in @PROPOSED")


def counts(rows: pd.DataFrame) -> tuple[int, ...]:
    return tuple(int((rows["verdict"] == name).sum()) for name in VERDICTS)


def found(pattern: str, text: str) -> list[tuple[int, ...]]:
    shown = re.sub(r"<!-- .*? -->", "", text)
    words = " ".join(shown.replace(" are ", " ").split())
    return [tuple(map(int, numbers)) for numbers in re.findall(pattern, words)]


def ahead(*pairs: tuple[pd.Series, pd.Series]) -> tuple[int, int]:
    leads = pd.concat([(first - second).dropna() for first, second in pairs])
    return int((leads > 0).sum()), len(leads)


def known_shares() -> set[tuple[int, ...]]:
    """Return the pairs (k, n) of "k of n" that follow from the rows."""
    claims = pd.read_csv(REFERENCE / "claims.csv")
    run = compared()
    published = (
        published_cells()
        .query("method in @PROPOSED")
        .set_index([*AXES, "method"])["published_mean"]
    )
    shares = {
        pair
        for said in [*claims["ours"], *claims["paper"]]
        for pair in found(r"^(\d+) of (\d+)$", said)
    }
    shares |= {(len(run), len(published))}
    shares |= {
        (k, len(rows))
        for rows in (run, *(own for _, own in run.groupby("method")))
        for k in counts(rows)
    }
    rows = pd.read_csv(REFERENCE / "runs.csv", dtype={"prior": str})
    rows = rows.query("selection == 'paper-reference' and variant == 'base' and loss == 'logistic'")
    judged = rows.merge(run[["dataset", *AXES[1:], "method"]])
    shares |= {(int((judged["precision"] == "float32").sum()), len(judged))}
    # of tables
    means = (
        rows.groupby([*AXES, "method"])["accuracy"]
        .mean()
        .unstack("method")
        .dropna(subset="siamese")
    )
    as_published = means.drop("emnist-letters").rename({"emnist-letters-a-i": "emnist-letters"})
    highest = published_cells().groupby(AXES)["published_mean"].max()
    shares |= {
        ahead((means["bag-relu"], means[[*PROPOSED]].max(axis=1))),
        ahead((as_published["bag-relu"], highest)),
    }
    for cells in (means[[*PROPOSED]].stack(), published):
        size = cells.unstack("tuple_size")
        prior = cells.unstack("prior")
        shares |= {
            ahead((size[3], size[2])),
            ahead((prior["0.4"], prior["0.5"]), (prior["0.5"], prior["0.6"])),
        }
    return shares


def near_priors() -> tuple[int, int]:
    """Return in how many runs the prior that `bag-free` estimates is near the true one."""
    runs = pd.read_csv(REFERENCE / "bags.csv")
    runs = runs[(runs["method"] == "bag-free") & (runs["variant"] == "base")]
    return ahead((0.03 - (runs["estimated_prior"] - runs["prior"]).abs(), 0 * runs["prior"]))


def test_the_headline_has_the_same_counts_everywhere():
    """In the shipped page, which `./run demo` reads, and in the documents; other readings are in
    one table.
    """
    readings = found(
        r"\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", TEXTS["docs/explanation/readings.md"]
    )
    demo = subprocess.run(
        [sys.executable, "run", "demo"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    here = counts(compared())
    own = counts(compared("own-split"))
    assert found(COUNTS, demo.stdout) == [here]
    page = (REFERENCE / "report.html").read_text(encoding="utf-8")
    apart = re.search(r"(\d+) numbers were run in our own split.*", page)
    assert int(apart[1]) == sum(own)
    assert found(COUNTS, apart[0]) == [own]
    for name in (*SUMMARIES, "docs/explanation/findings.md"):
        said = {*found(COUNTS, TEXTS[name]), *found(LISTED, TEXTS[name])}
        assert said <= {here, *readings} and (here in said or "findings" in name), name


@pytest.mark.parametrize("name", SUMMARIES)
def test_shares_are_those_of_the_rows(name):
    said = {*found(r"(?<![\d,.])(\d+) of (?:the |its )?(\d+)(?![\d,.]*\d)", TEXTS[name])}
    assert said and said <= known_shares() | {near_priors()}


def test_the_file_of_verdicts_says_of_the_protocol_what_the_comparison_says():
    numbers = read_json(REFERENCE / "verdicts.json")["numbers"]
    of_protocol = [number for number in numbers if number["reading"] == "protocol"]
    comparison = pd.read_csv(REFERENCE / "comparison.csv").set_index("cell")
    assert len(of_protocol) == len(compared())
    for number in of_protocol:
        row = comparison.loc[number["address"].removeprefix("#")]
        assert (number["verdict"], number["trials"]) == (row["verdict"], row["trials"])
        assert number["ours"]["mean"] == pytest.approx(row["mean"], abs=1e-3)


def test_sentences_about_cifar_10_are_of_its_runs():
    runs = pd.read_csv(REFERENCE / "runs.csv").query("dataset == 'own-cifar-10'")
    assert set(runs["last_epoch"]) == {100}
    assert set(runs["precision"]) == {"tf32"}
    assert len(runs) == 9
    own_split = load_config([REPOSITORY / "config" / "own-split.yaml"])
    dataset = own_split["definitions"]["datasets"]["own-cifar-10"]
    training, test = (sum(dataset["counts"][part].values()) for part in ("train", "test"))
    assert f"{training:,} training images" in dataset["title"]
    findings = TEXTS["docs/explanation/findings.md"]
    assert (
        f"It has {training:,} of the 50,000 training images and {test:,} of the 10,000 test images."
        in findings
    )
    for said in (TEXTS["docs/explanation/article.md"], own_split["about"]):
        assert f"{training:,} of its 50,000 training" in said


def test_sentences_about_the_forecasts_of_cifar_10_are_of_the_rows():
    said = " ".join(TEXTS["docs/explanation/readings.md"].split())
    (network,) = re.findall(r"(?m)^NETWORK = ([\d.]+)$", TEXTS["benchmarks/forecasts.py"])
    assert f"adds {network} points of deviation" in said
    dataset = load_config([REPOSITORY / "config" / "own-split.yaml"])["definitions"]["datasets"][
        "own-cifar-10"
    ]
    counts = dataset["counts"]["test"]
    constant = 100 * max(counts.values()) / sum(counts.values())
    assert f"Each begins below the {constant:.1f} % that the constant answer has." in said
    forecasts = pd.read_csv(REFERENCE / "forecasts.csv", dtype={"prior": str}).query(
        "dataset == 'cifar-10'"
    )
    runs = pd.read_csv(REFERENCE / "runs.csv", dtype={"prior": str}).query(
        "dataset == 'own-cifar-10'"
    )
    scored = forecasts.merge(runs[["tuple_size", "n", "prior", "method"]])
    assert len(scored) == 2 * len(runs)
    assert (scored["low"] < constant).all()


def test_sentences_about_runs_of_a_gpu_are_of_the_rows():
    rows = pd.read_csv(REFERENCE / "gpu" / "mnist.csv")
    full = rows[rows["cpu_precision"] == "float32"]
    said = " ".join(TEXTS["docs/explanation/performance.md"].split())
    assert f"{len(rows)} runs of URE, ReLU and ABS on MNIST were trained on an NVIDIA H100" in said
    assert (
        f"In {len(full)} pairs both are in float32. In {len(rows) - len(full)}, trials 4 and 5,"
        in said
    )
    assert set(rows.loc[rows["cpu_precision"] == "bfloat16", "trial"].str[-1]) == {"4", "5"}
    assert set(rows["gpu_precision"]) == {"float32"}
    assert set(rows["torch"]) == set(re.findall(r"\(torch ([\d.]+)\), each with the key", said))
    apart = full.groupby("method")["difference"].agg(["mean", "sem", "size"])
    sure = apart["mean"] / apart["sem"] > stats.t.ppf(0.975, apart["size"] - 1)
    assert sure.to_dict() == {"abs": True, "relu": False, "ure": False}


def test_commands_and_files_that_texts_name_are_there():
    """But for files of a commit that is named with them, and files that a page makes."""
    commands = {
        "NAME",
        *re.findall(r'"(\w+)"', TEXTS["mdpu/pipeline/start.py"]),
        *(path.stem for path in REPOSITORY.glob("config/*.yaml")),
    }
    folders = "tests|docs|mdpu|workflow|benchmarks|examples|report|profiles|envs"
    file = re.compile(
        rf"(?<![\w/<.])((?:{folders})/[\w/.-]+\.(?:{ENDS}|csv|json|html|svg))\b(?!`? of\s+commit)"
    )
    for name, text in TEXTS.items():
        assert {*re.findall(r"(?m)(?:^ *|`)\./run ([a-z][a-z-]*)\b", text)} <= commands, name
        lost = {
            path
            for path in file.findall(text)
            if not (REPOSITORY / path).exists() and "_build" not in path
        }
        assert lost == set() or "/how-to/add-" in name, name


# Words of the builders, and turns of phrase that need a second reading.
UNWANTED = (
    r"rooms?|recipes?|seals?|sealed|fingerprints?|one's own|for ever|of which a|is told|are "
    r"told|mend"
)


def test_prose_is_plain_and_comments_begin_with_a_thing():
    """With "what ..." at its beginning, a comment makes the reader wait for what it is about."""
    for name, text in TEXTS.items():
        if name.endswith(".md"):
            parts = (
                part
                for token in MarkdownIt().enable("table").parse(text)
                for part in token.children or []
            )
            words = " ".join(part.content for part in parts if part.type == "text")
            assert re.findall(rf"\b(?:{UNWANTED})\b", words) == [], name
        elif not name.endswith(".rst") and not name.startswith("docs/tutorials/"):
            assert re.findall(r"(?m)(?:^|\s)# ?[Ww]hat [^?\n]*$", text) == [], name
