"""Results of Vosk's recogniser after SetMaxAlternatives(N): a line an utterance, with its id, or a
directory with a file UTT.json each.

    {"utt": "a1", "ref": "blue finch", "alternatives": [{"confidence": 214.5, "text": "blue fins",
      "result": [{"word": "blue", "start": 0.1, "end": 0.4}, ...]}, ...]}

Alternatives stand best first; `utt` (of a line) and `ref` are the user's, the rest is Vosk's.
`confidence`, the acoustic model's and the graph's score in one (natural logarithms, higher is
better), is the component `am`. A result without alternatives is a list of one hypothesis, its
`text`, without score. What else there is is kept as extra. Lists are written as lines.
"""

import json
from collections.abc import Iterable, Iterator

from lmtools.atomic import atomic_text
from lmtools.formats import json_io
from lmtools.formats.checks import check_nbests, components, one_score
from lmtools.formats.jsonl import score
from lmtools.types import Hypothesis, NBest

ABOUT = "results of Vosk's KaldiRecognizer: lines with utt, or UTT.json each; am is the confidence"

# clouds' results have alternatives, too, with a transcript each
recognises = json_io.recognise_results('"alternatives"', r'\A(?s:(?!.*"transcript"))')


def read(path) -> Iterator[NBest]:
    """Read the lists of a file or a directory; UserError for what is not as the format says."""
    names = None
    for utt, tree, where in json_io.results(path):
        ref = json_io.optional(tree, "ref", str, where)
        if "alternatives" in tree:
            found = json_io.member(tree, "alternatives", list, where)
            hyps = tuple(
                hypothesis(one, f"{where}: alternative {rank}") for rank, one in enumerate(found, 1)
            )
            extra = json_io.extras(tree, ("utt", "ref", "alternatives"), where)
        else:
            own = json_io.extras(tree, ("utt", "ref", "text"), where)
            hyps, extra = (Hypothesis(json_io.member(tree, "text", str, where), {}, own),), {}
        nbest = NBest(utt, hyps, ref, extra)
        names = components(nbest, names, where)
        yield nbest


def hypothesis(tree, where: str) -> Hypothesis:
    """Return one hypothesis from its object."""
    text = json_io.member(json_io.expect(tree, dict, where, "it"), "text", str, where)
    scores = {"am": score(tree["confidence"], where, "confidence")} if "confidence" in tree else {}
    return Hypothesis(text, scores, json_io.extras(tree, ("text", "confidence"), where))


def write(nbests: Iterable[NBest], path) -> None:
    """Write lists, the score of each hypothesis (the total of rescored lists) as `confidence`."""
    with atomic_text(path) as out:
        for nbest in check_nbests(nbests, path):
            out.write(json.dumps(as_tree(nbest, path), ensure_ascii=False) + "\n")


def as_tree(nbest: NBest, path) -> dict:
    """Return the object of one list."""
    alternatives = []
    for hyp in nbest.hyps:
        value = one_score(hyp, f"{path}: utterance {nbest.utt!r}")
        own = {"text": hyp.text} if value is None else {"confidence": value, "text": hyp.text}
        alternatives.append({**json_io.values_of(hyp.extra), **own})
    ref = {} if nbest.ref is None else {"ref": nbest.ref}
    return {**json_io.values_of(nbest.extra), "utt": nbest.utt, **ref, "alternatives": alternatives}
