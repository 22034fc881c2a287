"""Sphinx builds the site from these pages.

``./run docs``, or ``python -m sphinx docs docs/_build/html``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]

from sphinx.ext import autosummary  # noqa: E402
from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

from mdpu import __version__  # noqa: E402

project = "MDPU"
author = "The MDPU reproduction authors"
copyright = author
version = __version__
release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "empty_headers",
    "flowchart",
    "generated",
    "mathml",
    "repository_links",
]
exclude_patterns = ["_build", "_ext", "tutorials"]  # the gallery makes auto_tutorials of tutorials

# Markdown
myst_enable_extensions = ["deflist", "dollarmath"]
myst_dmath_allow_space = False  # a lone dollar is a dollar, as on code hosts
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# The API. Types stand in the docstrings, with shapes, so the signatures go without.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # `fit()` fits beside the page, a class's name does not
autosummary_generate = True
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Eq.", "Eqs.")  # no sentence ends there
templates_path = ["_templates"]
default_role = "literal"
numpydoc_show_class_members = False

# The tutorials are run by every build, and shown in this order.
LESSONS = [
    "five_minutes",
    "prior_unknown",
    "photographs",
    "table",
    "text",
    "noisy_tuples",
    "counts",
    "laws",
    "reproduce",
    "theorems",
]
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "auto_tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([f"{lesson}.py" for lesson in LESSONS]),
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}
os.environ.setdefault("OMP_NUM_THREADS", "2")  # the tutorials promise to run on two cores
os.environ["COLUMNS"] = "88"  # of the commands' help

# Figures of other pages
plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]

# No intersphinx: it fetches the indexes of torch, numpy and scikit-learn, and a strict build fails
# where none answers. `./run docs -b linkcheck` asks other sites, too; the build itself needs no
# network.
linkcheck_anchors = False

html_theme = "pydata_sphinx_theme"
html_title = "MDPU"
html_static_path = ["_static"]
html_css_files = ["gallery.css", "layout.css"]
html_theme_options = {
    "navigation_with_keys": False,
    # The field would have a label that is not what it shows.
    "navbar_persistent": ["search-button"],
    "navigation_depth": 1,  # deeper, the sidebar would have buttons without a name
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_show_sourcelink = False
html_sidebars = {"index": []}
