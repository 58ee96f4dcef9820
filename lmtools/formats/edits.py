"""Edits of N-best lists, each a function of one list, and of the words of lattices.

Every change of a text goes through `rewrite_list` (`rewrite_arcs` of lattices), which drops what a
format keeps of the old words: no edit leaves ids or times that contradict the text.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.text.marks import drop_marks, find_marks
from lmtools.types import TOTAL, Hypothesis, Lattice, NBest

# Extras that describe each word or token of a text, so that they are of the words they were read
# with
OF_TOKENS = re.compile(
    r"[Ww]ords|segments|items|tokens?|token_int|alignment|result|WordScores|[AIP]"
    r"|timestamp\w*|timesteps|text_frames|\w+_offsets|ys_(log_)?probs|lm_probs|context_scores"
)
TIMES = "times"  # of a ctm: a line a word, right as long as the words are as many
SYSTEM = "system:"  # a score of a pool: whether the hypothesis is that system's
VARIANT = "variant"  # of an arc: which pronunciation of its word


def rewrite_list(
    nbest: NBest,
    hyps: Callable[[str], str] | None = None,
    refs: Callable[[str], str] | None = None,
    keep: bool = False,
) -> NBest:
    """Apply `hyps` and `refs` to the texts of a list; one that does not change keeps its extras,
    one that does is kept as `written` with `keep`.
    """
    if hyps:
        changed = tuple(rewrite_hypothesis(hyp, hyps(hyp.text), keep) for hyp in nbest.hyps)
        nbest = replace(nbest, hyps=changed)
    if refs:
        ref = None if nbest.ref is None else refs(nbest.ref)
        more = tuple(map(refs, nbest.more_refs))
        if (ref, more) != (nbest.ref, nbest.more_refs):
            nbest = replace(nbest, ref=ref, more_refs=more, extra=keep_extras(nbest.extra))
    return nbest


def rewrite_hypothesis(hyp: Hypothesis, text: str, keep: bool = False) -> Hypothesis:
    """Return a hypothesis with another text, without the extras of the old one's tokens."""
    if text == hyp.text:
        return hyp
    fits = hyp.extra.get(TIMES, "").count("\n") + 1 == len(text.split())
    extra = {name: value for name, value in keep_extras(hyp.extra).items() if fits or name != TIMES}
    return replace(hyp.with_text(text) if keep else replace(hyp, text=text), extra=extra)


def keep_extras(extra: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in extra.items() if not OF_TOKENS.fullmatch(name)}


def drop_words(nbest: NBest, words: Collection[str]) -> NBest:
    """Drop `words` from hypotheses and references; texts without them stay as they are."""

    def change(text: str) -> str:
        kept = [word for word in text.split() if word not in words]
        return " ".join(kept) if len(kept) < len(text.split()) else text

    hyps = tuple(drop_times(hyp, words) for hyp in nbest.hyps)
    return rewrite_list(replace(nbest, hyps=hyps), change, change)


def drop_times(hyp: Hypothesis, words: Collection[str]) -> Hypothesis:
    """Drop the times of `words` from a hypothesis that has a line of them a word."""
    keep = [word not in words for word in hyp.text.split()]
    rows = hyp.extra.get(TIMES, "").split("\n")
    if all(keep) or len(rows) != len(keep):
        return hyp
    others = {name: value for name, value in hyp.extra.items() if name != TIMES}
    return replace(hyp, extra={**others, TIMES: "\n".join(compress(rows, keep))})


def strip_marks(nbest: NBest) -> NBest:
    """Drop what stands for no word (`text.marks`) from hypotheses and references."""

    def change(text: str) -> str:
        return drop_marks(text) if find_marks(text) else text

    return rewrite_list(nbest, change, change)


def texts_of(nbest: NBest) -> list[str]:
    return [*(hyp.text for hyp in nbest.hyps), nbest.ref or "", *nbest.more_refs]


def merge_equal(nbest: NBest, normalise: Callable[[str], str]) -> NBest:
    """Merge the hypotheses that `normalise` makes the same words, at their best rank; the one of
    the best total stays (the best rank of equals), in a pool as one of all its systems.
    """
    total = find_total(nbest)
    groups: dict[str, list[Hypothesis]] = {}
    for hyp in nbest.hyps:
        groups.setdefault(" ".join(normalise(hyp.text).split()), []).append(hyp)
    merged = []
    for group in groups.values():
        best = group[0] if total is None else max(group, key=lambda hyp: hyp.scores[total])
        merged.append(keep_systems(best, group))
    return replace(nbest, hyps=tuple(merged))


def keep_systems(best: Hypothesis, group: Sequence[Hypothesis]) -> Hypothesis:
    """Return a hypothesis as one of all the systems of a pool that gave a `group`."""
    votes = {
        name: max(hyp.scores.get(name, value) for hyp in group)
        for name, value in best.scores.items()
        if name.startswith(SYSTEM)
    }
    return best.with_scores({**best.scores, **votes}) if votes else best


def find_total(nbest: NBest) -> str | None:
    """Find the score that ranks hypotheses: `total`, or the only one; else None."""
    names = {name for hyp in nbest.hyps for name in hyp.scores if not name.startswith(SYSTEM)}
    name = TOTAL if TOTAL in names else min(names) if len(names) == 1 else None
    return name if all(name in hyp.scores for hyp in nbest.hyps) else None


def cut_list(nbest: NBest, depth: int) -> NBest:
    """Cut a list after its first `depth` hypotheses."""
    return replace(nbest, hyps=nbest.hyps[:depth])


def rewrite_arcs(lattice: Lattice, change: Callable[[str], str]) -> Lattice:
    """Apply `change` to the words of a lattice; an emptied word is epsilon, a changed one has no
    VARIANT. UserError where a word becomes two.
    """
    changed = {word: change(word).split() for word in set(lattice.words) - {None}}
    if split := sorted(word for word, parts in changed.items() if len(parts) > 1):
        remedy = "an arc holds one word; take lists with lmtools lattice nbest, and convert those"
        raise UserError(
            f"lattice {lattice.utt!r}: {split[0]!r} becomes {' '.join(changed[split[0]])!r};"
            f" {remedy}"
        )
    words = tuple(next(iter(changed.get(word, ())), None) for word in lattice.words)
    if words == lattice.words:
        return lattice
    extra = dict(lattice.extra)
    if VARIANT in extra:
        rows = zip(lattice.words, words, extra[VARIANT], strict=True)
        extra[VARIANT] = tuple(
            variant if (old or "").lower() == (new or "").lower() else ""
            for old, new, variant in rows
        )
    return replace(lattice, words=words, extra=extra)


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


def capitalise(text: str) -> str:
    """Return `text` with an upper-case first letter, as before truecasing, but after digits."""
    first = next((place for place, character in enumerate(text) if character.isalnum()), 0)
    return text[:first] + text[first : first + 1].upper() + text[first + 1 :]
