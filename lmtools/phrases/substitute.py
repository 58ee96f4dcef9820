"""New hypotheses with the phrases of a glossary in the place of words that are spelled nearly so,
for lists that hold a phrase nowhere.

The first pass gave them no scores: they have those of the hypothesis that they were made of, and
the score NEAR, minus the share of letters that differ, which is 0 of its own hypotheses. Its weight
is the margin by which a phrase has to win.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from lmtools.base.errors import UserError
from lmtools.base.log import say_lines
from lmtools.evaluate.nbest import describe_new
from lmtools.formats import read, write
from lmtools.phrases.evaluate import find_spans
from lmtools.phrases.glossary import Glossary, PhraseSpec
from lmtools.phrases.matching import (
    PhraseAutomaton,
    cut_units,
    find_borders,
    join_units,
    split_text,
)
from lmtools.rescoring.features import NEAR
from lmtools.rescoring.features import words as spaced
from lmtools.text.scripts import join_characters, split_units
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.parser import add_phrases as add_phrases_option

MARK = "substituted"  # the extra of new hypotheses: the words that were replaced
NEAREST, FARTHEST = 0.01, 0.5  # share of letters that may differ
SOURCES = 3  # first hypotheses of a list whose words are replaced
MORE = 2  # words that may stand for a phrase, beyond its own


class NearForm(NamedTuple):
    """A form of a phrase: its letters, the phrase's words, how it is written."""

    letters: str
    words: str
    written: str


class Stretch(NamedTuple):
    """Words `start` to `end` (not included) of a hypothesis."""

    hyp: int
    start: int
    end: int


def substitute_lists(lists: Iterable[NBest], glossary: Glossary, most: int) -> Iterator[NBest]:
    """Yield the lists with up to `most` new hypotheses each behind their own, the nearest first."""
    known: dict[tuple[str, ...], list[NearForm]] = {}
    for nbest in lists:
        ids = glossary.ids_of(nbest.utt)
        if ids not in known:
            forms = {}
            for phrase in glossary.phrases_of(nbest.utt):
                own = " ".join(phrase.forms[0])
                for words in phrase.forms:
                    forms["".join(words), own] = NearForm("".join(words), own, phrase.written)
            known = {ids: [*forms.values()]}
        yield add_phrases(nbest, known[ids], glossary.unweighted(nbest.utt), most)


def add_phrases(
    nbest: NBest, forms: Sequence[NearForm], phrases: PhraseAutomaton, most: int
) -> NBest:
    """Return a list with its new hypotheses; every score NEAR is there, of old ones 0."""
    widest = max((len(form.words.split()) for form in forms), default=0) + MORE
    windows = [*list_windows(nbest.hyps[:SOURCES], phrases, widest)]
    heard = [
        "".join(split_text(" ".join(split_units(nbest.hyps[w.hyp].text)[w.start : w.end])))
        for w in windows
    ]
    # the share of letters that differ; 1 of what is farther than FARTHEST
    scorer, letters = Levenshtein.normalized_distance, [form.letters for form in forms]
    options = {"scorer": scorer, "score_cutoff": FARTHEST, "dtype": np.float64}
    shares = cdist(heard, letters, **options).ravel() if heard and letters else np.zeros(0)
    known = {spaced(hyp) for hyp in nbest.hyps}
    new: list[Hypothesis] = []
    near = np.flatnonzero(shares <= FARTHEST)
    for place in near[np.argsort(shares[near], kind="stable")].tolist():
        if len(new) == most:
            break
        window, form = windows[place // len(forms)], forms[place % len(forms)]
        hyp = replace_words(nbest.hyps[window.hyp], window, form)
        if hyp.text not in known:
            known.add(hyp.text)
            share = max(float(shares[place]), NEAREST)
            new.append(hyp.with_scores({**hyp.scores, NEAR: -share}))
    own = (hyp.with_scores({**hyp.scores, NEAR: 0.0}) for hyp in nbest.hyps)
    return replace(nbest, hyps=(*own, *new))


def list_windows(
    hyps: Sequence[Hypothesis], phrases: PhraseAutomaton, widest: int
) -> Iterator[Stretch]:
    for place, hyp in enumerate(hyps):
        words = split_units(hyp.text)
        held = {at for span in find_spans(words, phrases) for at in range(span.start, span.end)}
        for start in range(len(words)):
            for end in range(start + 1, min(start + widest, len(words)) + 1):
                if end - 1 in held:
                    break
                if start not in held:
                    yield Stretch(place, start, end)


def replace_words(hyp: Hypothesis, window: Stretch, form: NearForm) -> Hypothesis:
    """Return a hypothesis with a phrase in the place of some words, also as it is written."""
    (words, blanks), span = cut_units(hyp.text), slice(window.start, window.end)
    shown, shown_blanks = cut_units(hyp.written or "")
    rest, written = [""] * (window.end - window.start - 1), None
    if len(shown) == len(words):
        before, after = find_borders(shown[window.start], shown[window.end - 1])
        shown[span] = [f"{before}{form.written}{after}", *rest]
        written = join_units(shown, shown_blanks)
    mark = {MARK: join_units(words[span], blanks[span])}
    words[span] = [join_characters(form.words), *rest]
    return Hypothesis(join_units(words, blanks), hyp.scores, mark, written)


def arguments(parser):
    """Add hypotheses with phrases of a glossary in the place of words that are near to them, for
    language models to score.
    """
    parser.add("--nbest", "--format")
    add_phrases_option(parser, required=True)
    parser.add(
        "--depth", default=10, help="number of new hypotheses for each list (default: %(default)s)"
    )
    help_text = (
        "lists to write, in which new hypotheses are marked `substituted` and have a score `near`"
        " for `lmtools tune`; - prints them"
    )
    parser.add("--out", help=help_text)
    parser.add("--to")


def run(args):
    """Read, substitute, write, and say what the lists could reach."""
    nbests = read(args.nbest, args.format)
    if any(NEAR in hyp.scores for nbest in nbests for hyp in nbest.hyps):
        raise UserError(
            f"{args.nbest}: the lists have a score {NEAR!r}, of lmtools network substitute; give"
            " those that it was made of"
        )
    lists = list(substitute_lists(nbests, PhraseSpec.parse(args.phrases).load(), args.depth))
    write(lists, args.out, args.to)
    say_lines(describe_new(nbests, lists, args.out))
