"""New hypotheses with the phrases of a glossary in the place of words that are near to them, by
letters or by sounds, for lists that hold a phrase nowhere.

The first pass gave them no scores: they have those of the hypothesis that they were made of, and
the score NEAR, minus the share of letters (and sounds) that differ, which is 0 of its own
hypotheses. Its weight is the margin by which a phrase has to win.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import say_lines
from lmtools.evaluate.nbest import describe_new
from lmtools.formats import read, write
from lmtools.phrases.evaluate import find_spans
from lmtools.phrases.glossary import Glossary, PhraseSpec
from lmtools.phrases.matching import PhraseAutomaton, find_borders, fold, split_text
from lmtools.rescoring.features import NEAR
from lmtools.rescoring.features import words as spaced
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.parser import add_phrases as add_phrases_option

MARK = "substituted"  # the extra of new hypotheses: the words that were replaced
NEAREST, FARTHEST = 0.01, 0.5  # share of letters that may differ
SOURCES = 3  # first hypotheses of a list whose words are replaced
MORE = 2  # words that may stand for a phrase, beyond its own
Sounds = Mapping[str, str]  # a character a sound, of each word


class NearForm(NamedTuple):
    """A form of a phrase: its letters, its sounds ('': unknown), its words, how it is written."""

    letters: str
    sounds: str
    words: str
    written: str


class Stretch(NamedTuple):
    """Words `start` to `end` (not included) of a hypothesis."""

    hyp: int
    start: int
    end: int


def check_lists(lists: Sequence[NBest], source) -> Sequence[NBest]:
    """Return the lists; UserError where they have a score NEAR."""
    if any(NEAR in hyp.scores for nbest in lists for hyp in nbest.hyps):
        raise UserError(
            f"{source}: the lists have a score {NEAR!r}, of lmtools network substitute; give those"
            " that it was made of"
        )
    return lists


def substitute_lists(
    lists: Iterable[NBest], glossary: Glossary, sounds: Sounds, most: int
) -> Iterator[NBest]:
    """Yield the lists with up to `most` new hypotheses each behind their own, the nearest first."""
    known: dict[tuple[str, ...], list[NearForm]] = {}
    for nbest in lists:
        ids = glossary.ids_of(nbest.utt)
        if ids not in known:
            known = {ids: list_forms(nbest.utt, glossary, sounds)}
        phrases = glossary.unweighted(nbest.utt)
        yield add_phrases(nbest, known[ids], phrases, sounds=sounds, most=most)


def list_forms(utt: str, glossary: Glossary, sounds: Sounds) -> list[NearForm]:
    forms = {}
    for phrase in glossary.phrases_of(utt):
        for words, written in phrase.list_forms(glossary.spec):
            own = " ".join(split_text(written))
            forms["".join(words), own] = NearForm(
                "".join(words), spell(words, sounds), own, written
            )
    return list(forms.values())


def spell(words: Sequence[str], sounds: Sounds) -> str:
    parts = [sounds.get(word, "") for word in words]
    return "".join(parts) if all(parts) else ""


def add_phrases(
    nbest: NBest, forms: Sequence[NearForm], phrases: PhraseAutomaton, sounds: Sounds, most: int
) -> NBest:
    """Return a list with its new hypotheses; every score NEAR is there, of old ones 0."""
    widest = max((len(form.words.split()) for form in forms), default=0) + MORE
    windows = [*list_windows(nbest.hyps[:SOURCES], phrases, widest)]
    spans = [split_text(" ".join(nbest.hyps[w.hyp].text.split()[w.start : w.end])) for w in windows]
    shares = measure(spans, forms, sounds).ravel()
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
            new.append(with_near(hyp, max(float(shares[place]), NEAREST)))
    return replace(nbest, hyps=(*(with_near(hyp, 0.0) for hyp in nbest.hyps), *new))


def list_windows(
    hyps: Sequence[Hypothesis], phrases: PhraseAutomaton, widest: int
) -> Iterator[Stretch]:
    """Yield up to `widest` neighbouring words of hypotheses, none of which is in a phrase."""
    for place, hyp in enumerate(hyps):
        words = hyp.text.split()
        held = {at for span in find_spans(words, phrases) for at in range(span.start, span.end)}
        for start in range(len(words)):
            for end in range(start + 1, min(start + widest, len(words)) + 1):
                if end - 1 in held:
                    break
                if start not in held:
                    yield Stretch(place, start, end)


def measure(
    spans: Sequence[Sequence[str]], forms: Sequence[NearForm], sounds: Sounds
) -> np.ndarray:
    """Return the share of letters that differ between words and forms (spans, forms); where the
    sounds of both are known, the mean of that and of the share of sounds; 1 for what is far.
    """
    letters = ["".join(span) for span in spans]
    shares = compare(letters, [form.letters for form in forms], None if sounds else FARTHEST)
    if sounds:
        heard, said = [spell(span, sounds) for span in spans], [form.sounds for form in forms]
        both = np.outer(list(map(bool, heard)), list(map(bool, said)))
        shares = np.where(both, (shares + compare(heard, said)) / 2, shares)
    return shares


def compare(first: Sequence[str], second: Sequence[str], most: float | None = None) -> np.ndarray:
    """Return the edits between texts by the length of the longer one (first, second); 1 for more
    than `most`.
    """
    if not first or not second:
        return np.ones((len(first), len(second)))
    scorer = Levenshtein.normalized_distance
    return cdist(first, second, scorer=scorer, score_cutoff=most, dtype=np.float64)


def with_near(hyp: Hypothesis, share: float) -> Hypothesis:
    return hyp.with_scores({**hyp.scores, NEAR: -share})


def replace_words(hyp: Hypothesis, window: Stretch, form: NearForm) -> Hypothesis:
    """Return a hypothesis with a phrase in the place of some words, also as the recogniser writes
    it if that has the same number of words.
    """
    words, span = hyp.text.split(), slice(window.start, window.end)
    written = None if hyp.written is None else hyp.written.split()
    if written and len(written) == len(words):
        before, after = find_borders(written[window.start], written[window.end - 1])
        written[span] = [f"{before}{form.written}{after}"]
    else:
        written = None
    mark = {MARK: " ".join(words[span])}
    words[span] = form.words.split()
    return Hypothesis(" ".join(words), hyp.scores, mark, written and " ".join(written))


VARIANT = re.compile(r"\(\d+\)$")  # behind a word: `read(2)`
STRESS = re.compile(r"(?<=[^\d\W])[0-2]$")  # of a vowel: `AH0`
COMMENTS = (";;;", "#")
MOST = 10_000  # sounds, each of which becomes a character


def read_lexicon(path) -> dict[str, str]:
    """Read the first pronunciation of each word, without case, as one character a sound; stress is
    left out. UserError for a word without sounds, more than MOST sounds, and a file without words.
    """
    numbers: dict[str, int] = {}
    sounds: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(COMMENTS):
            continue
        word, *names = line.split()
        if not names:
            raise UserError(
                f"{path}:{number}: no sounds of {word!r:.40}; write a word and its sounds with"
                " blanks between them"
            )
        if len(numbers) > MOST:
            raise UserError(
                f"{path}:{number}: more than {MOST:,} different sounds; give a pronunciation"
                " dictionary, as CMUdict"
            )
        places = [numbers.setdefault(STRESS.sub("", name), len(numbers)) for name in names]
        sounds.setdefault(fold(VARIANT.sub("", word)), "".join(map(chr, places)))
    if not sounds:
        raise UserError(f"{path}: no words; give a pronunciation dictionary, as CMUdict")
    return sounds


def arguments(parser):
    """Add hypotheses with phrases of a glossary in the place of words that are near to them, for
    language models to score.
    """
    parser.add("--nbest", "--format")
    add_phrases_option(parser, required=True)
    help_text = (
        "pronunciation dictionary with lines `word SOUND SOUND ..` (Kaldi's lexicon.txt, CMUdict),"
        " to compare words by letters and sounds (default: by letters)"
    )
    parser.add_argument("--lexicon", metavar="F", help=help_text)
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
    nbests = check_lists(read(args.nbest, args.format), args.nbest)
    glossary = PhraseSpec.parse(args.phrases).load()
    sounds = read_lexicon(args.lexicon) if args.lexicon else {}
    lists = list(substitute_lists(nbests, glossary, sounds, args.depth))
    write(lists, args.out, args.to)
    say_lines(describe_new(nbests, lists, args.out))
