"""The article holds the numbers of results/reference, and none that was typed by hand."""

from __future__ import annotations

import re
import runpy

import pytest

from mdpu.files import REPOSITORY

SCRIPT = REPOSITORY / "benchmarks" / "write_article.py"
PAGE = REPOSITORY / "docs" / "explanation" / "article.md"
TEMPLATE = REPOSITORY / "docs" / "_templates" / "article.md.j2"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


def test_the_page_is_what_the_reference_gives(script):
    """If not, run `python benchmarks/write_article.py`."""
    assert PAGE.read_text(encoding="utf-8") == script["render"]()


def test_no_number_of_a_result_is_in_the_template():
    """What is left are numbers of the setting, of lists and of references."""
    text = TEMPLATE.read_text(encoding="utf-8").split("## References")[0]
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\]\(.*?\)|^\d\. ", "", text, flags=re.DOTALL | re.MULTILINE)
    setting = ["over 100\ntraining epochs", "MNIST at prior 0.5", "class numbers 1 to 9", "Theorem 3", "and prior 0.4"]
    setting += ["article.md.j2", "CIFAR-10", "bfloat16"]
    for words in setting:
        assert words in text
        text = text.replace(words, "")
    assert re.findall(r"\d+", text) == []


def test_paragraphs_are_filled_and_tables_left_alone(script):
    table = "| a | b |\n| --- | --- |\n| " + "long " * 40 + "| 1 |"
    text = f"# Title\n\nA short\nline.\n\n{table}\n\n- one\n  two\n- " + "word " * 40 + "\n"
    filled = script["reflow"](text)
    assert filled.startswith(f"# Title\n\nA short line.\n\n{table}\n\n- one two\n- word")
    assert max(len(line) for line in filled.splitlines() if "|" not in line) <= 120
    assert script["reflow"](filled) == filled
