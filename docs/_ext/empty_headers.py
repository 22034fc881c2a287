"""Header cells without text become plain cells: a reader of the screen would announce a header that
says nothing.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

EMPTY = re.compile(r"<th class=\"[^\"]*head[^\"]*\">\s*<p></p>\s*</th>")


def replace_empty(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Rewrite the body of one page."""
    if "body" in context:
        context["body"] = EMPTY.sub("<td></td>", context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the rewriting."""
    app.connect("html-page-context", replace_empty)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
