"""sherpa-onnx's results: what its programs print, a line with the file's name and then a line of
JSON, or lines of JSON with an id as `utt`.

    d/a1.wav
    {"text": "blue finch", "tokens": [" blue", " finch"], "ys_log_probs": [-0.1, -0.4], ...}
    ----

An utterance is called as its file, without directory and suffix, and has one hypothesis. The
component `am` is the sum of `ys_log_probs`, natural logarithms, where all results have them (CTC
models give none). What else there is is kept as extra. The format is read, not written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from lmtools.errors import UserError
from lmtools.files import read_lines
from lmtools.formats import checks, json_io
from lmtools.formats.jsonl import parse
from lmtools.types import Hypothesis, NBest

ABOUT = "sherpa-onnx's results: file names, each with a line of JSON; 1-best"
LOG_PROBS = "ys_log_probs"

recognised = json_io.recognise("{", r'"text"\s*:', r'"tokens"\s*:', r'"timestamps"\s*:')
write = checks.refuse_write


def recognises(path: Path, first: str) -> bool:
    """Return whether the first line is a result with an id."""
    return not path.is_dir() and recognised(path, first)


def read(path) -> Iterator[NBest]:
    """Read the utterances of a file, all before the first; UserError for another format."""
    found, seen, name = [], set(), None
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        if not line.lstrip().startswith("{"):
            name = line.strip() if line.strip(" -\t") else name
            continue
        tree = json_io.expect(parse(line, where), dict, where, "the line")
        if "utt" in tree:
            utt = json_io.member(tree, "utt", str, where)
        elif name is not None:
            utt = Path(name).stem
        else:
            raise UserError(f"{where}: no line with the file's name before it; add one, or 'utt'")
        name = None
        checks.first_time(checks.identifier(utt, where), seen, where)
        seen.add(utt)
        ref = json_io.optional(tree, "ref", str, where)
        found.append(NBest(utt, (hypothesis(tree, where),), ref))
    if all(nbest.hyps[0].scores for nbest in found):
        yield from found
        return
    for nbest in found:
        yield replace(nbest, hyps=(replace(nbest.hyps[0], scores={}),))


def hypothesis(tree: Mapping, where: str) -> Hypothesis:
    """Return one result; without a score where it has tokens and no log-probabilities of them."""
    text = " ".join(json_io.member(tree, "text", str, where).split())
    extra = json_io.extras(tree, ("utt", "ref", "text"), where)
    if LOG_PROBS not in tree:
        return Hypothesis(text, {}, extra)
    values = json_io.member(tree, LOG_PROBS, list, where)
    if not values and text:
        return Hypothesis(text, {}, extra)
    score = sum(json_io.expect(value, float, where, LOG_PROBS) for value in values)
    return Hypothesis(text, {"am": float(score)}, extra)
