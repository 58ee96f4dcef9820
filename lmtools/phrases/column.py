"""Phrases of a glossary as a feature: the column PHRASES."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.grammar import list_texts
from lmtools.formats import scores
from lmtools.phrases.glossary import Glossary, PhraseSpec, make_glossary
from lmtools.phrases.matching import split_text
from lmtools.rescoring.features import ScoreColumns
from lmtools.types import PHRASES, NBest, ScoreTable

ORDINARY, FEW = 0.1, 5  # share of first hypotheses that hold a phrase; lists, from which it warns


def read_phrases(
    text: str, scored: tuple[ScoreColumns, Mapping], nbests: Sequence[NBest], source
) -> tuple[ScoreColumns, dict, list[str]]:
    """Read the glossary `F,option=value,..`; return as `add_phrases`, and warnings."""
    glossary = PhraseSpec.parse(text).load()
    columns, systems = add_phrases(scored, nbests, glossary, source)
    return columns, systems, [*warn_ordinary(nbests, glossary)]


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
    """Return columns and plans with PHRASES; UserError where that name or phrases lack."""
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
        glossary=glossary,
    )
    return added, {
        name: replace(plan, columns=(*plan.columns, PHRASES)) for name, plan in systems.items()
    }


def warn_ordinary(nbests: Sequence[NBest], glossary: Glossary) -> Iterable[str]:
    """Yield warnings on a glossary without phrases, none in the lists, or ordinary words."""
    path = glossary.spec.path
    if not glossary.size:
        yield f"warning: {path}: no phrases; nothing is changed by it"
    yield from glossary.warn_absent(
        (nbest.utt, text)
        for nbest in nbests
        for text in (nbest.ref or "", *(hyp.text for hyp in nbest.hyps))
    )
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


def find_glossary(phrases) -> Glossary:
    """Return a glossary of a file's specification, of phrases, or of phrases by id."""
    if isinstance(phrases, Glossary):
        return phrases
    if isinstance(phrases, str | os.PathLike):
        return PhraseSpec.parse(os.fspath(phrases)).load()
    if not isinstance(phrases, Mapping):
        phrases = list_texts(phrases, "phrases")
    return make_glossary(phrases)
