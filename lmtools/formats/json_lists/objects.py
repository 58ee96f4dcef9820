"""What toolkits write: mlm-scoring and ESPnet1, an object of all lists by utterance; HyPoradise and
Sockeye, the texts of a list in one list of JSON and their scores in another.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from lmtools.base.errors import UserError
from lmtools.formats import checks
from lmtools.formats.checks import component, one_score
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import (
    Entry,
    expect,
    member,
    number_hypotheses,
    parse_scored,
    split_columns,
    unique,
)
from lmtools.types import Hypothesis, NBest

HYP = re.compile("hyp_([0-9]{1,9})", re.ASCII)


def parse_mlm(utt: str, tree: Mapping, where: str, name: str = "am") -> NBest:
    """Return the list of the hypotheses hyp_N by N; `score` is the component `name`."""
    component(name, where.rpartition(": utterance ")[0])
    numbered = {key: int(match[1]) for key in tree if (match := HYP.fullmatch(key))}
    if len(set(numbered.values())) < len(numbered):
        raise UserError(f"{where}: the number of a hypothesis occurs twice; number them from 1")
    keys = sorted(numbered, key=numbered.get)
    hyps = (parse_scored(tree[key], f"{where}: {key}", name=name) for key in keys)
    hyps, ref = tuple(hyps), json_io.optional(tree, "ref", str, where)
    return NBest(utt, hyps, ref, json_io.extras(tree, ("ref", *numbered), where))


def spell_mlm(nbest: NBest, where: str, name: str = "am") -> dict:
    """Return the object of a list; `score` is the component `name`, or the total."""
    hyps = {}
    for rank, hyp in enumerate(nbest.hyps, 1):
        named = name != "am" and name in hyp.scores
        value = hyp.scores[name] if named else one_score(hyp, where)
        score = {} if value is None else {"score": value}
        hyps[f"hyp_{rank}"] = json_io.values_of(hyp.extra) | score | {"text": hyp.text}
    ref = {} if nbest.ref is None else {"ref": nbest.ref}
    return {**json_io.values_of(nbest.extra), **hyps, **ref}


def parse_espnet1(utt: str, tree: Mapping, where: str) -> NBest:
    """Return a list of `output`; UserError for several speakers."""
    outputs = member(tree, "output", list, where)
    if any(isinstance(output, list) for output in outputs):
        raise UserError(
            f"{where}: 'output' is a list of lists, one a speaker; write a file for each speaker"
        )
    hyps = number_hypotheses(outputs, parse_output, where)
    ref = member(outputs[0], "text", str, where) if outputs and "text" in outputs[0] else None
    return NBest(utt, hyps, ref, json_io.extras(tree, ("output",), where))


def parse_output(output, where: str) -> Hypothesis:
    """Return one hypothesis: `rec_text` has its pieces joined, `▁` for a space, `<eos>` at the end;
    `score` is a natural logarithm, all parts of the search weighted and added.
    """
    text = member(expect(output, dict, where, "it"), "rec_text", str, where)
    text = " ".join(text.replace("<eos>", " ").replace("▁", " ").split())
    scores = {"am": member(output, "score", float, where)} if "score" in output else {}
    return Hypothesis(text, scores)


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
    """Return the list of a line, marks joined, with the score of each translation."""
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
        scored = {"am": expect(score, float, where, "a score")}
        extra = json_io.extras(row, (), where)
        hyps.append(Hypothesis(checks.join_pieces(text, bpe), scored, extra))
    return NBest(utt, tuple(hyps), None, json_io.extras(rest, (), where))


def orient_scores(nbests: Iterable[NBest], path, bpe: str = "none") -> Iterator[NBest]:
    """Yield lists with log-probabilities: costs, which rise down a list, negated."""
    checks.check_marks(bpe, "bpe")
    nbests = list(nbests)
    sign = find_sign([[hyp.scores["am"] for hyp in nbest.hyps] for nbest in nbests], path)
    for nbest in nbests:
        hyps = (hyp.with_scores({"am": sign * hyp.scores["am"]}) for hyp in nbest.hyps)
        yield replace(nbest, hyps=tuple(hyps))


def find_sign(lists: Sequence[Sequence[float]], path) -> int:
    """Return 1 for log-probabilities, -1 for costs, by order or sign; else UserError."""
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
