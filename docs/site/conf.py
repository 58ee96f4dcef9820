"""Settings of the site (make docs): the repository's pages, and references made from the code."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from notebooks import write_notebook
from pages import BELOW
from reference import write_reference

from lmtools.version import __version__

project, author = "lmtools", "The lmtools developers"
copyright = "the lmtools developers, Apache-2.0"
version = release = __version__
extensions = [
    *("myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"),
    *("sphinx_copybutton", "sphinx_design"),
]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
include_patterns = [
    *(
        "*.md",
        "docs/*.md",
        "docs/verbs/*.md",
        "docs/modules/*.md",
        "egs/*/*.md",
        "egs/**/README.md",
        "tests/trust/README.md",
    )
]
exclude_patterns = ["build", "tools", ".venv", "**/node_modules", "**/exp/**", "**/downloads/**"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_html_meta = {
    "description": "lmtools rescores N-best lists and lattices of speech recognisers and"
    " translators by language models, and compares language models"
}
highlight_language = "text"  # of blocks that name none
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"
# Markdown tables and code of languages that no lexer knows are shown as they are
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
html_title = f"lmtools {version}"
html_favicon = "static/icon.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
viewcode_line_numbers = True

autodoc_typehints = "description"
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


made = write_reference(ROOT / "docs")
below = BELOW | {"docs/cli": made["verbs"], "docs/api": made["modules"]}


def add_made(app, docname, source):
    """Put the notebook where its page has the line for it, the list of the pages below, and the
    images that stand in HTML for their width, which Sphinx would not copy.
    """
    source[0] = re.sub(
        r'<img src="([^":]+)" width="(\d+)" alt="([^"]*)">',
        r"```{image} \1\n:width: \2px\n:alt: \3\n```",
        source[0],
    )
    notebook = write_notebook(ROOT / "docs/tutorial.ipynb")
    source[0] = source[0].replace("<!-- notebook -->", notebook)
    if docname in below:  # GitHub, which shows the same files, needs no such list
        source[0] += "\n".join(["\n```{toctree}", ":maxdepth: 1", *below[docname], "```\n"])


def setup(app):
    """Connect both with Sphinx."""
    app.connect("autodoc-process-docstring", escape_docstring)
    app.connect("source-read", add_made)
