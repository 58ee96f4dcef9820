"""Reports language models by themselves, and, where lists are given, what rescoring with them
reaches beside their perplexities.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from lmtools.report.lm.experiment import LmExperiment, collect_lms
from lmtools.report.lm.figures import LM_PICTURES
from lmtools.report.lm.tables import LM_TABLES
from lmtools.report.page.drawing import Picture
from lmtools.report.page.table import Table
from lmtools.report.rescoring.experiment import RescoringExperiment, collect_rescoring
from lmtools.report.rescoring.ppl_figures import ppl_pictures
from lmtools.report.rescoring.samples import lists_beside
from lmtools.report.rescoring.scores import main_tables
from lmtools.report.rescoring.tables import misfits, ppl_tables, weight_tables
from lmtools.report.style import Style


@dataclass(frozen=True, kw_only=True)
class RescoringLms(LmExperiment):
    """Language models by themselves, and the lists that were rescored with them, whose references'
    perplexities are theirs alone.
    """

    rescored: RescoringExperiment

    @property
    def sizes(self) -> list[str]:
        return [*super().sizes, *self.rescored.sizes]

    @property
    def remarks(self) -> list[str]:
        return [*super().remarks, *self.rescored.remarks]

    @property
    def draws(self) -> list[str]:
        return [*super().draws, *self.rescored.draws]

    def quantity(self, kind: str, name: str, place: str) -> float | None:
        """Also what was measured of the lists."""
        found = super().quantity(kind, name, place)
        return self.rescored.quantity(kind, name, place) if found is None else found

    def browsed(self) -> dict:
        return self.rescored.browsed()


def collect_rescoring_lms(
    home: Path,
    nbests: Sequence[str] = (),
    title: str | None = None,
    command: str = "lmtools report",
    style: Style | None = None,
) -> LmExperiment:
    """Return the language-modelling experiment in directory `home`, with the lists in the files
    `nbests`, or those beside it that were rescored.
    """
    if not nbests and not (lists_beside(home) and any(home.glob("rescore/*/*.txt"))):
        return collect_lms(home, title, command, style)
    rescored = collect_rescoring(home, nbests, title, command, style)
    names = {sample.name for sample in rescored.samples}
    lms = collect_lms(home, title, command, style, names)
    ppl = {key: tree for key, tree in rescored.ppl.items() if key[1] in names}
    parts = {one.name: getattr(lms, one.name) for one in fields(lms)}
    parts["absent"] = tuple(dict.fromkeys((*lms.absent, *rescored.absent)))
    return RescoringLms(**parts, rescored=replace(rescored, ppl=ppl))


def rescoring_tables(experiment: LmExperiment) -> Iterator[Table]:
    """Yield what rescoring with the language models reaches, and their perplexities beside it."""
    if isinstance(experiment, RescoringLms):
        for make in (main_tables, ppl_tables, weight_tables):
            yield from make(experiment.rescored)


def rescoring_pictures(experiment: LmExperiment) -> Iterator[Picture]:
    """Yield perplexity against the score of rescoring."""
    if isinstance(experiment, RescoringLms):
        yield from ppl_pictures(experiment.rescored)


def rescoring_misfits(experiment: LmExperiment) -> list[str]:
    """Return a line for what does not fit in rescored lists."""
    return misfits(experiment.rescored) if isinstance(experiment, RescoringLms) else []


RESCORING_LM_TABLES = (LM_TABLES[0], rescoring_tables, *LM_TABLES[1:])
RESCORING_LM_PICTURES = {"ppl": rescoring_pictures, **LM_PICTURES}
