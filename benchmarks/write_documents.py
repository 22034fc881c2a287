"""Write the documents' numbers from results/reference: none of ours in their templates is typed by hand.

    python benchmarks/write_documents.py

A template NAME.md.j2 of docs/_templates is a page of that name in docs/explanation, or the part of another document
between `<!-- NAME -->` and `<!-- end of NAME -->`. A test compares them with what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from documents import facts, open_choices
from documents.markdown import reflow
from documents.rows import Reference, counted
from documents.tables import Tables, shown
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mdpu.pipeline.files import REPOSITORY

TEMPLATES = REPOSITORY / "docs" / "_templates"
PAGES = ("article", "findings")
# Parts of documents by template.
PARTS = {
    "what-came-out": REPOSITORY / "README.md",
    "sensitivity-results": REPOSITORY / "docs" / "explanation" / "protocol.md",
    "precision-results": REPOSITORY / "docs" / "explanation" / "performance.md",
    "calibration-results": REPOSITORY / "docs" / "how-to" / "estimator.md",
}

# The claims of the article that are told in its table, in this order.
ARTICLE_CLAIMS = (
    "ure-risk-goes-negative",
    "ure-accuracy-falls-with-its-risk",
    "corrected-objective-stays-non-negative",
    "corrected-risk-stays-non-negative",
    "corrected-accuracy-holds",
    "corrected-beats-ure",
    "corrected-beats-ure-significantly",
    "proposed-beat-baselines",
    "corrected-varies-less",
    "corrected-grows-more-steeply",
    "corrected-grows-significantly-more-steeply",
    "accuracy-grows-with-n",
    "triples-beat-pairs",
    "lower-prior-is-easier",
    "loss-hardly-matters",
    "every-loss-beats-the-baselines",
)


class _Lazy(dict[str, Any]):
    """Facts by group, each found when a template first asks for it."""

    def __init__(self, reference: Reference) -> None:
        super().__init__()
        self._reference = reference

    def __missing__(self, group: str) -> Any:
        find: Callable[[Reference], Any] = next(
            getattr(part, f"{group}_facts") for part in (facts, open_choices) if hasattr(part, f"{group}_facts")
        )
        self[group] = find(self._reference)
        return self[group]


def checked(condition: object) -> str:
    """Return nothing, which a template puts where a sentence without a number holds; else raise AssertionError."""
    assert condition, "a sentence of the template is not true of these rows"
    return ""


def environment(reference: Reference) -> Environment:
    """Return what renders the templates: tables, facts, and filters for numbers."""
    made = Environment(  # Markdown, and no foreign text
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,
    )
    claims = facts.claim_facts(reference.read("claims"))
    made.globals |= {
        "reference": reference,
        "table": Tables(reference),
        "found": _Lazy(reference),
        "claims": claims,
        "bag_claims": [row for row in claims.values() if row["said_by"] == "project"],
        "claims_of_the_article": [claims[name] for name in ARTICLE_CLAIMS],
        "grey": facts.GREY,
        "datasets": facts.listed([reference.title(name) for name in facts.GREY]),
        "everywhere": facts.DATASETS,
        "trials": reference.trials,
        "effects": lambda: open_choices.effect_rows(reference),
        "verdicts": lambda **axes: counted(reference.compared(**axes)),
        "verdicts_in_words": lambda **axes: facts.verdicts_in_words(reference, reference.compared(**axes)),
        "ours": lambda *names, digits=1, **options: shown(reference.cell(*names, **options), digits),
        "checked": checked,
        "numbers": facts.numbers,
    }
    made.filters["range"] = lambda values: f"{min(values):+.1f} to {max(values):+.1f}"
    for digits, name in enumerate(("whole", "one", "two")):
        made.filters[name] = f"{{:.{digits}f}}".format
    made.filters["thousands"] = "{:,}".format
    return made


def written(reference: Reference) -> dict[Path, str]:
    """Return the text of every document that has numbers, by its path."""
    made = environment(reference)
    texts = {}
    for name in PAGES:
        texts[REPOSITORY / "docs" / "explanation" / f"{name}.md"] = reflow(made.get_template(f"{name}.md.j2").render())
    for name, path in PARTS.items():
        text = texts.get(path) or path.read_text(encoding="utf-8")
        texts[path] = with_part(text, name, reflow(made.get_template(f"{name}.md.j2").render()))
    return texts


def with_part(text: str, name: str, part: str) -> str:
    """Return a document with another text between the marks of a part."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    found = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    assert len(found.findall(text)) == 1, f"{begin.strip()} is not there once"
    return found.sub(lambda _: f"{begin}\n{part}\n{end}", text)


def write(reference: Reference) -> None:
    """Write the documents."""
    for document, content in written(reference).items():
        document.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write(Reference())
