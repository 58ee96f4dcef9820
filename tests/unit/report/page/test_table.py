"""Tables as Markdown, text and HTML."""

import re
from html import unescape

import pytest

from lmtools.report.table import Table, code, guarded, html, markdown, plain

TABLE = Table(
    "A <title>",
    ("name", "x"),
    (("a|b", "1.0"), ("<b>*", "20.5")),
    ("`lmtools report a|b` & <i>",),
    best=frozenset({(1, 1)}),
)


def test_markdown():
    assert (
        markdown(TABLE) == "## A &lt;title>\n\n"
        "| name     |        x |\n"
        "| -------- | -------: |\n"
        "| a\\|b     |      1.0 |\n"
        "| &lt;b>\\* | **20.5** |\n"
        "\n`lmtools report a|b` & &lt;i>\n"
    )


def test_plain():
    assert plain(TABLE) == "A <title>\nname     x\n----------\na|b    1.0\n<b>*  20.5\n"


def test_html_has_every_cell_as_text():
    source = html(TABLE)
    cells = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", source)
    assert " ".join([unescape(cell) for cell in cells]) == (
        "name x a|b 1.0 <b>* <strong>20.5</strong>"
    )
    assert "<b>" not in source
    assert "<i>" not in source
    assert "<code>lmtools report a|b</code> &amp; &lt;i&gt;" in source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p < 0.05 and x<3", "p < 0.05 and x<3"),
        ("<script>", "&lt;script>"),
        ("a &lt; b", "a &amp;lt; b"),
        ("`a*b` * c", "`a*b` \\* c"),
        ("odd ` tick *", "odd ` tick *"),
        ("", ""),
    ],
)
def test_guarded(text, expected):
    assert guarded(text) == expected


def test_code():
    assert code("a `b<c` d") == "a <code>b&lt;c</code> d"
