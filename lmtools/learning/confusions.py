"""What a recogniser mishears: words of its answers, what was said there, how often, and how often
that would have been right in lists that did not teach it.

A confusion never applies by itself: it makes further hypotheses, which weights and a margin judge.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from lmtools.base.errors import UserError
from lmtools.evaluate.edits import number_units
from lmtools.formats.confusions import Confusion
from lmtools.rescoring.features import rank_score
from lmtools.rescoring.margins import SOURCE
from lmtools.types import NBest

LONGEST = 3  # words of a confusion
PARTS = 5  # of the lists, in their order, each tested by what the others teach
FEWEST = 2  # times that others must have it, to be tested
LEARNT = "learnt"  # source of hypotheses with confusions undone
UNDONE = "undone"  # the score of what a confusion may have spoilt
LEAST = 0.01  # distance of a hypothesis whose confusion was always right
Words = tuple[str, ...]


class ErrorPlace(NamedTuple):
    """Words from `begin` to `end` of an answer where `said` was said."""

    begin: int
    end: int
    said: Words


def find_errors(heard: Sequence[str], said: Sequence[str]) -> Iterator[ErrorPlace]:
    """Yield the stretches of up to LONGEST words that differ; where nothing was heard, with the
    word before, or the one behind.
    """
    ids: dict[str, int] = {}
    edits = Levenshtein.opcodes(number_units(heard, ids), number_units(said, ids))
    wrong: list[list[int]] = []
    for tag, *ends in edits.as_list():
        if tag == "equal":
            continue
        if wrong and wrong[-1][1] == ends[0] and wrong[-1][3] == ends[2]:
            wrong[-1][1::2] = ends[1::2]
        else:
            wrong.append(ends)
    for begin, end, first, last in wrong:
        if begin == end and begin and first:
            begin, first = begin - 1, first - 1
        elif begin == end and end < len(heard) and last < len(said):
            end, last = end + 1, last + 1
        if max(end - begin, last - first) <= LONGEST and end > begin:
            yield ErrorPlace(begin, end, tuple(said[first:last]))


class Tally:
    """Confusions of pairs (heard, said), and how often each stretch of words was heard."""

    def __init__(self, pairs: Iterable[tuple[Words, Words]]):
        self.errors: Counter[tuple[Words, Words]] = Counter()
        self.heard: Counter[Words] = Counter()
        for heard, said in pairs:
            for error in find_errors(heard, said):
                self.errors[heard[error.begin : error.end], error.said] += 1
            self.heard.update(words for _, words in list_stretches(heard))

    def likeliest(self) -> dict[Words, Words]:
        """Return for what is heard what most often was said, at least FEWEST times."""
        found: dict[Words, Words] = {}
        for (heard, said), count in self.errors.most_common():
            if count >= FEWEST:
                found.setdefault(heard, said)
        return found


def list_stretches(words: Words) -> Iterator[tuple[int, Words]]:
    for size in range(1, LONGEST + 1):
        for begin in range(len(words) - size + 1):
            yield begin, words[begin : begin + size]


def pair_lists(nbests: Sequence[NBest], source) -> list[tuple[Words, Words]]:
    """Return the words of each list's first hypothesis and reference; UserError without one."""
    for nbest in nbests:
        if nbest.ref is None:
            raise UserError(
                f"{source}: utterance {nbest.utt!r} has no reference; attach what was said with"
                " lmtools convert --ref"
            )
    first = [nbest.hyps[0].text if nbest.hyps else "" for nbest in nbests]
    pairs = zip(first, nbests, strict=True)
    return [(tuple(text.split()), tuple(nbest.ref.split())) for text, nbest in pairs]


def estimate(pairs: Sequence[tuple[Words, Words]]) -> list[Confusion]:
    """Estimate the confusions of pairs in their order, the most frequent first; each of PARTS
    stretches of pairs is tested by what the others have.
    """
    tested, right = Counter(), Counter()
    bounds = [len(pairs) * part // PARTS for part in range(PARTS + 1)]
    for begin, end in pairwise(bounds):
        known = Tally([*pairs[:begin], *pairs[end:]]).likeliest()
        for heard, said in pairs[begin:end]:
            errors = {(e.begin, e.end): e.said for e in find_errors(heard, said)}
            for place, words in list_stretches(heard):
                if words in known:
                    confusion = words, known[words]
                    tested[confusion] += 1
                    is_right = errors.get((place, place + len(words))) == known[words]
                    right[confusion] += is_right
    counts = Tally(pairs)
    return [
        Confusion(
            heard=" ".join(heard),
            said=" ".join(said),
            count=count,
            of=counts.heard[heard],
            tested=tested[heard, said],
            right=right[heard, said],
        )
        for (heard, said), count in sorted(
            counts.errors.items(), key=lambda item: (-item[1], item[0])
        )
    ]


def undo_confusions(
    lists: Iterable[NBest], confusions: Iterable[Confusion], most: int
) -> Iterator[NBest]:
    """Yield the lists with up to `most` new hypotheses each: the first with what was said in the
    place of what was heard, the most precise first. Their score UNDONE is minus the share of tests
    in which the confusion was wrong, of others 0; other scores are the first's, `rank` where lists
    have none.
    """
    by_heard: dict[Words, list[Confusion]] = defaultdict(list)
    for one in confusions:
        if one.right:
            by_heard[tuple(one.heard.split())].append(one)
    for nbest in lists:
        own = [
            hyp.with_scores({**(hyp.scores or {"rank": rank_score(place)}), UNDONE: 0.0})
            for place, hyp in enumerate(nbest.hyps)
        ]
        known, new = {" ".join(hyp.text.split()) for hyp in own}, []
        words = tuple(own[0].text.split()) if own else ()
        places = [
            (one, place, heard)
            for place, heard in list_stretches(words)
            for one in by_heard.get(heard, ())
        ]
        for one, place, heard in sorted(places, key=lambda item: (-item[0].precision, item[1])):
            end = place + len(heard)
            text = " ".join([*words[:place], *one.said.split(), *words[end:]])
            if text not in known and len(new) < most:
                known.add(text)
                scores = {**own[0].scores, UNDONE: -max(LEAST, 1 - one.precision)}
                hyp = replace(own[0], text=text, scores=scores, written=None)
                new.append(replace(hyp, extra={SOURCE: LEARNT}))
        yield replace(nbest, hyps=(*own, *new))
