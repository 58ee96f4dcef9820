"""The experiment as one HTML page that needs nothing but itself: style, script, data and figures
are inside.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from lmtools.base.doors import open_door
from lmtools.report.drawing import DARK, Picture
from lmtools.report.experiment import Experiment
from lmtools.report.lists import RescoredLists
from lmtools.report.measure import Measured
from lmtools.report.table import Table, code, html
from lmtools.types import NBest

POLICY = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
BROWSER = '<a href="#utterances">Utterances</a>'
SCRIPTS = '<script type="application/json" id="data">{}</script>\n<script>{}</script>\n'
PAPERS = "papers"  # the section that stands last
INSIDE = '<div class="{}">\n{}\n</div>\n'


def page(
    experiment: Experiment,
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    light: Sequence[bytes],
) -> str:
    """Return the page: main tables, figures (`light`: their PNG), the browser, other tables."""
    drawn = "".join(map(figure, pictures, light))
    results, others = (
        "".join(html(table) for table in tables if (table.part == "results") == first)
        for first in (True, False)
    )
    style, script = (part(f"page.{suffix}") for suffix in ("css", "js"))
    browsed = browser_data(experiment.browsed) if experiment.browsed else None
    return Template(part("page.html")).substitute(
        title=escape(experiment.title),
        policy=f"{POLICY}; style-src {digest(style)}"
        + (f"; script-src {digest(script)}" if browsed else ""),
        style=style,
        notes="".join(f"<li>{code(line)}</li>" for line in experiment.absent),
        first=results,
        links=link("figures") + (BROWSER if browsed else "") + link("tables"),
        figures=section("figures", "Figures", INSIDE.format("figures", drawn)),
        browser=part("browser.html") if browsed else "",
        tables=section("tables", "Tables", INSIDE.format("tables", others)),
        scripts=SCRIPTS.format(embedded(browsed), script) if browsed else "",
        made="".join(f"<p>{code(line)}</p>" for line in experiment.provenance()),
    )


def link(name: str) -> str:
    return f'<a href="#{name}">{name.capitalize()}</a>'


def section(name: str, title: str, inside: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2'
        f' id="{name}-title">{title}</h2>\n{inside}</section>\n'
    )


def add_section(
    page: str, name: str, title: str, tables: Sequence[Table], pictures: Mapping[Picture, bytes]
) -> str:
    """Return a page with one more section, its figures and tables, at the end, before PAPERS."""
    inside = INSIDE.format("figures", "".join(figure(*one) for one in pictures.items()))
    inside += INSIDE.format("tables", "".join(map(html, tables)))
    page = put_before(page, link(name), link(PAPERS), "</nav>")
    return put_before(
        page, section(name, escape(title), inside), f'<section id="{PAPERS}"', "</main>"
    )


def put_before(text: str, added: str, *marks: str) -> str:
    """Return a text with one more before the first of the marks that it has, or at the end."""
    at = next((text.index(mark) for mark in marks if mark in text), len(text))
    return text[:at] + added + text[at:]


def part(name: str) -> str:
    """Return a file of the package's page."""
    return files("lmtools.report").joinpath("web", name).read_text(encoding="utf-8")


def digest(source: str) -> str:
    """Return the source expression that allows exactly this style or script in the policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def figure(picture: Picture, light: bytes) -> str:
    """Return a figure with its caption, on the paper that the reader's colour scheme asks for."""
    kind = ' class="wide"' if picture.wide else ""
    return (
        f'<figure{kind} id="{escape(picture.name)}"><div class="scroll"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{uri(picture.png(DARK))}">'
        f'<img src="{uri(light)}" alt="{escape(picture.alt)}"></picture></div>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
    )


def uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def embedded(tree) -> str:
    """Return JSON in which what means something to an HTML parser is escaped."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"))
    return text.translate(
        {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
    )


def browser_data(lists: RescoredLists) -> dict:
    """Return the browser's data as a JSON-able tree; judged sets come first.

    {"systems": [[name, label]], "sets": [{"name", "utts": [[id, reference, [[text, operations]],
    [choice of each system], {system's index: [confidence of each word, in hundredths]}, [[spans in
    the reference, spans in the text] of each text]]]}]}; `operations` has one letter a step of the
    alignment: Correct, Substituted, Deleted, Inserted; a choice is an index or null; confidences
    are those of networks that chose the system's words; spans [first word, word behind the last,
    phrase, 1 where it is missed or a false alarm] are there with a glossary.
    """
    names = lists.names
    systems = names.ordered({name for measured in lists.sets for name in measured.results})
    arranged = sorted(lists.sets, key=lambda measured: measured.sample.tuned)
    return {
        "systems": [[name, names.label(name)] for name in systems],
        "sets": [
            {"name": measured.sample.name, "utts": utterances(measured, systems, lists)}
            for measured in arranged
        ],
    }


def utterances(measured: Measured, systems: Sequence[str], lists: RescoredLists) -> list[list]:
    words, rows = lists.words_of(measured.sample.name), []
    for nbest in measured.sample.nbests:
        row = utterance(nbest, measured, systems)
        rows.append([*row, confidences(nbest.utt, measured, systems, words)])
        if lists.glossary:
            mark_phrases = open_door("phrases", "report:mark_phrases", "--words")
            rows[-1].append([mark_phrases(*row[:2], text, lists.glossary) for text, _ in row[2]])
    return rows


def utterance(nbest: NBest, measured: Measured, systems: Sequence[str]) -> list:
    """Return one row; a text that several systems chose stands there once."""
    texts: dict[str, str] = {}  # as chosen, by its words
    choices = []
    for system in systems:
        if system not in measured.results:
            choices.append(None)
            continue
        chosen = measured.results[system].texts.get(nbest.utt, "")
        words = " ".join(chosen.split())
        texts.setdefault(words, chosen)
        choices.append(list(texts).index(words))
    steps = [[words, measured.refs.align(nbest.utt, text).steps] for words, text in texts.items()]
    return [nbest.utt, " ".join((nbest.ref or "").split()), steps, choices]


def confidences(
    utt: str, measured: Measured, systems: Sequence[str], words: Mapping
) -> dict[str, list[int]]:
    """Return confidences of chosen words, in hundredths rounded down, by the system's place."""
    known = {}
    for place, system in enumerate(systems):
        if system in words and system in measured.results:
            shares = words[system].of_text(utt, measured.results[system].texts.get(utt, ""))
            if shares is not None:
                known[str(place)] = [int(100 * share) for share in shares]
    return known
