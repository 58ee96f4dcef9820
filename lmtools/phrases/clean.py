"""lmtools harm: how often a glossary changes text that is right, with exact bounds.

Every sentence stands for a recogniser's right answer, so every change is a false one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein
from scipy.special import betaincinv

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, in_keywords
from lmtools.base.grammar import list_texts
from lmtools.base.log import say
from lmtools.phrases.column import find_glossary
from lmtools.phrases.matching import split_text
from lmtools.text.blocks import read_text
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.numbers import share
from lmtools.verbs.parser import add_phrases

LEVEL = 0.95  # confidence of the bounds
SHOWN = 5  # changes that are printed

EXAMPLES = (
    "lmtools harm --text text.txt --phrases names.txt",
    "lmtools harm --text text.txt --phrases names.txt --most 0.9 --out changes.tsv",
)


@dataclass(frozen=True)
class Harm:
    """The changes of clean sentences (row from 1, before, after), and by sentence the `edits`
    (stretches of words that differ) and the `words`.
    """

    changes: tuple[tuple[int, str, str], ...]
    edits: tuple[int, ...]
    words: tuple[int, ...]

    @property
    def sentences(self) -> int:
        return len(self.words)

    @property
    def changed(self) -> int:
        """The number of sentences that were changed."""
        return len(self.changes)

    def bound(self, level: float = LEVEL) -> float:
        """Return what the share of changed sentences is at most (Clopper and Pearson 1934)."""
        return bound_share(self.changed, self.sentences, level)

    def word_bound(self, level: float = LEVEL) -> float:
        """Return what edits are at most, for a word: `bound_share` of numbers that are divided by
        the design effect, since edits of a sentence come together (Korn and Graubard 1998).
        """
        number, size = np.asarray(self.edits, np.float64), np.asarray(self.words, np.float64)
        total, rows = float(size.sum()), len(size)
        seen = float(number.sum()) / total if total else 1.0
        effect = 1.0
        if 0 < seen < 1:
            apart = float(((number - seen * size) ** 2).sum()) * rows / max(rows - 1, 1)
            effect = max(1.0, apart / (total * seen * (1 - seen)))
        return bound_share(number.sum() / effect, total / effect, level)


def bound_share(count: float, total: float, level: float = LEVEL) -> float:
    """Return the one-sided upper bound of a share of which `count` of `total` were seen; of nothing
    it is 1.
    """
    return 1.0 if count >= total else float(betaincinv(count + 1, total - count, level))


@in_keywords()
def measure_harm(texts: Sequence[str], phrases) -> Harm:
    """Return how often right texts would be changed by the glossary `phrases`, which writes its
    phrases for the forms that stand for them.

    The result has `changed` of `sentences`, `bound()` of their share, `word_bound()` of false edits
    for a word, and the `changes`. UserError for a glossary that cannot be read.
    """
    lists = [
        NBest(str(row), (Hypothesis(text),), text)
        for row, text in enumerate(list_texts(texts, "texts"), 1)
    ]
    spelled = find_glossary(phrases).spell_lists(lists)
    written = [nbest.hyps[0].display or nbest.hyps[0].text for nbest in spelled]
    pairs = [(split_text(old), split_text(new)) for old, new in zip(texts, written, strict=True)]
    edits = tuple(count_edits(old, new) for old, new in pairs)
    rows = [row for row, count in enumerate(edits) if count]
    changes = tuple((row + 1, texts[row], written[row]) for row in rows)
    return Harm(changes, edits, tuple(len(old) for old, _ in pairs))


def count_edits(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of stretches of words in which two texts differ."""
    tags = [step.tag != "equal" for step in Levenshtein.opcodes(first, second)]
    return sum(tag and not before for before, tag in zip([False, *tags[:-1]], tags, strict=True))


def arguments(parser):
    parser.epilog = (
        "Every sentence counts as a recogniser's right answer, so every change is a false one: a"
        " form of the glossary that stands for its phrase is written out in each."
    )
    help_text = "right text as your lists write it, one sentence on each line"
    parser.add("--text", required=True, help=help_text)
    add_phrases(parser)
    help_text = "end with status 1 if the bound on changed sentences is above this share (0 to 1)"
    parser.add_argument("--most", type=share, metavar="SHARE", help=help_text)
    help_text = "list of all changes to write: line, from, to"
    parser.add("--out", required=False, metavar="F.tsv", help=help_text)


def run(args) -> int:
    """Read, measure, and print counts with their bounds; 1 if --most is exceeded."""
    texts = [line for _, line in read_text(args.text) if line.strip()]
    if not texts:
        raise UserError(f"{args.text}: no sentences; give text, one sentence on each line")
    if args.phrases is None:
        raise UserError("--phrases: what may change the text? give a glossary")
    harm = measure_harm(texts, args.phrases)
    if args.out:
        with atomic_text(args.out) as file:
            file.writelines("\t".join(map(str, change)) + "\n" for change in harm.changes)
    for line in describe(harm, args.text):
        print(line)
    if args.most is not None and harm.bound() > args.most:
        say(f"lmtools harm: the bound {harm.bound():.3%} is above --most {args.most:.3%}")
        return 1
    return 0


def describe(harm: Harm, source: str) -> Iterator[str]:
    """Yield counts, bounds, and the first changes."""
    yield (
        f"{source}: {harm.changed} of {harm.sentences} sentences changed; with {LEVEL:.0%}"
        f" confidence at most {harm.bound():.3%} of such sentences are (Clopper-Pearson)"
    )
    yield (
        f"{source}: {sum(harm.edits)} false edits in {sum(harm.words)} words; with {LEVEL:.0%}"
        f" confidence at most {harm.word_bound():.4%} of the words (Korn-Graubard)"
    )
    for row, first, written in harm.changes[:SHOWN]:
        yield f"{row}: {first!r:.90} -> {written!r:.90}"
    if harm.changed > SHOWN:
        yield f"and {harm.changed - SHOWN} more, all of which --out lists"
