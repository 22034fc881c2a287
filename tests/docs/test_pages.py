"""Every code block of every page is run, or checked as far as it can be without running for hours."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import yaml
from markdown_it import MarkdownIt
from sklearn.datasets import load_digits
from tracked import list_files

from mdpu.data import draw_split
from mdpu.learn import Settings, fit
from mdpu.pipeline.cli import app
from mdpu.pipeline.config import load_config
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.train import law_of, task_of

PAGES = sorted(name for name in list_files("--others", "--exclude-standard") if name.endswith(".md"))
# Pages whose blocks another test runs in their order, as a reader would.
ELSEWHERE = {
    "docs/how-to/add-dataset.md": "tests/pipeline/data/test_add_dataset_doc.py",
    "docs/how-to/add-kind.md": "tests/pipeline/experiments/test_kind.py",
    "docs/how-to/add-method.md": "tests/learn/methods/test_add_method.py",
    "docs/how-to/add-network.md": "tests/learn/test_add_network.py",
    "docs/how-to/estimator.md": "tests/test_estimator.py",
}
# Blocks that are neither run nor checked here: diagrams, and the module that `test_module.py` has.
SHOWN = {("*", "mermaid"), ("config/README.md", "python")}
# Programs that are not the project's: what they are given is not checked.
TOOLS = {"cat", "cd", "awk", "du", "export", "find", "git", "pip", "ruff", "snakefmt", "source", "ssh", "uv", "$EDITOR"}
COMMANDS = typer.main.get_command(app)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> Iterator[Block]:
    """Yield the blocks of all pages, without Sphinx's directives, which the build runs."""
    for page in PAGES:
        for token in MarkdownIt().parse((REPOSITORY / page).read_text(encoding="utf-8")):
            if token.type == "fence" and token.map and not token.info.startswith("{"):
                language, *_ = token.info.split() or [""]
                yield Block(page, token.map[0] + 1, language, token.content)


BLOCKS = list(blocks())


def of_language(*languages: str) -> list[Block]:
    """Return the blocks that no other test runs."""
    shown = {block for block in BLOCKS if {("*", block.language), (block.page, block.language)} & SHOWN}
    return [block for block in BLOCKS if block.language in languages and block not in shown]


def test_blocks_are_of_languages_that_are_tested():
    known = {"python", "yaml", "sh", "bash", "mermaid", ""}  # without a language: a listing of folders
    assert [str(block) for block in BLOCKS if block.language not in known] == []


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_pages_that_have_a_test_of_their_own_are_named_in_it(page, test):
    text = (REPOSITORY / test).read_text(encoding="utf-8")
    assert f'"{Path(page).name}"' in text or page.removeprefix("docs/") in text


# -- Python -----------------------------------------------------------------------------------------


def given() -> dict[str, Any]:
    """Return what a page takes for granted: tuples, unlabeled images and new images, here of digits."""
    images, digits = load_digits(return_X_y=True)
    labels = np.where(digits % 2 == 0, 1, -1).astype(np.int8)
    split = draw_split(labels[:1200], 2, prior=0.5, n=200, n_unlabeled=200, trial=0)
    images = (images / 16).astype(np.float32)
    return {"tuples": images[split.tuples], "unlabeled": images[split.unlabeled], "new_images": images[1200:]}


@pytest.mark.parametrize("page", sorted({block.page for block in of_language("python")} - ELSEWHERE.keys()))
def test_python_runs(page):
    names = given()
    for block in of_language("python"):
        if block.page == page:
            exec(compile(block.text, str(block), "exec"), names)


# -- configurations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [block for block in of_language("yaml") if block.page not in ELSEWHERE], ids=str)
def test_a_configuration_is_valid(block, tmp_path):
    (tmp_path / "overlay.yaml").write_text(block.text, encoding="utf-8")
    Plan(load_config([REPOSITORY / "config.yaml", tmp_path / "overlay.yaml"]))


