"""Texts of N-best lists and lattices rewritten, all in one way: `rewrite_lists` and `rewrite_arcs`;
what a format keeps of the old words must not contradict.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.text import marks
from lmtools.types import Hypothesis, Lattice, NBest

# Extras that say something of each word or token of a text, verbatim, so that they are about the
# words which stood there
OF_TOKENS = re.compile(
    r"[Ww]ords|nwords|spoken|segments|items|tokens?|token_int|alignment|result|WordScores|[AHIP]"
    r"|timestamp\w*|timesteps|text_frames|\w+_offsets|ys_(log_)?probs|lm_probs|context_scores"
)
TIMES = "times"  # of a ctm: a line a word, right as long as the words are as many


def read_words(path) -> frozenset[str]:
    """Read a list of words, one a line; UserError for a line of several, and for no word."""
    words = set()
    for number, line in read_lines(path):
        if len(line.split()) > 1:
            raise UserError(
                f"{path}:{number}: {len(line.split())} words on a line; write one a line"
            )
        words.update(line.split())
    if not words:
        raise UserError(f"{path}:1: no words; write those to drop, one a line")
    return frozenset(words)


def read_spellings(path) -> dict[str, str]:
    """Read words and what stands for each, of lines `WORD WORDS..` as Kaldi's utils/apply_map.pl
    reads them; UserError for a line of one word, for a word given twice, and for none.
    """
    spellings = {}
    for number, line in read_lines(path):
        word, *others = line.split() or [""]
        if word and not others:
            raise UserError(f"{path}:{number}: {word!r} alone; write what stands for it after it")
        if word in spellings:
            raise UserError(f"{path}:{number}: {word!r} a second time; leave one line")
        if word:
            spellings[word] = " ".join(others)
    if not spellings:
        raise UserError(f"{path}:1: no words; write a line `mr mister` for each")
    return spellings


def spell(text: str, spellings: Mapping[str, str]) -> str:
    """Replace the words of a text that have `spellings`, once."""
    words = text.split()
    if spellings.keys().isdisjoint(words):
        return text
    return " ".join(spellings.get(word, word) for word in words)


def drop_words(nbests: Sequence[NBest], words: Collection[str]) -> tuple[list[NBest], int]:
    """Lists whose hypotheses and references lack `words`, and how many words that were; texts
    without them stay as they are.
    """
    dropped = 0

    def kept(text: str) -> list[bool]:
        nonlocal dropped
        keep = [word not in words for word in text.split()]
        dropped += len(keep) - sum(keep)
        return keep

    def shorter(hyp: Hypothesis) -> Hypothesis:
        keep = kept(hyp.text)
        if all(keep):
            return hyp
        rows = hyp.extra.get(TIMES, "").split("\n")
        times = (
            {TIMES: "\n".join(choose_rows(rows, keep))}
            if len(rows) == len(keep) and any(keep)
            else {}
        )
        others = {name: value for name, value in hyp.extra.items() if name != TIMES}
        return drop_stale(
            replace(
                hyp, text=" ".join(choose_rows(hyp.text.split(), keep)), extra={**others, **times}
            )
        )

    def reference(text: str) -> str:
        return text if all(keep := kept(text)) else " ".join(choose_rows(text.split(), keep))

    return [
        rewrite_ref(replace(nbest, hyps=tuple(map(shorter, nbest.hyps))), reference)
        for nbest in nbests
    ], dropped


def drop_marks(nbests: Sequence[NBest]) -> tuple[list[NBest], int]:
    """Lists whose hypotheses and references lack what `text.marks` finds, and how many that was."""
    texts = (
        text
        for nbest in nbests
        for text in (*(hyp.text for hyp in nbest.hyps), nbest.ref or "", *nbest.more_refs)
    )
    count = sum(len(marks.find_marks(text)) for text in texts)

    def change(text: str) -> str:
        return marks.drop_marks(text) if marks.find_marks(text) else text

    return rewrite_lists(nbests, change, change), count


def choose_rows(rows: Sequence[str], keep: Sequence[bool]) -> list[str]:
    """Return the rows to keep."""
    return [row for row, wanted in zip(rows, keep, strict=True) if wanted]


def drop_stale(hyp: Hypothesis) -> Hypothesis:
    """Drop from a hypothesis, its text changed, what its format kept of the tokens it had."""
    fits = hyp.extra.get(TIMES, "").count("\n") + 1 == len(hyp.text.split())
    kept = keep_extras(hyp.extra)
    return replace(hyp, extra={name: kept[name] for name in kept if fits or name != TIMES})


def keep_extras(extra: Mapping[str, str]) -> Mapping[str, str]:
    """Return the extras that do not describe tokens."""
    return {name: value for name, value in extra.items() if not OF_TOKENS.fullmatch(name)}


def rewrite_ref(nbest: NBest, change: Callable[[str], str]) -> NBest:
    """Apply `change` to the references of a list, if it has any."""
    ref = None if nbest.ref is None else change(nbest.ref)
    more = tuple(map(change, nbest.more_refs))
    if (ref, more) == (nbest.ref, nbest.more_refs):
        return nbest
    return replace(nbest, ref=ref, more_refs=more, extra=keep_extras(nbest.extra))


def rewrite_lists(
    nbests: Sequence[NBest],
    hyps: Callable[[str], str] | None = None,
    refs: Callable[[str], str] | None = None,
    keep: bool = False,
) -> list[NBest]:
    """Return lists with `hyps` applied to the texts of hypotheses, `refs` to those of references;
    None: they stay. A text that does not change keeps its extras. With `keep`, hypotheses have
    what they were as `written`.
    """

    def rewrite_hyp(hyp: Hypothesis) -> Hypothesis:
        text = hyps(hyp.text)
        if text == hyp.text:
            return hyp
        return drop_stale(hyp.with_text(text) if keep else replace(hyp, text=text))

    if hyps:
        nbests = [replace(nbest, hyps=tuple(map(rewrite_hyp, nbest.hyps))) for nbest in nbests]
    return [rewrite_ref(nbest, refs) for nbest in nbests] if refs else list(nbests)


def capitalise(text: str) -> str:
    """Return `text` with its first letter in upper case, unless a digit comes before: what
    truecasing took from the head of a sentence.
    """
    first = next((place for place, character in enumerate(text) if character.isalnum()), 0)
    return text[:first] + text[first : first + 1].upper() + text[first + 1 :]


def rewrite_arcs(lattice: Lattice, change: Callable[[str], str]) -> Lattice:
    """Apply `change` to the words of a lattice; an arc whose word it empties is epsilon. UserError
    where it makes a word two.
    """
    made = {word: change(word).split() for word in set(lattice.words) - {None}}
    if split := sorted(word for word, parts in made.items() if len(parts) > 1):
        remedy = "an arc holds one word; take lists with lmtools lattice nbest, and convert those"
        raise UserError(
            f"lattice {lattice.utt!r}: {split[0]!r} becomes {' '.join(made[split[0]])!r}; {remedy}"
        )
    words = tuple(
        None if word is None or not made[word] else made[word][0] for word in lattice.words
    )
    return lattice if words == lattice.words else replace(lattice, words=words)
