"""Writes the report: RESULTS.md, the figures, index.html."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from lmtools.errors import UserError
from lmtools.files import atomic_path, atomic_text
from lmtools.report.artifacts import unchecked
from lmtools.report.lm.context import LmReport
from lmtools.report.lm.experiment import collect_lms, is_language_modelling
from lmtools.report.lm.figures import LM_PICTURES, lm_pictures
from lmtools.report.lm.tables import lm_tables
from lmtools.report.page.drawing import LIGHT, Picture
from lmtools.report.page.html import page
from lmtools.report.page.table import Table, guarded, markdown, plain
from lmtools.report.rescoring.context import Report
from lmtools.report.rescoring.experiment import collect, lists_beside
from lmtools.report.rescoring.figures import PICTURES, pictures
from lmtools.report.rescoring.measure import measure
from lmtools.report.rescoring.tables import deviations, tables
from lmtools.report.sts.context import StsReport
from lmtools.report.sts.experiment import collect_sts, is_sts
from lmtools.report.sts.figures import STS_PICTURES, sts_pictures
from lmtools.report.sts.tables import sts_tables


class Parts(NamedTuple):
    """What a report is made of; `warnings` are lines for what does not fit."""

    report: Report | LmReport | StsReport
    tables: Sequence[Table]
    pictures: Sequence[Picture]
    warnings: Sequence[str] = ()


def write_report(
    home,
    nbests: Sequence[str] = (),
    title: str | None = None,
    command: str = "lmtools report",
    what: str | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The main tables as text, and a line for each thing that is absent or does not fit; writes
    RESULTS.md, *.png and index.html.

    They go to `home`/report; `command` is what the tables say made them; `what` is a name of
    REPORTS (default: by what there is).
    """
    home = Path(home)
    report, every, drawn, warnings = REPORTS[what or recognised(home, nbests)](
        home, nbests, title, command
    )
    first = [table for table in every if table.part == "results"]
    light = [picture.png(LIGHT) for picture in drawn]
    out = home / "report"
    for picture, png in zip(drawn, light, strict=True):
        with atomic_path(out / f"{picture.name}.png") as path:
            path.write_bytes(png)
    remove_others(out, {picture.name for picture in drawn})
    with atomic_text(out / "RESULTS.md") as stream:
        stream.write(results(report, every, drawn))
    with atomic_text(out / "index.html") as stream:
        stream.write(page(report, every, drawn, light))
    return "\n".join(map(plain, first)), (*report.experiment.absent, *warnings)


def recognised(home: Path, nbests: Sequence[str]) -> str:
    """What the experiment in directory `home` is: without lists and rescored texts, of similarity
    or of language models by themselves.
    """
    if nbests or any(home.glob("rescore/*/*.txt")) or lists_beside(home):
        return "rescoring"
    return "sts" if is_sts(home) else "lm" if is_language_modelling(home) else "rescoring"


def rescoring(home: Path, nbests: Sequence[str], title: str | None, command: str) -> Parts:
    """The report of rescored lists and lattices."""
    experiment = collect(home, nbests, title)
    report = Report(experiment, measure(experiment), command)
    return Parts(report, tables(report), pictures(report), (*deviations(report), *unchecked(home)))


def language_models(home: Path, nbests: Sequence[str], title: str | None, command: str) -> Parts:
    """The report of language models by themselves."""
    refuse_lists(nbests, "language models", "lm")
    report = LmReport(collect_lms(home, title), command)
    return Parts(report, lm_tables(report), lm_pictures(report))


def similarity(home: Path, nbests: Sequence[str], title: str | None, command: str) -> Parts:
    """The report of semantic textual similarity."""
    refuse_lists(nbests, "semantic textual similarity", "sts")
    report = StsReport(collect_sts(home, title), command)
    return Parts(report, sts_tables(report), sts_pictures(report))


def refuse_lists(nbests: Sequence[str], subject: str, what: str) -> None:
    """UserError where a report that has no N-best lists is given some."""
    if nbests:
        raise UserError(
            f"{nbests[0]}: a report of {subject} has no N-best lists; leave out --nbest, or --what"
            f" {what}"
        )


REPORTS: dict[str, Callable[[Path, Sequence[str], str | None, str], Parts]] = {
    "rescoring": rescoring,
    "lm": language_models,
    "sts": similarity,
}


def remove_others(folder: Path, names: set[str]) -> None:
    """Remove figures that an earlier report drew and this one did not, so that no page mixes two
    experiments.
    """
    for path in folder.glob("*.png"):
        if (
            path.stem not in names
            and path.stem.partition("-")[0]
            in PICTURES.keys() | LM_PICTURES.keys() | STS_PICTURES.keys()
        ):
            path.unlink()


def results(
    report: Report | LmReport | StsReport, every: Sequence[Table], drawn: Sequence[Picture]
) -> str:
    """RESULTS.md: tables, figures, and what is absent."""
    title = (
        f"# Results: {guarded(report.experiment.title)}\n\n[index.html](index.html) has"
        f" {report.contents}.\n"
    )
    parts = [title, *map(markdown, every)]
    if drawn:
        parts.append(
            "## Figures\n\n"
            + "\n".join(f"![{picture.caption}]({picture.name}.png)\n" for picture in drawn)
        )
    if report.experiment.absent:
        parts.append("## Absent\n\n" + "".join(f"- {line}\n" for line in report.experiment.absent))
    return "\n".join(parts)
