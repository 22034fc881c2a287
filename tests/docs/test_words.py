"""Sentences of the documents: their numbers are those of the shipped rows, and what they name is there."""

from __future__ import annotations

import re
import subprocess
import sys

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from tracked import list_files

from mdpu.pipeline.evaluate.published import PROPOSED, in_one_reading, published_cells
from mdpu.pipeline.files import REPOSITORY

REFERENCE = REPOSITORY / "results" / "reference"
TEXTS = {
    name: (REPOSITORY / name).read_text(encoding="utf-8")
    for name in list_files("--others", "--exclude-standard")
    if re.fullmatch(r"(?!results/|tests/|\.).*\.(md|py|smk|yaml|j2|rst|toml|sh)|run|Snakefile", name)
}
PAGES = sorted(name for name in TEXTS if name.endswith(".md") and name != "CHANGELOG.md")
SUMMARIES = ("README.md", "ARTIFACT.md", "docs/explanation/article.md", "docs/explanation/findings.md")
COUNTS = re.compile(
    r"\b(\d+)(?: of the \d+ numbers)? reproduced, (\d+) close, (\d+) inconclusive[^|\d]* and (\d+) (?:that )?differ"
)
LISTED = re.compile(r"\b(\d+), (\d+), (\d+) and (\d+)\b")  # the same without words


def proposed(folder: str = "") -> pd.DataFrame:
    """Return the shipped comparisons of URE, ReLU and ABS, each published number once."""
    rows = pd.read_csv(REFERENCE / folder / "comparison.csv", dtype={"prior": str})
    return in_one_reading(rows).query("method in @PROPOSED")


def verdicts(rows: pd.DataFrame) -> tuple[int, ...]:
    return tuple(int((rows["verdict"] == name).sum()) for name in ("reproduced", "close", "inconclusive", "differs"))


def ahead(first: pd.Series, second: pd.Series) -> tuple[int, int]:
    both = (first - second).dropna()
    return int((both > 0).sum()), len(both)


def known_shares() -> set[tuple[int, int]]:
    """Return the pairs (k, n) of "k of n" that follow from the rows."""
    claims = pd.read_csv(REFERENCE / "claims.csv")
    said = pd.concat([claims["ours"], claims["paper"]]).str.extract(r"^(\d+) of (\d+)$").dropna().astype(int)
    published, run = published_cells().query("method in @PROPOSED"), proposed()
    shares = {*map(tuple, said.to_numpy().tolist()), (len(run), len(published)), (len(published), 252)}
    for rows in (run, *(own for _, own in run.groupby("method"))):
        shares |= {(count, len(rows)) for count in verdicts(rows)}
    axes = ["dataset", "tuple_size", "n", "prior"]
    rows = pd.read_csv(REFERENCE / "runs.csv", dtype={"prior": str}).query("variant == 'base' and loss == 'logistic'")
    means = rows.groupby([*axes, "method"])["accuracy"].mean().unstack("method")
    means = means[means["siamese"].notna()]  # the rows of Tables II to V
    best, highest = means[[*PROPOSED]].max(axis=1), published_cells().groupby(axes)["published_mean"].max()
    renamed = means["bag-relu"].drop("emnist-letters").rename({"emnist-letters-a-i": "emnist-letters"})
    shares |= {ahead(means["bag-relu"], best), ahead(renamed, highest)}
    for cells in (means[[*PROPOSED]].stack(), published.set_index([*axes, "method"])["published_mean"]):
        size, prior = cells.unstack("tuple_size"), cells.unstack("prior")
        steps = ahead(prior["0.4"], prior["0.5"]), ahead(prior["0.5"], prior["0.6"])
        shares |= {ahead(size[3], size[2]), (sum(k for k, _ in steps), sum(n for _, n in steps))}
    return shares


def test_the_headline_has_the_same_counts_everywhere():
    """In the shipped page, which `./run demo` reads, and in the documents; other readings are in one table."""
    table = re.findall(r"\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", TEXTS["docs/explanation/readings.md"], re.MULTILINE)
    readings = {tuple(map(int, row)) for row in table}
    here = verdicts(proposed())
    assert here in readings
    demo = subprocess.run([sys.executable, "run", "demo"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    own = proposed("own-split")
    assert [tuple(map(int, found)) for found in COUNTS.findall(demo.stdout)] == [here, verdicts(own)]
    assert f" {len(own)} were run" in demo.stdout
    for name in SUMMARIES:
        text = " ".join(TEXTS[name].replace(" are ", " ").split())
        said = {tuple(map(int, found)) for found in (*COUNTS.findall(text), *LISTED.findall(text))}
        assert here in said or name == "docs/explanation/findings.md", name
        assert said <= readings, name


@pytest.mark.parametrize("name", SUMMARIES[:3])
def test_shares_are_those_of_the_rows(name):
    said = re.findall(r"(?<![\d,.])(\d+) of (?:the |its )?(\d+)(?![\d,.]\d|\d)", " ".join(TEXTS[name].split()))
    estimates = {(200, 264)}  # of the prior, which the findings have from the runs' histories
    assert said
    assert {tuple(map(int, pair)) for pair in said} - known_shares() - estimates == set()


def test_commands_that_texts_name_exist():
    known = {"NAME", *re.findall(r'"(\w+)"', TEXTS["run"]), *(path.stem for path in REPOSITORY.glob("config/*.yaml"))}
    named = {
        (name, word)
        for name, text in TEXTS.items()
        for word in re.findall(r"(?m)(?:^ *|`)\./run ([a-z][a-z-]*)\b", text)
    }
    assert len(named) > 50
    assert {(name, word) for name, word in named if name != "CHANGELOG.md" and word not in known} == set()


def test_files_that_texts_name_are_there():
    """But for those of a commit that is named with them, and those that a page makes."""
    folders = "tests|docs|mdpu|workflow|benchmarks|examples|report|profiles|envs"
    ends = "py|md|smk|sh|csv|json|j2|yaml|html|svg"
    pattern = re.compile(rf"(?<![\w/<.])((?:{folders})/[\w/.-]+\.(?:{ends}))\b(?!`? of\s+commit)")
    for name, text in TEXTS.items():
        if name == "CHANGELOG.md" or "/how-to/add-" in name:
            continue
        lost = {file for file in pattern.findall(text) if not (REPOSITORY / file).exists()}
        assert {file for file in lost if "<" not in file and "_build" not in file} == set(), name


# Words of the builders, not of the readers (STYLE), and turns of phrase that need a second reading.
UNWANTED = r"rooms?|recipes?|seals?|sealed|fingerprints?|one's own|for ever|of which a|is told|are told|mend"


@pytest.mark.parametrize("name", PAGES)
def test_prose_is_plain(name):
    tokens = MarkdownIt().enable("table").parse(TEXTS[name])
    words = " ".join(part.content for token in tokens for part in token.children or [] if part.type == "text")
    assert re.findall(rf"\b(?:{UNWANTED})\b", words) == []


def test_comments_begin_with_a_thing():
    """A comment says first what it is about; "what ..." at its beginning makes the reader wait for it."""
    code = [name for name in TEXTS if not name.endswith((".md", ".rst")) and not name.startswith("docs/tutorials/")]
    assert [name for name in code if re.search(r"(?m)(^|\s)# ?[Ww]hat [^?\n]*$", TEXTS[name])] == []
