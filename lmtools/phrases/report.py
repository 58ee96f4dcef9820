"""A glossary's words in a report: how well systems have them, and what it costs other words."""

from collections.abc import Iterator

from lmtools.base.log import say_lines
from lmtools.phrases.evaluate import (
    COUNTS,
    F1,
    FALSE_ALARMS,
    PhraseEvaluation,
    align_phrases,
    compare_phrases,
    count_texts,
)
from lmtools.phrases.glossary import Glossary
from lmtools.report.experiment import Experiment
from lmtools.report.main_tables import system_column
from lmtools.report.measure import SEED, Measured
from lmtools.report.rows import FigureRow
from lmtools.report.style import FIRST, ORACLE
from lmtools.report.table import Query, Table, probability, show_interval, table_of

NOTE = (
    "Words of the phrases of `{}`. B-WER: errors at words of its phrases, in percent of these words"
    " of the references; U-WER: errors at all other words (Le et al. 2021). Recall, precision and"
    " F1 are of whole phrases; false alarms are phrases that a system has and the reference has"
    " not. p: against the first pass, of the paired bootstrap."
)


def phrase_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield a table a tested set: how well systems have the glossary's words, and others."""
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


def rows_of_phrases(measured: Measured, glossary: Glossary) -> Iterator[FigureRow]:
    """Yield how well each system has the glossary's words, with intervals and paired p."""
    refs, place = measured.sample.refs, measured.sample.name
    texts = (refs, *(result.texts for result in measured.results.values()))
    say_lines(glossary.warn_absent(pair for side in texts for pair in side.items()))
    judged = {
        name: PhraseEvaluation(count_texts(refs, result.texts, glossary))
        for name, result in {**measured.results, **measured.unnormalised}.items()
    }
    for name, evaluation in judged.items():
        key, chances = ("phrases", name, place), {}
        if name not in (FIRST, ORACLE):
            gaps = compare_phrases(evaluation, judged[FIRST], SEED)
            chances = {quantity: gap.p for quantity, gap in gaps.items()}
        for figure, ends in evaluation.intervals(SEED).items():
            value, ends = evaluation.score(figure), ends or (None, None)
            yield FigureRow(*key, figure, value, *ends, chances.get(figure))
        alarms = evaluation.false_alarms
        yield FigureRow(*key, FALSE_ALARMS, alarms, p=chances.get(FALSE_ALARMS))
        for quantity, count in zip(COUNTS, evaluation.total.tolist(), strict=True):
            yield FigureRow(*key, quantity, count)


def mark_phrases(utt: str, ref: str, text: str, glossary: Glossary) -> list[list[list]]:
    """Return the spans of phrases in the reference of an utterance and in a text."""
    aligned = align_phrases(utt, ref, {utt: text}, glossary)
    sides = ((aligned.ref_spans, aligned.missed()), (aligned.hyp_spans, aligned.false_alarms()))
    return [[[*span, int(span in wrong)] for span in spans] for spans, wrong in sides]
