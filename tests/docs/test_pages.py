"""Pages: code is run, or checked where it takes hours; tables are those of the rows; formulas are
whole.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sklearn.datasets import load_digits
from tracked import list_files

from mdpu.data import draw_split
from mdpu.pipeline.cli import _parser
from mdpu.pipeline.config import as_yaml, check_config, load_config, merge
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan

PAGES = sorted(
    name for name in list_files("--others", "--exclude-standard") if name.endswith(".md")
)
TEXTS = {page: (REPOSITORY / page).read_text(encoding="utf-8") for page in PAGES}
WITH_FORMULAS = MarkdownIt().enable("table").use(dollarmath_plugin, allow_space=False)
# Pages whose blocks are run in their order, as a reader would: tests/workflow, tests/pipeline/data
# and show, and below.
ELSEWHERE = [
    "config/README.md",
    *(f"docs/how-to/add-{one}.md" for one in ("dataset", "kind", "method", "network")),
]
# Programs that are not the project's: what they are given is not checked.
TOOLS = ("cat", "cd", "git", "pip", "python", "ruff", "snakefmt", "source", "ssh", "uv", "$EDITOR")
BLOCKS = {  # by page and line: language and text; Sphinx's directives are run by the build
    (page, token.map[0] + 1): ((token.info.split() or [""])[0], token.content)
    for page in PAGES
    for token in MarkdownIt().parse(TEXTS[page])
    if token.type == "fence" and token.map and not token.info.startswith("{")
}


def of(*languages: str, page: str | None = None) -> list[str]:
    """Return the blocks of languages, of one page or of all pages that no other test runs."""
    own = [
        (place, text) for (place, _), (language, text) in BLOCKS.items() if language in languages
    ]
    return [text for place, text in own if (place == page if page else place not in ELSEWHERE[1:])]


def test_blocks_are_of_languages_that_are_tested():
    known = {"python", "yaml", "sh", "bash"}
    known |= {"mermaid", "text", "diff", ""}  # to be read; without a language: a listing
    assert {language for language, _ in BLOCKS.values()} <= known


RUNNING = [
    pytest.param(page, marks=pytest.mark.slow if page.endswith("estimator.md") else ())
    for page in PAGES
    if of("python", page=page) and page not in ELSEWHERE
]


@pytest.mark.parametrize("page", RUNNING)
@pytest.mark.filterwarnings("ignore")
def test_python_runs(page):
    """A page takes tuples, unlabeled images and new images for granted, here of digits."""
    images, digits = load_digits(return_X_y=True)
    split = draw_split(
        np.where(digits[:1200] % 2 == 0, 1, -1), 2, prior=0.5, n=200, n_unlabeled=200, trial=0
    )
    images = (images / 16).astype(np.float32)
    names = {
        "tuples": images[split.tuples],
        "unlabeled": images[split.unlabeled],
        "new_images": images[1200:],
    }
    for text in of("python", page=page):
        exec(compile(text, page, "exec"), names)


@pytest.mark.parametrize("text", of("yaml"))
def test_a_configuration_is_valid(text, tmp_path):
    (tmp_path / "overlay.yaml").write_text(text, encoding="utf-8")
    assert Plan(load_config([tmp_path / "overlay.yaml"])).runs is not None


@pytest.mark.slow
def test_a_method_and_a_network_are_added_as_their_pages_say(fresh_clone):
    """In a clone, and trained; the listings of the page on networks are lines to put into files
    that are there.
    """
    page = "docs/how-to/add-network.md"
    package = fresh_clone.folder / "mdpu"
    (package / "methods" / "ber.py").write_text(of("python", page="docs/how-to/add-method.md")[0])
    for file, before, text in (
        ("settings.py", '    "mlp": {', of("", page=page)[0]),
        ("networks.py", "def make_network(", of("python", page=page)[0] + "\n\n"),
        ("networks.py", "    elif isinstance(network, nn.Module):", of("", page=page)[1]),
    ):
        assert (package / file).read_text().count(before) == 1
        (package / file).write_text((package / file).read_text().replace(before, text + before))
    program = (
        "import numpy as np\nfrom mdpu.data import draw_split\nfrom mdpu.settings import Settings, "
        "Task\n"
        "from mdpu.train import train\nimages = np.random.default_rng(0).random((60, 8, 8), "
        "dtype=np.float32)\n"
        "sample = draw_split(np.repeat([1, -1], 30), 2, 0.5, 20, 20, 0)\n"
        "settings = Settings(epochs=2, batch_size=10, network='small-cnn', "
        "architecture={'channels': [4, 4]})\n"
        "(model,) = train(Task('ber', 2, 0.5), images, [sample], [0], settings)\n"
        "assert np.isfinite(model.decision_function(images)).all()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(fresh_clone.folder)}
    subprocess.run(
        [sys.executable, "-c", program], cwd=fresh_clone.folder, env=environment, check=True
    )


@pytest.mark.parametrize("text", of("sh", "bash"))
def test_commands_exist_and_take_what_they_are_given(text):
    known = re.findall(
        r'"(\w+)"', (REPOSITORY / "mdpu/pipeline/start.py").read_text(encoding="utf-8")
    )
    known += ["paper", *(path.stem for path in (REPOSITORY / "config").glob("*.yaml"))]
    for command in re.split(r"\n| && ", re.sub(r"\\\n\s*", " ", text)):
        words = shlex.split(re.sub(r"^([A-Z_]+=\S+ )+", "", command), comments=True)
        match words:
            case []:
                pass
            case ["./run", *arguments]:
                name = arguments[0] if arguments and not arguments[0].startswith("-") else "quick"
                assert name in known
                if name in ("quick", "paper"):
                    check_snakemake(arguments)
            case ["snakemake", *arguments]:
                check_snakemake(arguments)
            case ["python", "-m", "mdpu", *arguments]:
                _parser().parse_args(arguments)
            case [tool, *arguments]:
                assert tool in (*TOOLS, "sbatch"), words
                scripts = [word for word in arguments if word.endswith((".py", ".sh"))]
                assert [script for script in scripts if not (REPOSITORY / script).exists()] == []


def check_snakemake(arguments: list[str]) -> None:
    """Check that profiles exist, and that values, and those files of a configuration that exist,
    make a plan.
    """

    def values_of(option: str) -> list[str]:
        after = arguments[arguments.index(option) + 1 :] if option in arguments else []
        return after[
            : next((place for place, word in enumerate(after) if word.startswith("-")), len(after))
        ]

    assert all(
        Path(REPOSITORY, profile, "profile.yaml").exists() for profile in values_of("--profile")
    )
    files = [
        REPOSITORY / file for file in values_of("--configfile") if (REPOSITORY / file).exists()
    ]
    values = dict(text.split("=", 1) for text in values_of("--config"))
    config = merge(load_config(files), as_yaml(values))
    check_config(config)
    Plan(config)


def test_the_documents_have_the_tables_of_the_rows(monkeypatch):
    """If not, run `python docs/tables.py`."""
    monkeypatch.syspath_prepend(REPOSITORY / "docs")
    import tables

    made = tables.tables()
    assert [
        name for name in tables.DOCUMENTS if tables.written(TEXTS[name], made) != TEXTS[name]
    ] == []
    marked = [
        re.findall(r"<!-- (?:table|n): ([a-z0-9-]+) -->", TEXTS[name]) for name in tables.DOCUMENTS
    ]
    assert {name for names in marked for name in names} == made.keys()


# A number that somebody measured, in a sentence: a count, points, shares, times and sizes, a ratio,
# two decimals or thousands below zero. Not a version, and not a threshold.
UNITS = "(processor )?(seconds|s|ms|minutes|hours|kB|MiB|GiB|GFLOP)"
MEASURED = re.compile(
    r"\b\d+ of (the )?\d+\b|\b\d[\d.]* points\b|\b\d+\.\d+ %|\b\d+ to \d+ %"
    rf"|\b\d[\d.]* {UNITS}\b|\b\d+\.\d+ times\b"
    r"|(?<!within )(?<!Python )\b\d+\.\d\d\b(?!\.)|-\d+,\d{3}"
)
MEASURING = [
    "README.md",
    "ARTIFACT.md",
    *(f"docs/explanation/{name}.md" for name in ("article", "findings", "readings", "performance")),
]


@pytest.mark.parametrize("page", MEASURING)
def test_a_measured_number_is_filled_in_or_its_paragraph_says_why_not(page):
    """A paragraph whose numbers no shipped row has begins with a comment, `by hand: ...`."""
    text = re.sub("<!-- table: .*?<!-- end of table -->", "", TEXTS[page], flags=re.DOTALL)
    text = re.sub("<!-- n: .*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub("```.*?```", "", text, flags=re.DOTALL)
    by_hand = [
        paragraph
        for paragraph in text.split("\n\n")
        if MEASURED.search(paragraph) and not paragraph.startswith("<!-- by hand: ")
    ]
    assert by_hand == []


@pytest.mark.parametrize("page", [page for page in PAGES if "$" in TEXTS[page]])
def test_code_hosts_see_a_formula_whole(page):
    """They may look for formulas after Markdown has, so nothing in a formula may be emphasis, an
    escape or a list.
    """
    tokens = MarkdownIt().enable("table").parse(TEXTS[page])
    texts = [
        inner.content for token in tokens for inner in token.children or [] if inner.type == "text"
    ]
    outer = WITH_FORMULAS.parse(TEXTS[page])
    for formula in (inner for token in outer for inner in (token, *(token.children or []))):
        inline = formula.type == "math_inline"
        written = f"${formula.content}$" if inline else formula.content.strip()
        for line in written.splitlines() if formula.type.startswith("math_") else ():
            holding = [text for text in texts if line in text]
            assert holding, (
                f"{line} is not whole: look for _ after a brace, \\\\, \\, and a line that begins "
                "with -"
            )
            before = {text[: text.index(line)][-1:] for text in holding}
            assert not inline or before & {"", " ", "("}, (
                f"{line} needs a space or a parenthesis before it"
            )


def test_each_warning_of_the_library_has_its_section_by_its_words():
    library = [path for path in (REPOSITORY / "mdpu").rglob("*.py") if "pipeline" not in path.parts]
    nodes = [node for path in library for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    said = {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    headings = re.findall("^### (.*)", TEXTS["docs/how-to/warnings.md"], re.MULTILINE)
    assert [heading for heading in headings if not any(heading in text for text in said)] == []
    warned = [
        node
        for node in nodes
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn"
    ]
    texts = [
        " ".join(part.value for part in ast.walk(node) if getattr(part, "value", 0) in said)
        for node in warned
    ]
    assert [
        text for text in texts if text and not any(heading in text for heading in headings)
    ] == []
