"""Links from pages to files of the repository that are no pages: they become the file's name, as
code.

On a code host such a link opens the file. The site has no copy of it, so there the path says where
it is.
"""

from __future__ import annotations

import os
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def is_link(node: nodes.Node) -> bool:
    """Return whether a node is a link that MyST has made and Sphinx has not resolved yet."""
    is_reference = isinstance(node, addnodes.pending_xref | addnodes.download_reference)
    return is_reference and node.get("reftype") == "myst"


class RepositoryLinks(SphinxTransform):
    """Replaces links that leave the folder of the pages, and warns of those that lead nowhere."""

    default_priority = 5  # before MyST's links are resolved

    def apply(self) -> None:
        """Look at every link of one page."""
        source = Path(self.env.srcdir)
        page = source / self.env.docname
        for link in list(self.document.findall(is_link)):
            target = link.get("reftarget", "").partition("#")[0]
            place = Path(os.path.normpath(page.parent / target))
            if not target.startswith(("../", "/")) or place.is_relative_to(source):
                continue
            if not place.exists():  # MyST drops the suffix of what could be a page
                place = place.with_suffix(".md")
            if not place.exists():
                LOGGER.warning("the link to %s leads nowhere", target, location=link)
            name = place.relative_to(source.parent).as_posix()
            said = link.astext().strip("`")
            code = nodes.literal(name, name)
            link.replace_self([code] if said == name else [nodes.Text(f"{said}, "), code])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
