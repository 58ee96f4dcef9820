"""The table of a glossary's words: how well systems have them, and what it costs other words."""

from collections.abc import Iterator

from lmtools.evaluate.phrases import F1, FALSE_ALARMS
from lmtools.report.experiment import Experiment
from lmtools.report.rescoring_tables import system_column
from lmtools.report.table import Query, Table, probability, show_interval, table_of

NOTE = (
    "Words of the phrases of `{}`. B-WER: errors at words of its phrases, in percent of these words"
    " of the references; U-WER: errors at all other words (Le et al. 2021). Recall, precision and"
    " F1 are of whole phrases; false alarms are phrases that a system has and the reference has"
    " not. p: against the first pass, of the paired bootstrap."
)


def phrase_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield for each set that weights were not tuned on how well each system has the words of the
    glossary, and all others.
    """
    lists = experiment.lists
    for measured in lists.judged if lists.glossary else ():
        place = measured.sample.name
        query = Query(experiment.rows, "phrases", list(measured.results))
        columns = [system_column(experiment, query)]
        for rate in ("B-WER", "U-WER"):
            columns += [
                query.column(f"{rate} %", rate, place),
                query.printed("95% CI", show_interval, rate, place),
                query.printed("p", lambda row: probability(row.p), rate, place),
            ]
        columns += [query.column(f"{rate} %", rate, place) for rate in ("recall", "precision", F1)]
        columns.append(query.column(FALSE_ALARMS, FALSE_ALARMS, place, digits=0))
        notes = [NOTE.format(lists.glossary.spec.path)]
        yield table_of(f"Words of the glossary: {place}", columns, notes, full=True)
