"""One small JSON for what Whisper, CTranslate2 and Hugging Face's `generate` give in Python; the
lines that dump it are in docs/toolkits.md.

    [{"utt": "a1", "ref": "blue finch", "hypotheses": [{"text": "blue fins", "score": -0.31,
      "tokens": [428, 3962, 1274]}, ...]}, ...]

Hypotheses stand best first; `ref` may be missing. A hypothesis has its `text` and at most one of
    sum_logprob  the natural-log probability of the whole output, taken as it is
    avg_logprob  that sum divided by the number of `tokens` + 1 (the end, not listed)
    score        the sum divided by the number of `tokens` to the power `length_penalty` (a number
                 beside it, 1 if missing); Hugging Face counts the end among the tokens
`tokens` is the list of tokens or their number. With it the division is undone and the component
`am` is the sum; without it `am` is the average as it stands, which compares hypotheses of different
length by another rule. What else there is is kept as extra. Lists are written with `sum_logprob`.

Read alone is what the command lines of openai-whisper (`--output_format json`), whisper-ctranslate2
and whisper.cpp (`--output-json`) leave, a file UTT.json each: a directory of them, or one. Each is
a list of one hypothesis without score, since the averages in it are of windows, not of texts.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lmtools.errors import UserError
from lmtools.formats import json_io
from lmtools.formats.checks import check_nbests, components, first_time, identifier, one_score
from lmtools.formats.registry import read_beginning
from lmtools.types import Hypothesis, NBest

ABOUT = (
    "a small JSON for Whisper, CTranslate2 and Hugging Face generate, see "
    "lmtools/formats/whisper.py"
)
KINDS = ("sum_logprob", "avg_logprob", "score")

is_dump = json_io.recognise("[", '"utt"', '"hypotheses"')
are_outputs = json_io.recognise_results(
    r'"(segments|transcription)"\s*:\s*\[',
    r'"text"\s*:',
    r'\A(?s:(?!.*"(utt|results|transcripts?|beams|alternatives)"\s*:))',
)


def recognises(path: Path, first: str) -> bool:
    """Return whether the file is such a dump, or the file or the first of a directory is an output
    of Whisper's command line.
    """
    return is_dump(path, first) or are_outputs(path, first)


def read(path) -> Iterator[NBest]:
    """Read the lists of a file or directory; UserError for what is not as the format says, or where
    hypotheses are scored in different ways.
    """
    if Path(path).is_dir():
        for utt, tree, where in json_io.results(path):
            yield read_output(utt, tree, where)
    elif Path(path).is_file() and is_object(read_beginning(path)):
        tree = json_io.expect(json_io.load(path), dict, str(path), "the file")
        utt = identifier(Path(path).name.partition(".json")[0], str(path))
        yield read_output(utt, tree, str(path))
    else:
        yield from read_dump(path)


def is_object(beginning: bytes) -> bool:
    """Return whether JSON with this beginning is an object."""
    return beginning.decode("utf-8-sig", "replace").lstrip().startswith("{")


def read_output(utt: str, tree: Mapping, where: str) -> NBest:
    """Return the list of what Whisper's command line says of one recording."""
    if "transcription" in tree:  # of whisper.cpp
        parts = [
            json_io.expect(part, dict, where, "a part")
            for part in json_io.member(tree, "transcription", list, where)
        ]
        text = "".join(json_io.member(part, "text", str, where) for part in parts)
    else:
        text = json_io.member(tree, "text", str, where)
    extra = json_io.extras(tree, ("text",), where)
    return NBest(utt, (Hypothesis(" ".join(text.split()), {}, extra),))


