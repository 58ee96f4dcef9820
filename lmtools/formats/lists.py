"""What one does to N-best lists between reading and writing: attach references, cut, merge repeated texts."""

from collections.abc import Mapping, Sequence

from lmtools.errors import UserError
from lmtools.types import NBest


def attach(nbests: Sequence[NBest], refs: Mapping[str, str], nbest_path, ref_path) -> list[NBest]:
    """`nbests` with the references of `refs`, joined by utterance id; UserError if either side has an id that the other lacks."""
    lists = {nbest.utt for nbest in nbests}
    problems = []
    if missing := [nbest.utt for nbest in nbests if nbest.utt not in refs]:
        problems.append(f"{len(missing)} of {len(nbests)} utterances in {nbest_path} have no reference (first {missing[0]!r})")
    if unknown := [utt for utt in refs if utt not in lists]:
        problems.append(f"{len(unknown)} of {len(refs)} references have no list (first {unknown[0]!r})")
    if problems:
        raise UserError(f"{ref_path}: {', '.join(problems)}; make the ids the same on both sides")
    return [NBest(nbest.utt, nbest.hyps, refs[nbest.utt]) for nbest in nbests]


def cut(nbests: Sequence[NBest], depth: int) -> list[NBest]:
    """The first `depth` hypotheses of each list."""
    return [NBest(nbest.utt, nbest.hyps[:depth], nbest.ref) for nbest in nbests]


def dedup(nbests: Sequence[NBest]) -> list[NBest]:
    """Lists in which every sequence of words occurs once, where it ranks best."""
    merged = []
    for nbest in nbests:
        best = {}
        for hyp in nbest.hyps:
            best.setdefault(tuple(hyp.text.split()), hyp)
        merged.append(NBest(nbest.utt, tuple(best.values()), nbest.ref))
    return merged
