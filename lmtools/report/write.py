"""Writes the report: RESULTS.md, the figures, index.html."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from lmtools.base.atomic import atomic_path, atomic_text
from lmtools.base.doors import hook
from lmtools.base.errors import UserError
from lmtools.report import lms, rescoring_figures
from lmtools.report import rescoring_tables as rescoring
from lmtools.report.drawing import LIGHT, Picture
from lmtools.report.experiment import LM, RESCORING, STS, Experiment, collect, recognise
from lmtools.report.main_tables import main_tables, scored_tables
from lmtools.report.page import PAPERS, add_section, page, put_before
from lmtools.report.rescoring_tables import stage_tables
from lmtools.report.table import Table, guarded, markdown, plain


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
