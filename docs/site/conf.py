"""Settings of the site (make docs): the repository's pages, and references made from the code."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from commands import write_commands
from notebooks import write_notebook

from lmtools.version import __version__

project, author = "lmtools", "The lmtools developers"
copyright = "the lmtools developers, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = [
    *("*.md", "docs/*.md", "egs/*/*.md", "egs/**/README.md", "tests/trust/README.md")
]
exclude_patterns = ["build", "tools", ".venv", "**/node_modules", "**/exp/**", "**/downloads/**"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Markdown tables and code of languages that no lexer knows are shown as they are
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
html_title = f"lmtools {version}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
default_role = "code"


def escape_docstring(app, what, name, obj, options, lines):
    """Make reStructuredText of a docstring, whose only marks are backticks."""
    text = "\n".join(lines)
    parts = re.split(r"(`[^`]+`)", text)
    lines[:] = "".join(
        f"`{part}`" if place % 2 else re.sub(r"([*|_\\])", r"\\\1", part)
        for place, part in enumerate(parts)
    ).split("\n")


def add_made(app, docname, source):
    """Put the help of every verb, and the notebook, where a page has the line for it."""
    if docname == "docs/cli":
        source[0] = source[0].replace("<!-- commands -->", write_commands())
    elif docname == "docs/notebook":
        notebook = write_notebook(ROOT / "docs/tutorial.ipynb")
        source[0] = source[0].replace("<!-- notebook -->", notebook)


def setup(app):
    """Connect both with Sphinx."""
    app.connect("autodoc-process-docstring", escape_docstring)
    app.connect("source-read", add_made)
