"""The documents hold the numbers of results/reference, and none of ours that was typed by hand."""

from __future__ import annotations

import re
import sys

import pytest

from mdpu.pipeline.files import REPOSITORY

TEMPLATES = REPOSITORY / "docs" / "_templates"
FINDINGS = REPOSITORY / "docs" / "explanation" / "findings.md"
BENCHMARKS = str(REPOSITORY / "benchmarks")


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, BENCHMARKS)
    import write_documents

    yield write_documents
    sys.path.remove(BENCHMARKS)


@pytest.fixture(scope="module")
def written(script):
    return script.written(script.Reference())


@pytest.mark.parametrize(
    "document",
    [
        "README.md",
        "docs/explanation/article.md",
        "docs/explanation/findings.md",
        "docs/explanation/performance.md",
        "docs/explanation/protocol.md",
        "docs/how-to/estimator.md",
    ],
)
def test_a_document_is_what_the_reference_gives(written, document):
    """If not, run `python benchmarks/write_documents.py`."""
    path = REPOSITORY / document
    assert path in written
    assert path.read_text(encoding="utf-8") == written[path]


def test_every_document_with_numbers_is_compared(written):
    assert len(written) == 6
    assert {path.stem.removesuffix(".md") for path in TEMPLATES.glob("*.j2")} == {
        *("article", "findings"),
        *(name for path in written for name in re.findall(r"<!-- end of ([a-z-]+) -->", written[path])),
    }


def test_every_accuracy_of_ours_in_a_table_follows_the_rows(script, written):
    """Other rows, other numbers: what stays was typed by hand, or is the paper's."""

    class Moved(script.Reference):
        @property
        def cells(self):
            return super().cells.assign(mean=lambda cells: cells["mean"] - 17.77, std=9.87)

    environment = script.environment(Moved())
    environment.globals["checked"] = bool
    moved = script.reflow(environment.get_template("findings.md.j2").render())
    ours = 0
    for before, after in zip(tables(written[FINDINGS]), tables(moved), strict=True):
        if "finish" in before[0]:
            continue  # measured by benchmarks/finishing.py
        for old, new in zip(before, after, strict=True):
            assert len(old) == len(new)
            if not any("paper" in cell for cell in old[:2]):
                numbers = [pair for pair in zip(old, new, strict=True) if "±" in pair[0]]
                assert all(left != right for left, right in numbers), old
                ours += len(numbers)
    assert ours > 500


def tables(text: str) -> list[list[list[str]]]:
    """Return the Markdown tables of a text as rows of cells."""
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    ]


def test_no_number_of_a_result_is_in_the_template_of_the_article():
    """What is left are numbers of the setting, of lists and of references."""
    text = (TEMPLATES / "article.md.j2").read_text(encoding="utf-8").split("## References")[0]
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\]\(.*?\)|^\d\. ", "", text, flags=re.DOTALL | re.MULTILINE)
    setting = ["over 100\ntraining epochs", "MNIST at prior 0.5", "class numbers 1 to 9", "Theorem 3", "and prior 0.4"]
    setting += ["article.md.j2", "CIFAR-10", "bfloat16", "Figures 3 to 5"]
    for words in setting:
        assert words in text
        text = text.replace(words, "")
    assert re.findall(r"\d+", text) == []


def test_a_sentence_that_does_not_hold_stops_the_writing(script):
    template = script.environment(script.Reference()).from_string("{{ checked(1 > 2) }}One is more than two.")
    with pytest.raises(AssertionError, match="not true of these rows"):
        template.render()


def test_a_part_stands_between_its_marks(script):
    text = "before\n<!-- rows -->\nold\n<!-- end of rows -->\nafter\n"
    new = script.with_part(text, "rows", "new\n")
    assert new == "before\n<!-- rows -->\n\nnew\n\n<!-- end of rows -->\nafter\n"
    assert script.with_part(new, "rows", "new\n") == new
    with pytest.raises(AssertionError, match="<!-- others --> is not there once"):
        script.with_part(text, "others", "new\n")


def test_paragraphs_are_filled_and_tables_code_and_formulas_left_alone(script):
    table = "| a | b |\n| --- | --- |\n| " + "long " * 40 + "| 1 |"
    code = "```sh\na  b\n\n\tc\n```"
    formula = "$$\n" + "x + " * 40 + "\n$$"
    text = (
        f"# Title\n\nA short\nline.\n\n{table}\n\n{code}\n\n{formula}\n\n- one\n  two\n- " + "word " * 40 + "$a + b$\n"
    )
    filled = script.reflow(text)
    assert filled.startswith(f"# Title\n\nA short line.\n\n{table}\n\n{code}\n\n{formula}\n\n- one two\n- word")
    assert max(len(line) for line in filled.splitlines() if not line.startswith(("|", "x"))) <= 120
    assert script.reflow(filled) == filled


def test_a_formula_in_a_line_is_not_broken(script):
    for length in range(100, 120):
        assert "$a + b$" in script.reflow("x" * length + " $a + b$ and more")


def test_numbers_are_listed_in_words(script):
    facts = script.facts
    assert facts.listed([]) == ""
    assert facts.listed(["a"]) == "a"
    assert facts.numbers([1, 2.25, 3]) == "1.0, 2.2 and 3.0"


def test_verdicts_are_told_in_words(script):
    reference = script.Reference()
    cells = reference.compared(dataset="mnist").head(3).assign(verdict=["reproduced", "close", "inconclusive"])
    words = script.facts.verdicts_in_words
    assert words(reference, cells) == "1 is reproduced, 1 close, 1 inconclusive and 0 differ"
    cells = cells.assign(verdict="differs", difference=[1.04, -2.26, 3.0])
    told = words(reference, cells.head(1))
    assert told.startswith("0 are reproduced, 0 close, 0 inconclusive and 1 differs: ") and "(+1.0)" in told
    assert "3 differ: " in words(reference, cells) and "(-2.3)" in words(reference, cells)


def test_the_bold_differences_of_the_open_choices_are_counted(written):
    text = written[REPOSITORY / "docs" / "explanation" / "protocol.md"]
    (bold, differences) = re.search(r"for (\d+) of the (\d+) differences", text).groups()
    studies = [table for table in tables(text) if table[0][1] == "protocol"]
    assert len(studies) == 2
    cells = [cell for table in studies for row in table[3:] for cell in row[3:] if "±" in cell]
    assert (len(cells), sum(cell.startswith("**") for cell in cells)) == (int(differences), int(bold))
