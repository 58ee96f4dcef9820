"""Lists as columns, the texts of one in one list of JSON and their scores in another: HyPoradise's
files and Sockeye's lines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from lmtools.base.errors import UserError
from lmtools.formats import pieces
from lmtools.formats.checks import one_score
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import Entry, expect, member, split_columns, unique
from lmtools.types import Hypothesis, NBest

SENTENCE = ("sentence_id", "translation", "score", "translations", "scores")  # of Sockeye


def read_numbered(path) -> Iterator[Entry]:
    """Yield HyPoradise's lists under their `id`, or else their number from 1."""

    def entries() -> Iterator[Entry]:
        for number, (tree, where) in enumerate(json_io.read_list(path), 1):
            utt = tree.get("id", str(number))
            yield str(utt) if isinstance(utt, int) else expect(utt, str, where, "'id'"), tree, where

    return unique(entries())


def parse_hyporadise(utt: str, tree: Mapping, where: str, score: str | None = None) -> NBest:
    """Return a list of `input`, with the scores of the list `score`, -NAME of costs, or none."""
    texts = [
        expect(text, str, where, "a hypothesis") for text in member(tree, "input", list, where)
    ]
    known = (name for name in ("am_score", "score") if name in tree)
    name = (score or next(known, "none")).removeprefix("-")
    scores = [{}] * len(texts)
    if name != "none":
        values = member(tree, name, list, where)
        if len(values) != len(texts):
            raise UserError(
                f"{where}: {len(values)} scores in {name!r} for {len(texts)} hypotheses; give one a"
                " hypothesis"
            )
        sign = -1 if score and score.startswith("-") else 1
        scores = [{"am": sign * expect(value, float, where, name)} for value in values]
    own = ("id", "input", "output", name)
    rows, rest = split_columns(tree, len(texts) or None, own)
    hyps = (
        Hypothesis(text, row, json_io.extras(more, (), where))
        for text, row, more in zip(texts, scores, rows, strict=True)
    )
    ref = json_io.optional(tree, "output", str, where)
    return NBest(utt, tuple(hyps), ref, json_io.extras(rest, (), where))


def spell_hyporadise(nbest: NBest, where: str, score: str = "am_score") -> dict:
    """Return the object of one list, whose scores are called `score`."""
    names = dict.fromkeys(name for hyp in nbest.hyps for name in hyp.extra)
    values = [one_score(hyp, where) for hyp in nbest.hyps]
    sign = -1 if score.startswith("-") else 1
    tree = json_io.values_of(nbest.extra)
    for name in names:
        tree[name] = [json_io.value_of(hyp.extra.get(name, "null")) for hyp in nbest.hyps]
    tree |= {"id": nbest.utt, "input": [hyp.text for hyp in nbest.hyps]}
    if nbest.ref is not None:
        tree["output"] = nbest.ref
    if None not in values and values and score != "none":
        tree[score.removeprefix("-")] = [sign * value for value in values]
    return tree


def read_sentences(path) -> Iterator[Entry]:
    """Yield Sockeye's lines under their `sentence_id`."""

    def entries() -> Iterator[Entry]:
        for tree, where in json_io.read_objects(path):
            number = tree.get("sentence_id")
            if isinstance(number, int) and not isinstance(number, bool):
                yield str(number), tree, where
            else:
                yield member(tree, "sentence_id", str, where), tree, where

    return unique(entries())


def parse_sockeye(utt: str, tree: Mapping, where: str, bpe: str = "none") -> NBest:
    """Return the list of a line, subword marks joined; the score of each translation, or the first
    of its scores (others are of target factors), as it stands.
    """
    if "translations" in tree:
        texts = member(tree, "translations", list, where)
        scores = member(tree, "scores", list, where)
    else:
        texts, scores = [tree.get("translation")], [tree.get("score")]
    if len(texts) != len(scores):
        raise UserError(
            f"{where}: {len(scores)} scores for {len(texts)} translations; fix the line"
        )
    texts = [expect(text, str, where, "a translation") for text in texts]
    scores = [score[0] if isinstance(score, list) and score else score for score in scores]
    rows, rest = split_columns(tree, len(texts), SENTENCE)
    hyps = []
    for text, score, row in zip(texts, scores, rows, strict=True):
        joined = pieces.join_pieces(text, bpe)
        extra = json_io.extras(row, (), where)
        extra |= {"pieces": text} if bpe != "none" and joined != text else {}
        hyps.append(Hypothesis(joined, {"am": expect(score, float, where, "a score")}, extra))
    return NBest(utt, tuple(hyps), None, json_io.extras(rest, (), where))


def orient_scores(nbests: Iterable[NBest], path, bpe: str = "none") -> Iterator[NBest]:
    """Yield lists whose scores are log-probabilities: costs, which rise down a list, negated.

    UserError where scores are neither.
    """
    pieces.check_marks(bpe, "bpe")
    nbests = list(nbests)
    sign = find_sign([[hyp.scores["am"] for hyp in nbest.hyps] for nbest in nbests], path)
    for nbest in nbests:
        hyps = (hyp.with_scores({"am": sign * hyp.scores["am"]}) for hyp in nbest.hyps)
        yield replace(nbest, hyps=tuple(hyps))


def find_sign(lists: Sequence[Sequence[float]], path) -> int:
    """Return 1 for log-probabilities, -1 for costs: by their order in the lists, or else, where all
    are alike, by their own sign; UserError where neither tells.
    """
    steps = [after - before for scores in lists for before, after in pairwise(scores)]
    if not any(steps):
        steps = [score for scores in lists for score in scores]
    if all(step <= 0 for step in steps):
        return 1
    if all(step >= 0 for step in steps):
        return -1
    raise UserError(
        f"{path}: scores rise and fall from one translation of a list to the next, so that nothing"
        " tells whether they are costs; sort each list, the best first"
    )
