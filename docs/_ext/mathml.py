"""Formulas of the site as MathML, converted when it is built; one that cannot be is a warning, on
which the strict build fails.
"""

from __future__ import annotations

from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator
from tex_to_mathml import to_mathml

LOGGER = logging.getLogger(__name__)


def convert(node: nodes.math | nodes.math_block, display: str) -> str:
    """Return the MathML of a node; where there is none, the source and a warning that names the
    page.
    """
    try:
        return to_mathml(node.astext(), display)
    except ValueError as error:
        LOGGER.warning("the formula %s is no MathML: %s", node.astext(), error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(convert(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own. It can be focused, because where it is too wide, it
    scrolls.
    """
    attributes = {"tabindex": "0", "role": "group", "aria-label": "Formula"}
    self.body.append(
        self.starttag(node, "div", CLASS="formula", **attributes) + convert(node, "block")
    )
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this formula")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writing of formulas; Sphinx takes it in place of its own, MathJax."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
