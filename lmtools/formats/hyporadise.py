"""HyPoradise's lists: `[{"id": "a1", "input": [hypotheses, best first], "output": reference,
"am_score": [one a hypothesis]}, ...]`.

`am_score`, or else `score`, becomes the component `am`: in the published sets it is a logarithm,
higher is better, and averaged over tokens, so that it can be compared within a list but grows no
longer with the sentence. Sets without it are lists without scores. `id` may be missing: the number
of the list from 1 takes its place. Whatever else an object holds is kept as extra, a list as long
as `input` item by item.
"""

from collections.abc import Iterable, Iterator, Mapping

from lmtools.errors import UserError
from lmtools.formats import json_io
from lmtools.formats.checks import check_nbests, components, first_time, identifier, one_score
from lmtools.types import Hypothesis, NBest

ABOUT = "HyPoradise json: input, output, am_score or score"
OPTIONS = {
    "score": (
        "the list of first-pass scores (am_score, else score); -NAME if they are costs, none to"
        " ignore them"
    )
}
OWN = ("id", "input", "output")

recognises = json_io.recognise("[", r'"input"\s*:\s*\[')


def read(path, score: str | None = None) -> Iterator[NBest]:
    """Read the lists of a file; UserError for another format, and scores in some lists only."""
    seen: set[str] = set()
    names = None
    for number, (tree, where) in enumerate(json_io.objects(path), 1):
        nbest = utterance(tree, str(number), score, where)
        first_time(nbest.utt, seen, where)
        seen.add(nbest.utt)
        names = components(nbest, names, where)
        yield nbest


def utterance(tree: Mapping, number: str, score: str | None, where: str) -> NBest:
    """Return one list from its object."""
    own = tree.get("id", number)
    utt = identifier(
        str(own) if isinstance(own, int) else json_io.expect(own, str, where, "'id'"), where
    )
    texts = [
        json_io.expect(text, str, where, "a hypothesis")
        for text in json_io.member(tree, "input", list, where)
    ]
    column = (
        score or next((name for name in ("am_score", "score") if name in tree), "none")
    ).removeprefix("-")
    scores = numbers(tree, column, len(texts), where) if column != "none" else [{}] * len(texts)
    if score and score.startswith("-"):
        scores = [{"am": -row["am"]} for row in scores]
    rest = {name: value for name, value in tree.items() if name not in (*OWN, column)}
    aligned = {
        name: value
        for name, value in rest.items()
        if texts and isinstance(value, list) and len(value) == len(texts)
    }
    hyps = [Hypothesis(text, row, json_io.extras({name: value[rank] for name,
    value in aligned.items()}, (), where))
            for rank, (text, row) in enumerate(zip(texts, scores, strict=True))]  # fmt: skip
    ref = json_io.optional(tree, "output", str, where)
    return NBest(utt, tuple(hyps), ref, json_io.extras(rest, aligned, where))


def numbers(tree: Mapping, column: str, length: int, where: str) -> list[dict[str, float]]:
    """Return the score of each hypothesis."""
    values = json_io.member(tree, column, list, where)
    if len(values) != length:
        raise UserError(
            f"{where}: {len(values)} scores in {column!r} for {length} hypotheses; give one a"
            " hypothesis"
        )
    return [{"am": json_io.expect(value, float, where, column)} for value in values]


def write(nbests: Iterable[NBest], path, score: str = "am_score") -> None:
    """Write lists; scores are called `score`. UserError for several scores, not rescored."""
    trees = (as_tree(nbest, score, path) for nbest in check_nbests(nbests, path))
    json_io.write_list(trees, path)


def as_tree(nbest: NBest, score: str, path) -> dict:
    """Return the object of one list."""
    where = f"{path}: utterance {nbest.utt!r}"
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
