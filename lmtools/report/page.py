"""The experiment as one HTML page that needs nothing but itself: style, script, data and figures are inside."""

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from lmtools import __version__
from lmtools.report.browse import browser_data
from lmtools.report.context import Report
from lmtools.report.drawing import DARK, Picture
from lmtools.report.render import Table, code, html

POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
LINK = '<a href="#criteria">Criteria</a>'
SECTION = """<section id="criteria" aria-labelledby="criteria-title">
<h2 id="criteria-title">Output layers and training criteria</h2>
<div class="figures">
$figures
</div>
<div class="tables">
$tables
</div>
</section>
"""


def page(report: Report, tables: Sequence[Table], pictures: Sequence[Picture], light: Sequence[bytes]) -> str:
    """The page: each table and each figure (`light` holds their PNG for light paper) in its part, and the utterance browser."""
    printed = {part: "".join(html(table) for table in tables if table.part == part) for part in ("results", "criteria", "tables")}
    drawn = {"criteria": "", "figures": ""}
    for picture, png in zip(pictures, light, strict=True):
        drawn[picture.part] += figure(picture, png)
    compared = any((printed["criteria"], drawn["criteria"]))
    style, script = (part(f"page.{suffix}") for suffix in ("css", "js"))
    return Template(part("page.html")).substitute(
        title=escape(report.experiment.title),
        policy=f"{POLICY}; style-src {digest(style)}; script-src {digest(script)}",
        style=style,
        script=script,
        notes="".join(f"<li>{code(line)}</li>" for line in report.experiment.absent),
        first=printed["results"],
        link=LINK if compared else "",
        criteria=Template(SECTION).substitute(tables=printed["criteria"], figures=drawn["criteria"]) if compared else "",
        figures=drawn["figures"],
        others=printed["tables"],
        data=embedded(browser_data(report.sets)),
        version=escape(__version__),
        command=escape(report.command),
    )


def part(name: str) -> str:
    """A file of the package's page."""
    return files("lmtools.report").joinpath(name).read_text(encoding="utf-8")


def digest(source: str) -> str:
    """The source expression by which the page's policy allows exactly this style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def figure(picture: Picture, light: bytes) -> str:
    """A figure with its caption, on the paper that the reader's colour scheme asks for."""
    kind = ' class="wide"' if picture.wide else ""
    return (
        f'<figure{kind} id="{escape(picture.name)}"><div class="scroll"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{uri(picture.png(DARK))}">'
        f'<img src="{uri(light)}" alt="{escape(picture.alt)}"></picture></div>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
    )


def uri(png: bytes) -> str:
    """PNG bytes as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def embedded(tree) -> str:
    """JSON that no text inside it can end: the characters that mean something to an HTML parser are escaped."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