def read_dump(path) -> Iterator[NBest]:
    """Read the lists of a dump."""
    seen: set[str] = set()
    names = kind = None
    for tree, where in json_io.objects(path):
        utt = identifier(json_io.member(tree, "utt", str, where), where)
        first_time(utt, seen, where)
        seen.add(utt)
        where = f"{path}: utterance {utt!r}"
        hyps = json_io.member(tree, "hypotheses", list, where)
        for rank, hyp in enumerate(hyps, 1):
            place = f"{where}: hypothesis {rank}"
            found = way(json_io.expect(hyp, dict, place, "it"), place)
            if kind not in (None, found):
                raise UserError(
                    f"{where}: hypothesis {rank} has {' and '.join(found)}, earlier ones"
                    f" {' and '.join(kind)}; dump all alike"
                )
            kind = found
        ref = json_io.optional(tree, "ref", str, where)
        extra = json_io.extras(tree, ("utt", "ref", "hypotheses"), where)
        made = (hypothesis(hyp, f"{where}: hypothesis {rank}") for rank, hyp in enumerate(hyps, 1))
        nbest = NBest(utt, tuple(made), ref, extra)
        names = components(nbest, names, where)
        yield nbest


def way(tree: Mapping, where: str) -> tuple[str, ...]:
    """Return the kind of a hypothesis' score: its key, and "tokens" if it was divided by them."""
    kinds = [kind for kind in KINDS if kind in tree]
    if len(kinds) > 1:
        raise UserError(f"{where}: has {' and '.join(kinds)}; give one of them")
    divided = "tokens" in tree and kinds in (["avg_logprob"], ["score"])
    return (*kinds, "tokens") if divided else (*kinds,) or ("no score",)


def hypothesis(tree: Mapping, where: str) -> Hypothesis:
    """Return one hypothesis from its object."""
    text = json_io.member(tree, "text", str, where)
    kind = next((kind for kind in KINDS if kind in tree), None)
    own = {"text", "length_penalty", *KINDS}
    if kind is None:
        return Hypothesis(text, {}, json_io.extras(tree, own, where))
    value = json_io.expect(tree[kind], float, where, kind)
    if "tokens" in tree:
        value *= divisor(
            kind,
            length(tree["tokens"], where),
            json_io.expect(tree.get("length_penalty", 1), float, where, "length_penalty"),
        )
    if not math.isfinite(value):
        raise UserError(f"{where}: its {kind} times its tokens is {value}; correct them")
    return Hypothesis(text, {"am": value}, json_io.extras(tree, own, where))


def length(tokens, where: str) -> int:
    """Return the number of tokens."""
    if (
        isinstance(tokens, bool)
        or not isinstance(tokens, list | int)
        or (isinstance(tokens, int) and not 0 <= tokens < 1 << 31)
    ):
        raise UserError(
            f"{where}: 'tokens' is {json_io.clip_value(tokens)}; expected a list or a number"
        )
    return len(tokens) if isinstance(tokens, list) else tokens


def divisor(kind: str, tokens: int, penalty: float) -> float:
    """Return the number that the sum of log-probabilities was divided by."""
    if kind == "score":
        return max(tokens, 1) ** max(-64.0, min(penalty, 64.0))
    return tokens + 1.0 if kind == "avg_logprob" else 1.0


def write(nbests: Iterable[NBest], path) -> None:
    """Write lists, the score of each hypothesis (the total of rescored lists) as `sum_logprob`."""
    json_io.write_list((as_tree(nbest, path) for nbest in check_nbests(nbests, path)), path)


def as_tree(nbest: NBest, path) -> dict:
    """Return the object of one list."""
    hyps = []
    for hyp in nbest.hyps:
        value = one_score(hyp, f"{path}: utterance {nbest.utt!r}")
        rest = json_io.values_of(hyp.extra)
        for name in (*KINDS, "length_penalty"):
            rest.pop(name, None)
        if "tokens" in rest and not isinstance(rest["tokens"], list | int):
            del rest["tokens"]  # another format's
        hyps.append({**rest, "text": hyp.text, **({} if value is None else {"sum_logprob": value})})
    ref = {} if nbest.ref is None else {"ref": nbest.ref}
    return {**json_io.values_of(nbest.extra), "utt": nbest.utt, **ref, "hypotheses": hyps}
