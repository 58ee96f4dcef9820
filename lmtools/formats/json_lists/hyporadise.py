"""HyPoradise's JSON: the texts of a list in one list of JSON and their scores in another."""

from collections.abc import Iterator, Mapping

from lmtools.base.errors import UserError
from lmtools.formats.checks import one_score
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import Entry, expect, member, split_columns, unique
from lmtools.types import Hypothesis, NBest


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
