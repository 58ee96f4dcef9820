"""Writes the report: RESULTS.md, the figures, and index.html, a page that needs nothing but itself:
style, script, data and figures are inside.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from lmtools.base.atomic import atomic_path, atomic_text
from lmtools.base.doors import hook, open_door
from lmtools.base.errors import UserError
from lmtools.evaluate.corpus import is_wer
from lmtools.evaluate.edits import align
from lmtools.report import lms, rescoring_figures
from lmtools.report import rescoring_tables as rescoring
from lmtools.report.drawing import DARK, LIGHT, Picture
from lmtools.report.experiment import LM, RESCORING, STS, Experiment, collect, recognise
from lmtools.report.lists import RescoredLists
from lmtools.report.main_tables import main_tables, scored_tables
from lmtools.report.measure import Measured
from lmtools.report.rescoring_tables import stage_tables
from lmtools.report.table import Table, code, guarded, html, markdown, plain
from lmtools.text.scripts import split_letters
from lmtools.types import NBest


def brought(name: str) -> Callable[[Experiment], Iterable]:
    """Return the maker that a door brings under that name; without the door it makes nothing."""

    def make(experiment: Experiment) -> Iterable:
        found = hook(name)
        return found(experiment) if found else ()

    return make


phrase_tables = brought("phrase_tables")
Makers = Sequence[Callable[[Experiment], Iterable]]
# by kind of report, in printing order
TABLES: Mapping[str, Makers] = {
    RESCORING: (
        *(main_tables, scored_tables, phrase_tables),
        *(rescoring.weight_tables, rescoring.lambda_tables),
        *(rescoring.oracle_tables, rescoring.depth_tables, rescoring.ppl_tables),
        *(rescoring.length_tables, brought("confidence_tables"), rescoring.lattice_tables),
        *(rescoring.training_tables, stage_tables),
    ),
    LM: (
        lms.ppl_tables,
        *(main_tables, phrase_tables, rescoring.ppl_tables, rescoring.weight_tables),
        *(lms.training_tables, stage_tables),
    ),
    STS: (brought("similarity_tables"), stage_tables),
}
# by kind of report and how the names of their files begin
PICTURES: Mapping[str, Mapping[str, Callable[[Experiment], Iterable[Picture]]]] = {
    RESCORING: {
        "systems": rescoring_figures.system_pictures,
        "depth": rescoring_figures.depth_pictures,
        "length": rescoring_figures.length_pictures,
        "confidence": brought("confidence_pictures"),
        "scale": rescoring_figures.scale_pictures,
        "learning": rescoring_figures.learning_pictures,
    },
    LM: {"ppl": rescoring_figures.ppl_pictures, "learning": lms.learning_pictures},
    STS: {"bars": brought("bar_pictures"), "scatter": brought("scatter_pictures")},
}
OF_LISTS = (
    *(main_tables, phrase_tables, rescoring.ppl_tables, rescoring.weight_tables),
    rescoring_figures.ppl_pictures,
)
REPORTS = tuple(TABLES)
FIGURES, ABSENT, BESIDE = "\n## Figures\n", "\n## Absent\n", "\n## Beside "  # in RESULTS.md
ADDED = ("criteria", "grid", "speed", "work")  # how the names of figures begin that scripts add


def write_report(
    home, nbests: Sequence[str] = (), *, what: str | None = None, **options
) -> tuple[str, tuple[str, ...]]:
    """Write RESULTS.md, *.png, index.html and rows.csv to `home`/report; return the main tables as
    text, and a line for each thing that lacks or does not fit. `what`: a name of REPORTS;
    `options`: of `collect`.
    """
    home = Path(home)
    experiment = collect(home, what or recognise(home, nbests), nbests, **options)
    tables = make_tables(experiment)
    pictures = make_pictures(experiment)
    misfits = rescoring.list_misfits(experiment) if experiment.kind != STS else []
    light = [picture.png(LIGHT) for picture in pictures]
    out = home / "report"
    if out.is_symlink():
        raise UserError(f"{out}: a link stands where the report belongs; remove it")
    write_pictures(out, dict(zip(pictures, light, strict=True)))
    remove_others(out, {picture.name for picture in pictures})
    with atomic_text(out / "RESULTS.md", follow=False) as stream:
        stream.write(results(experiment, tables, pictures))
    with atomic_text(out / "index.html", follow=False) as stream:
        stream.write(page(experiment, tables, pictures, light))
    experiment.rows.write(out / "rows.csv")
    first = [plain(table) for table in tables if table.part == "results"]
    return "\n".join(first), (*experiment.absent, *misfits)


def write_pictures(out: Path, pictures: Mapping[Picture, bytes]) -> None:
    for picture, png in pictures.items():
        with atomic_path(out / f"{picture.name}.png", follow=False) as path:
            path.write_bytes(png)


def add_part(
    home, name: str, title: str, tables: Sequence[Table], pictures: Sequence[Picture] = ()
) -> None:
    """Add tables and figures of one's own to the end of the report that `write_report` wrote, but
    before those of PAPERS: to RESULTS.md, and to index.html as a section of that name and title.
    UserError where it has that section.
    """
    out = Path(home) / "report"
    text, whole = ((out / one).read_text("utf-8") for one in ("RESULTS.md", "index.html"))
    if f'<section id="{name}"' in whole:
        raise UserError(f"{out}/index.html: has {name} already; run lmtools report before")
    if not tables and not pictures:
        return
    drawn = {picture: picture.png(LIGHT) for picture in pictures}
    write_pictures(out, drawn)
    shown = "".join(f"\n{one}" for one in (*map(show_picture, pictures), *map(markdown, tables)))
    marks = (ABSENT,) if name == PAPERS else (BESIDE, ABSENT)
    with atomic_text(out / "RESULTS.md", follow=False) as stream:
        stream.write(put_before(text, shown, *marks))
    with atomic_text(out / "index.html", follow=False) as stream:
        stream.write(add_section(whole, name, title, tables, drawn))


def show_picture(picture: Picture) -> str:
    return f"![{picture.caption}]({picture.name}.png)\n"


def make_tables(experiment: Experiment) -> list[Table]:
    return make_all(TABLES[experiment.kind], experiment)


def make_pictures(experiment: Experiment) -> list[Picture]:
    return make_all(PICTURES[experiment.kind].values(), experiment)


def make_all(makers: Iterable[Callable[..., Iterable]], experiment: Experiment) -> list:
    """Return all that the makers yield for the experiment; those of lists where it has some."""
    makers = (make for make in makers if experiment.lists or make not in OF_LISTS)
    return [product for make in makers for product in make(experiment)]


def remove_others(folder: Path, names: set[str]) -> None:
    """Remove figures of an earlier report, so that no page mixes two experiments."""
    ours = {*ADDED, *(name for makers in PICTURES.values() for name in makers)}
    for path in folder.glob("*.png"):
        if path.stem not in names and path.stem.partition("-")[0] in ours:
            path.unlink()


def results(experiment: Experiment, tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Return RESULTS.md: what it is of, tables, figures, and what is absent."""
    utterances = ", and every utterance" if experiment.kind == RESCORING else ""
    parts = [
        f"# Results: {guarded(experiment.title)}\n\n[index.html](index.html) has these tables and"
        f" figures{utterances}.\n",
        *(f"{guarded(line)}\n" for line in experiment.provenance()),
    ]
    first = [table.part == "results" for table in tables]
    parts += [markdown(table) for table, one in zip(tables, first, strict=True) if one]
    if pictures:
        parts.append(FIGURES[1:] + "\n" + "\n".join(map(show_picture, pictures)))
    parts += [markdown(table) for table, one in zip(tables, first, strict=True) if not one]
    if experiment.absent:
        parts.append(ABSENT[1:] + "\n" + "".join(f"- {line}\n" for line in experiment.absent))
    return "\n".join(parts)


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
    made = [code(line) for line in experiment.provenance()]
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
        made=f"<p>{made[0]}</p><details><summary>How it was made</summary>"
        + "".join(f"<p>{line}</p>" for line in made[1:])
        + "</details>",
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
    ref = " ".join((nbest.ref or "").split())
    steps = [align_shown(measured, nbest.utt, (ref, words), text) for words, text in texts.items()]
    return [nbest.utt, split_letters(ref), steps, choices]


def align_shown(measured: Measured, utt: str, texts: tuple[str, str], chosen: str) -> list:
    """Return a hypothesis in units and its alignment: the metric's own if its units are these."""
    ref, hyp = map(split_letters, texts)
    if is_wer(measured.refs.metric) and (ref, hyp) == texts:
        return [hyp, measured.refs.align(utt, chosen).steps]
    return [hyp, align(ref.split(), hyp.split()).steps]


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
