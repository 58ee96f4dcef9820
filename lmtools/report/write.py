"""Writes the report: RESULTS.md, the figures, index.html."""

from collections.abc import Sequence
from pathlib import Path

from lmtools.files import atomic_path, atomic_text
from lmtools.report.collect import collect
from lmtools.report.context import Report
from lmtools.report.drawing import LIGHT, Picture
from lmtools.report.figures import PICTURES, pictures
from lmtools.report.measure import measure
from lmtools.report.page import page
from lmtools.report.render import Table, guarded, markdown, plain
from lmtools.report.tables import deviations, tables


def write_report(
    home, nbests: Sequence[str] = (), title: str | None = None, command: str = "lmtools report"
) -> tuple[str, tuple[str, ...]]:
    """The main tables as text, and a line for each thing that is absent or does not fit; writes RESULTS.md, *.png and index.html.

    They go to `home`/report; `command` is what the tables say made them.
    """
    home = Path(home)
    experiment = collect(home, nbests, title)
    report = Report(experiment, measure(experiment), command)
    every, drawn = tables(report), pictures(report)
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
    return "\n".join(map(plain, first)), (*experiment.absent, *deviations(report))


def remove_others(folder: Path, names: set[str]) -> None:
    """Remove figures that an earlier report drew and this one did not, so that no page mixes two experiments."""
    for path in folder.glob("*.png"):
        if path.stem not in names and path.stem.partition("-")[0] in PICTURES:
            path.unlink()


def results(report: Report, every: Sequence[Table], drawn: Sequence[Picture]) -> str:
    """RESULTS.md: tables, figures, and what is absent."""
    title = (
        f"# Results: {guarded(report.experiment.title)}\n\n[index.html](index.html) has these tables and figures, and every utterance.\n"
    )
    parts = [title, *map(markdown, every)]
    if drawn:
        parts.append("## Figures\n\n" + "\n".join(f"![{picture.caption}]({picture.name}.png)\n" for picture in drawn))
    if report.experiment.absent:
        parts.append("## Absent\n\n" + "".join(f"- {line}\n" for line in report.experiment.absent))
    return "\n".join(parts)
