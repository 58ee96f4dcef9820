"""nbest.jsonl, which every other format converts to and from.

One utterance a line: `{"utt": "a1", "ref": "blue finch", "hyps": [{"text": "blue fins", "scores":
{"am": -12.3}}]}`, hypotheses best first. `ref` may be absent or null (unknown; an empty reference
is ""), and so may `scores`; a list of texts is of several references. Scores are natural
logarithms, higher is better, and every hypothesis of a file has the same components. A hypothesis
whose `text` was rewritten for a language model has what the recogniser wrote as `written`.
An utterance may name its `session`, which becomes one of its extras. Utterance and hypotheses may
have an `extra`, an object of texts: what another format held besides, kept so that it can be
written back. Lines of white space only are skipped.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.formats.checks import (
    Utterances,
    component,
    components,
    encodable,
    identifier,
    write_lines,
)
from lmtools.types import EMPTY, SESSION, Hypothesis, NBest

SUMMARY = "one utterance a line with reference, hypotheses and their scores"
UTTERANCE = {"utt": (str, "a text"), "ref": (str | list | None, "a text, texts or null"),
"hyps": (list, "a list of hypotheses"), SESSION: (str, "a text"),
             "extra": (dict, "an object of texts")}  # fmt: skip
HYPOTHESIS = {
    "text": (str, "a text"),
    "written": (str, "a text"),
    "scores": (dict, "an object of numbers"),
    "extra": (dict, "an object of texts"),
}
OPTIONAL = {"ref", "written", "scores", "extra", SESSION}


def recognises(path: Path, first: str) -> bool:
    """Return whether the name, or else the first line, is that of an nbest.jsonl."""
    return ".jsonl" in path.suffixes or (
        first.startswith("{") and '"utt"' in first and '"hyps"' in first
    )


def read(path) -> Iterator[NBest]:
    """Read the N-best lists in `path` (.gz, .xz, `-`) line by line; UserError with the line of
    anything that is not as the format says.
    """
    utterances, names = Utterances(), None
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            nbest = utterance(parse(line, where), where)
            utterances.add(nbest.utt, where)
            names = components(nbest, names, where)
            yield nbest


def parse(line: str, where: str):
    """Parse the JSON value in `line`; refuse repeated keys, which Python's reader takes."""
    try:
        return json.loads(line, object_pairs_hook=unique)
    except RecursionError:
        raise UserError(f"{where}: nested too deeply; write one utterance a line") from None
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}); write one utterance a line") from None


def unique(pairs: list[tuple]) -> dict:
    """Return the object of `pairs`; ValueError if a key comes twice."""
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return tree


def utterance(tree, where: str) -> NBest:
    """Return the N-best list that a parsed line describes."""
    check_fields(tree, UTTERANCE, where, "the line")
    refs = tree.get("ref")
    if isinstance(refs, list) and not (len(refs) > 1 and all(isinstance(ref, str) for ref in refs)):
        raise UserError(
            f"{where}: 'ref' is {clip_value(refs)}; expected a text, or a list of texts where there"
            " are several"
        )
    ref, *more = refs if isinstance(refs, list) else [refs]
    encodable("".join((ref or "", *more)), where)
    hyps = tuple(
        parse_hypothesis(hyp, f"{where}: hypothesis {rank}")
        for rank, hyp in enumerate(tree["hyps"], 1)
    )
    utt, extra = identifier(tree["utt"], where), read_extras(tree, where)
    if SESSION in tree:
        if extra.get(SESSION, tree[SESSION]) != tree[SESSION]:
            raise UserError(f"{where}: 'session' differs from that in 'extra'; leave one out")
        extra = {**extra, SESSION: encodable(tree[SESSION], where)}
    return NBest(utt, hyps, ref, extra, more_refs=tuple(more))


def parse_hypothesis(tree, where: str) -> Hypothesis:
    """Return one hypothesis from its parsed object."""
    check_fields(tree, HYPOTHESIS, where, "it")
    scores = {
        component(name, where): score(value, where, name)
        for name, value in tree.get("scores", EMPTY).items()
    }
    text, written = (encodable(tree.get(name, ""), where) for name in ("text", "written"))
    return Hypothesis(
        text, scores, read_extras(tree, where), written if "written" in tree else None
    )


def read_extras(tree, where: str) -> Mapping[str, str]:
    """Return the `extra` of an utterance or hypothesis."""
    for name, value in tree.get("extra", EMPTY).items():
        if not isinstance(value, str):
            raise UserError(
                f"{where}: extra {clip_value(name)} is {clip_value(value)}; expected a text"
            )
        encodable(name + value, where)
    return tree.get("extra", EMPTY)


def check_fields(tree, known: dict, where: str, what: str) -> None:
    """Raise UserError unless `tree` is an object with the `known` keys and types."""
    if not isinstance(tree, dict):
        raise UserError(
            f"{where}: {what} is {clip_value(tree)}; expected an object with {', '.join(known)}"
        )
    if missing := [name for name in known if name not in tree and name not in OPTIONAL]:
        raise UserError(f"{where}: key {min(missing)!r} is missing; add it")
    for name, value in tree.items():
        if name not in known:
            raise UserError(
                f"{where}: unknown key {clip_value(name)}; known are {', '.join(known)}: rename it"
                " or drop it"
            )
        kind, expected = known[name]
        if not isinstance(value, kind):
            raise UserError(f"{where}: {name!r} is {clip_value(value)}; expected {expected}")


def score(value, where: str, name: str) -> float:
    """Return `value` as a finite float."""
    try:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        result = float(value) if numeric else math.nan
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise UserError(f"{where}: score {name!r} is {clip_value(value)}; expected a finite number")
    return result


def clip_value(value, limit: int = 40) -> str:
    """Return a short one-line picture of a wrong value."""
    text = ascii(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= limit else text[:limit] + "..."


def write(nbests: Iterable[NBest], path) -> None:
    """Write N-best lists; UserError, and nothing written, for what `read` would refuse."""
    write_lines(nbests, path, lambda nbest, where: [json.dumps(as_tree(nbest), ensure_ascii=False)])


def as_tree(nbest: NBest) -> dict:
    """Return the object that one line holds; keys without a value are left out."""
    hyps = [
        add_filled(
            {"text": h.text} | ({} if h.written is None else {"written": h.written}),
            scores={n: float(v) for n, v in h.scores.items()},
            extra=dict(h.extra),
        )
        for h in nbest.hyps
    ]
    ref = [nbest.ref, *nbest.more_refs] if nbest.more_refs else nbest.ref
    known = {} if ref is None else {"ref": ref}
    return add_filled({"utt": nbest.utt, **known, "hyps": hyps}, extra=dict(nbest.extra))


def add_filled(tree: dict, **more) -> dict:
    """Return `tree` with those of `more` that are not empty."""
    return {**tree, **{name: value for name, value in more.items() if value}}