def test_a_law_of_ones_own_in_a_configuration_is_drawn_and_trained_by(tmp_path):
    (block,) = (block for block in of_language("yaml") if block.page == "docs/explanation/laws.md")
    (tmp_path / "overlay.yaml").write_text(block.text, encoding="utf-8")
    plan = Plan(load_config([REPOSITORY / "config.yaml", tmp_path / "overlay.yaml"]))
    run = plan.runs[0]
    assert {run.law for run in plan.runs} == {"bell"} and law_of(plan, run).weights == (0, 0.5, 0.8, 1)
    images, digits = load_digits(return_X_y=True)
    split = draw_split(np.where(digits % 2 == 0, 1, -1), law_of(plan, run), float(run.prior), 2000, 500, 0)
    counts = np.bincount((digits[split.tuples] % 2 == 0).sum(axis=1), minlength=4) / 2000
    assert counts == pytest.approx(law_of(plan, run).counts(float(run.prior)), abs=0.05) and counts[0] == 0
    (model,) = fit([replace(task_of(plan, run), sample="")], images / 16, split, Settings(epochs=1), device="cpu")
    assert np.isfinite(model.history["objective"]).all()


# -- commands -----------------------------------------------------------------------------------------


def commands(block: Block) -> Iterator[list[str]]:
    """Yield the words of each command of a block."""
    for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
        for command in line.split(" && "):
            words = shlex.split(command, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # a variable for this command
                words.pop(0)
            if words:
                yield words


@pytest.mark.parametrize("block", of_language("sh", "bash"), ids=str)
def test_commands_exist_and_take_what_they_are_given(block, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    for words in commands(block):
        match words:
            case ["./run", *arguments]:
                check_run(block, arguments)
            case ["snakemake", *arguments]:
                check_snakemake(block, arguments)
            case ["python", "-m", "mdpu", *arguments]:
                check_mdpu(arguments)
            case ["python", "-m" | "-c", *_]:
                pass
            case ["python", script, *arguments]:
                check_script(block, script, arguments)
            case ["sbatch", *arguments]:
                (script,) = [word for word in arguments if word.endswith(".sh")]
                assert os.access(script, os.X_OK)
            case [tool, *_]:
                assert tool in TOOLS or Path(tool).name in TOOLS or "/bin/" in tool, words


def values_of(arguments: list[str], name: str) -> list[str]:
    """Return the words that follow an option, up to the next one."""
    if name not in arguments:
        return []
    after = arguments[arguments.index(name) + 1 :]
    end = next((place for place, word in enumerate(after) if word.startswith("-")), len(after))
    return after[:end]


def check_run(block: Block, arguments: list[str]) -> None:
    """Check that the launcher has the command, and that its configuration is one."""
    known = re.findall(r"^  \./run (?:\[)?(\w+)", (REPOSITORY / "run").read_text(encoding="utf-8"), re.MULTILINE)
    command = arguments[0] if arguments and not arguments[0].startswith("-") else "quick"
    assert command in known
    if command in ("quick", "paper"):
        check_snakemake(block, arguments)


def check_snakemake(block: Block, arguments: list[str]) -> None:
    """Check that files of a configuration exist, here or on the page, and that values make a plan."""
    written = {yaml.safe_load(other.text).get("name") for other in of_language("yaml") if other.page == block.page}
    files = [Path(file) for file in values_of(arguments, "--configfile")]
    assert all(file.exists() or file.stem in written for file in files), files
    for profile in values_of(arguments, "--profile"):
        assert (REPOSITORY / profile / "profile.yaml").exists()
    there = [REPOSITORY / "config.yaml", *(file for file in files if file.exists())]
    Plan(load_config(there, values_of(arguments, "--config")))


def check_mdpu(arguments: list[str]) -> None:
    """Let Typer read the arguments of a command, without running it."""
    if "--help" not in arguments:
        name, *rest = arguments
        COMMANDS.commands[name].make_context(name, rest)  # type: ignore[attr-defined]


def check_script(block: Block, script: str, arguments: list[str]) -> None:
    """Check that a script exists, and that its text, or that of a module beside it that it imports, has the options."""
    if script in re.findall(r"^```python (\S+)", (REPOSITORY / block.page).read_text(), re.M):
        return
    path = REPOSITORY / script
    text = path.read_text(encoding="utf-8")
    imported = [path.with_name(f"{name}.py") for name in re.findall(r"^(?:import|from) (\w+)", text, re.M)]
    text += "".join(module.read_text(encoding="utf-8") for module in imported if module.exists())
    assert all(f'"{word}"' in text for word in arguments if word.startswith("--")), arguments
