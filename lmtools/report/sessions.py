"""Recordings whose segments have lists of their own: what is said of all is joined before it is
counted, as `evaluate --session` does, so that no word is counted twice where a segment ends.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from lmtools.evaluate.edits import align
from lmtools.evaluate.nbest import fill_empty, running_argmax
from lmtools.formats.sessions import find_sessions
from lmtools.types import SESSION, NBest


def join_lists(segments: Sequence[NBest], refs: Mapping[str, str]) -> list[NBest]:
    """Return a list a session of `segments`, with its reference of `refs`.

    Its first hypothesis joins the first ones of its segments; hypothesis k joins those with the
    fewest errors among the first k of each, against the words of the reference that stand beside
    the segment's first one. So the best of k hypotheses is what lists of k can reach, or hardly
    less: a word at a segment's end may stand beside the next.
    """
    return [
        join_session([fill_empty(segments[place]) for place in places], refs)
        for places in find_sessions(segments)
    ]


def join_session(segments: Sequence[NBest], refs: Mapping[str, str]) -> NBest:
    session = segments[0].extra[SESSION]
    texts = [[hyp.text.split() for hyp in one.hyps] for one in segments]
    parts = split_reference(refs[session].split(), [first for first, *_ in texts])
    depth, chosen = max(map(len, texts)), []
    for part, some in zip(parts, texts, strict=True):
        errors = np.array([align(part, words).counts.errors for words in some])
        chosen.append(np.pad(running_argmax(-errors), (0, depth - len(some)), mode="edge"))
    hyps = [
        " ".join(word for some, best in zip(texts, chosen, strict=True) for word in some[best[k]])
        for k in range(depth)
    ]
    return NBest.of(session, hyps, ref=refs[session])


def split_reference(ref: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words of `ref` that stand beside each of `texts`, which follow each other; those
    that none has stand beside the text that the word before them is in.
    """
    owners = [place for place, words in enumerate(texts) for _ in words]
    parts: list[list[str]] = [[] for _ in texts]
    said, owner = 0, owners[0] if owners else 0
    words = iter(ref)
    for step in align(ref, [word for some in texts for word in some]).steps:
        if step != "D":
            owner = owners[said]
            said += 1
        if step != "I":
            parts[owner].append(next(words))
    return parts
