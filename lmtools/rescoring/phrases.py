"""Phrases of a glossary as a feature: the column PHRASES, and its weight under a bound on harm.

The other weights are tuned as without the glossary, so that weight 0 is the system that one has
otherwise; then the weight of the phrases alone is searched, exactly, where the development set has
no more false alarms and no more errors in other words than that system.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.evaluate.phrases import PLACES, PhraseAlignment, false_alarms
from lmtools.formats import scores
from lmtools.formats.glossary import load_glossary
from lmtools.rescoring.envelope import sweep
from lmtools.rescoring.features import PHRASES, Features, ScoreColumns, best, deviate
from lmtools.text.phrases import Glossary, PhraseSpec
from lmtools.text.phrases.spelling import spell
from lmtools.text.phrases.tokens import split_text
from lmtools.types import NBest, ScoreTable

COUNTED = ("phrase_errors", "other_errors", "false_alarms")
# standard errors of the change in errors of other words: the root of the sum of its squares by list
NOISE = 1.0
ORDINARY, FEW = 0.1, 5  # share of first hypotheses that hold a phrase; lists, from which it warns


def read_phrases(
    text: str, scored: tuple[ScoreColumns, Mapping], nbests: Sequence[NBest], source
) -> tuple[ScoreColumns, dict, list[str]]:
    """Read the glossary `F,option=value,..`; return columns and plans as `add_phrases`, and
    warnings.
    """
    glossary = load_glossary(PhraseSpec.parse(text))
    columns, systems = add_phrases(scored, nbests, glossary, source)
    return columns, systems, [*warn_ordinary(nbests, glossary)]


def spell_phrases(lists: Sequence[NBest], glossary: Glossary) -> list[NBest]:
    """Return lists whose hypotheses are written with the phrases as the glossary writes them; their
    texts stay.
    """
    return [
        replace(
            nbest,
            hyps=tuple(
                replace(hyp, written=spell(hyp.display, glossary.unweighted(nbest.utt)))
                for hyp in nbest.hyps
            ),
        )
        for nbest in lists
    ]


def score_phrases(nbests: Sequence[NBest], glossary: Glossary) -> ScoreTable:
    """Return the column: for each hypothesis the sum of weight times words of the phrases in it."""
    values = []
    for nbest in nbests:
        automaton = glossary.of(nbest.utt)
        values.append(np.array([automaton.value(split_text(hyp.text)) for hyp in nbest.hyps]))
    counts = [np.ones(len(row), dtype=np.int64) for row in values]
    return scores.make_table(nbests, values, counts, glossary.spec.signature)


def add_phrases(
    scored: tuple[ScoreColumns, Mapping], nbests: Sequence[NBest], glossary: Glossary, source
) -> tuple[ScoreColumns, dict]:
    """Return columns and the plans of systems with PHRASES; UserError where a column is called so,
    and where no utterance of `source` has phrases of a glossary by id.
    """
    columns, systems = scored
    path = glossary.spec.path
    if PHRASES in columns.values:
        raise UserError(
            f"--scores {PHRASES}=...: the column of --phrases has this name; choose another"
        )
    unused = glossary.unused(nbest.utt for nbest in nbests)
    if glossary.own and len(unused) == len(glossary.own):
        raise UserError(
            f"{path}: id {unused[0]!r} and all others mean no utterance of {source}; give ids of"
            " utterances, or what these begin with, or option utt2spk=F"
        )
    table = score_phrases(nbests, glossary)
    added = replace(
        columns,
        values={**columns.values, PHRASES: [table.log_prob[nbest.utt] for nbest in nbests]},
        signatures={**columns.signatures, PHRASES: table.signature},
        paths={**columns.paths, PHRASES: str(path)},
        tokens={**columns.tokens, PHRASES: table.tokens},
        glossary=glossary,
    )
    return added, {
        name: replace(plan, columns=(*plan.columns, PHRASES)) for name, plan in systems.items()
    }


def warn_ordinary(nbests: Sequence[NBest], glossary: Glossary) -> Iterable[str]:
    """Yield warnings on a glossary without phrases, on ids of no utterance, and on phrases that
    stand in so many first hypotheses that they are ordinary words.
    """
    path = glossary.spec.path
    if not glossary.size:
        yield f"warning: {path}: no phrases; nothing is changed by it"
    if unused := glossary.unused(nbest.utt for nbest in nbests):
        yield f"warning: {path}: {len(unused)} ids mean no utterance (first {unused[0]!r})"
    counts: dict[str, int] = {}
    for nbest in nbests:
        automaton = glossary.unweighted(nbest.utt)
        words = split_text(nbest.hyps[0].text) if nbest.hyps else []
        for written in {found.written for found in automaton.choose(words)}:
            counts[written] = counts.get(written, 0) + 1
    often = [name for name, n in counts.items() if n >= max(FEW, ORDINARY * len(nbests))]
    if often:
        share = counts[often[0]] / len(nbests)
        yield (
            f"warning: {path}: {len(often)} phrases are ordinary words (first {often[0]!r}, in"
            f" {share:.0%} of the first hypotheses); without them there is less harm"
        )


def measure_harm(
    nbests: Sequence[NBest], column: Sequence[Sequence[float]], glossary: Glossary
) -> np.ndarray:
    """Return errors in phrase words, errors in others, and false alarms of each hypothesis
    (utterances, hypotheses, 3): 0 in lists whose `column` is everywhere the same.
    """
    depth = max(1, *(len(nbest.hyps) for nbest in nbests))
    harm = np.zeros((len(nbests), depth, 3), dtype=np.int64)
    for row, (nbest, values) in enumerate(zip(nbests, column, strict=True)):
        if len(values) and np.ptp(values) > 0:
            automaton = glossary.unweighted(nbest.utt)
            counts = np.stack(
                [PhraseAlignment.of(nbest.ref, hyp.text, automaton).count() for hyp in nbest.hyps]
            )
            errors = counts[:, PLACES["phrase errors"]], counts[:, PLACES["other errors"]]
            harm[row, : len(counts)] = np.stack([*errors, false_alarms(counts)], axis=1)
    return harm


def bound_weight(rest: np.ndarray, features: Features, harm: np.ndarray, more: int) -> dict:
    """Return the weight of PHRASES beside the totals `rest` (utterances, hypotheses) of all else,
    with the counts of `harm` at weight 0 and there.

    Of the weights with at most `more` false alarms more than at 0, and with no more errors in other
    words than at 0 or within NOISE of it, those with the fewest errors in all, then in phrase
    words; of these the least, half as much again where that is as good: of what the set cannot tell
    apart, the cautious side.
    """
    usual = harm[np.arange(len(harm)), best(rest, features.valid)][:, None]
    squares = (harm[..., 1:2] - usual[..., 1:2]) ** 2
    counts = np.concatenate([harm, squares], axis=-1)
    curve = sweep(rest, features.column(PHRASES), features.valid, counts)
    ends = curve.ends
    inside = ends > 0
    totals, begins, ends = curve.totals[inside], np.maximum(curve.edges[inside], 0), ends[inside]
    harmless = totals[:, 1] - totals[0, 1] <= NOISE * np.sqrt(totals[:, 3])
    allowed = harmless & (totals[:, 2] <= totals[0, 2] + more)
    least = int(np.lexsort((totals[:, 0], totals[:, 0] + totals[:, 1], ~allowed))[0])
    same = (totals == totals[least]).all(1)
    last = least + int(np.append(~same[least:], True).argmax()) - 1
    begin, end = float(begins[least]), float(ends[last])
    weight = min(1.5 * begin, (begin + end) / 2) if begin > 0 else 0.0
    rows = {"without": totals[0], "with": totals[least]}
    counts = {key: dict(zip(COUNTED, map(int, row[:3]), strict=True)) for key, row in rows.items()}
    lists = int(varying(features))
    return {"weight": weight, "more": more, "from": begin, "lists": lists, **counts}


def varying(features: Features) -> int:
    """Return the number of lists whose hypotheses differ in PHRASES."""
    return deviate(features.column(PHRASES), features.valid)[1].sum()
