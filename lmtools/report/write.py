"""Writes the report: RESULTS.md, the figures, index.html."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmtools.atomic import atomic_path, atomic_text
from lmtools.errors import UserError
from lmtools.experiment import ExperimentPlan
from lmtools.report.experiment import Experiment
from lmtools.report.lm.experiment import is_language_modelling
from lmtools.report.page.drawing import LIGHT, Picture
from lmtools.report.page.html import page
from lmtools.report.page.table import Table, guarded, markdown, plain
from lmtools.report.papers.readings import add_readings
from lmtools.report.papers.tables import paper_tables
from lmtools.report.rescoring.experiment import collect_rescoring
from lmtools.report.rescoring.figures import PICTURES
from lmtools.report.rescoring.lms import (
    RESCORING_LM_PICTURES,
    RESCORING_LM_TABLES,
    collect_rescoring_lms,
    rescoring_misfits,
)
from lmtools.report.rescoring.samples import lists_beside
from lmtools.report.rescoring.tables import TABLES, misfits
from lmtools.report.sts.experiment import collect_sts, is_sts
from lmtools.report.sts.figures import STS_PICTURES
from lmtools.report.sts.tables import STS_TABLES
from lmtools.report.style import Style, load_style


class ReportKind(NamedTuple):
    """A kind of report: how its experiment is read, of which makers its tables and figures (by how
    their files' names begin) are, and lines for what does not fit.
    """

    collect: Callable[[Path, Sequence[str], str | None, str, Style | None], Experiment]
    tables: Sequence[Callable[..., Iterable[Table]]]
    pictures: Mapping[str, Callable[..., Iterator[Picture]]]
    misfits: Callable[..., Iterable[str]] = lambda experiment: ()


REPORTS = {
    "rescoring": ReportKind(collect_rescoring, TABLES, PICTURES, misfits),
    "lm": ReportKind(
        collect_rescoring_lms, RESCORING_LM_TABLES, RESCORING_LM_PICTURES, rescoring_misfits
    ),
    "sts": ReportKind(collect_sts, STS_TABLES, STS_PICTURES),
}


def write_report(
    home,
    nbests: Sequence[str] = (),
    title: str | None = None,
    command: str = "lmtools report",
    what: str | None = None,
    conf: str | None = None,
    plan: ExperimentPlan | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Write RESULTS.md, *.png and index.html; return the main tables as text, and a line for each
    thing that is absent or does not fit.

    They go to `home`/report; `command` is what the tables say made them; `what` is a name of
    REPORTS (default: by what there is), `conf` a YAML file of names, order and looks: see Style;
    `plan` has systems in their order, with labels.
    """
    home, style = Path(home), load_style(Path(conf) if conf else None, plan)
    kind = REPORTS[what or recognised(home, nbests)]
    experiment = kind.collect(home, nbests, title, command, style)
    main, *others = kind.tables
    every = make_all((main, paper_tables, *others), experiment)
    drawn = list(add_readings(experiment, make_all(kind.pictures.values(), experiment)))
    misfits = list(kind.misfits(experiment))
    first = [table for table in every if table.part == "results"]
    light = [picture.png(LIGHT) for picture in drawn]
    out = home / "report"
    if out.is_symlink():
        raise UserError(f"{out}: a link stands where the report belongs; remove it")
    for picture, png in zip(drawn, light, strict=True):
        with atomic_path(out / f"{picture.name}.png", follow=False) as path:
            path.write_bytes(png)
    remove_others(out, {picture.name for picture in drawn})
    with atomic_text(out / "RESULTS.md", follow=False) as stream:
        stream.write(results(experiment, every, drawn))
    with atomic_text(out / "index.html", follow=False) as stream:
        stream.write(page(experiment, every, drawn, light))
    return "\n".join(map(plain, first)), (*experiment.absent, *misfits)


def make_all(makers: Iterable[Callable[..., Iterable]], experiment: Experiment) -> list:
    """Return all tables or figures that the makers yield for the experiment, in printing order."""
    return [one for make in makers for one in make(experiment)]


def recognised(home: Path, nbests: Sequence[str]) -> str:
    """Return the kind of the experiment in directory `home`: of similarity, of rescoring or,
    without lists and rescored texts, of language models by themselves.
    """
    if is_sts(home):
        return "sts"
    rescored = nbests or any(home.glob("rescore/*/*.txt")) or lists_beside(home)
    return "rescoring" if rescored or not is_language_modelling(home) else "lm"


def remove_others(folder: Path, names: set[str]) -> None:
    """Remove figures that an earlier report drew and this one did not, so that no page mixes two
    experiments.
    """
    ours = {name for kind in REPORTS.values() for name in kind.pictures}
    for path in folder.glob("*.png"):
        if path.stem not in names and path.stem.partition("-")[0] in ours:
            path.unlink()


def results(experiment: Experiment, every: Sequence[Table], drawn: Sequence[Picture]) -> str:
    """RESULTS.md: what it is of, tables, figures, and what is absent."""
    title = (
        f"# Results: {guarded(experiment.title)}\n\n[index.html](index.html) has"
        f" {experiment.contents}.\n"
    )
    parts = [title, *(f"{guarded(line)}\n" for line in experiment.provenance())]
    parts += map(markdown, every)
    if drawn:
        parts.append(
            "## Figures\n\n"
            + "\n".join(f"![{picture.caption}]({picture.name}.png)\n" for picture in drawn)
        )
    if experiment.absent:
        parts.append("## Absent\n\n" + "".join(f"- {line}\n" for line in experiment.absent))
    return "\n".join(parts)
