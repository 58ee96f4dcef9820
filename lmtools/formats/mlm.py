"""The files of mlm-scoring: `{"zed1": {"hyp_1": {"score": -7.4, "text": "blue finch"}, ...}, ...}`

Hypotheses are ordered by their numbers. Its am.json has first-pass scores, natural logs, and
references; its lm.json the same with the LM's scores and without references. What else an utterance
or a hypothesis holds is kept as extra.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from lmtools.errors import UserError
from lmtools.formats import json_io
from lmtools.formats.checks import check_nbests, component, components, one_score
from lmtools.types import Hypothesis, NBest

ABOUT = "mlm-scoring: am.json or lm.json"
OPTIONS = {"name": "the component that `score` is (am; give lm for an lm.json)"}
HYP = re.compile("hyp_([0-9]{1,9})", re.ASCII)

recognises = json_io.recognise("{", r'"hyp_[0-9]+"\s*:\s*\{')


def read(path, name: str = "am") -> Iterator[NBest]:
    """Read the lists of a file; UserError for what is not as the format says."""
    names = None
    file = json_io.expect(json_io.load(path), dict, str(path), "the file")
    for utt, tree, where in json_io.utterances(file, path):
        nbest = utterance(utt, tree, component(name, str(path)), where)
        names = components(nbest, names, where)
        yield nbest


def utterance(utt: str, tree: Mapping, name: str, where: str) -> NBest:
    """Return one list from its object."""
    numbered = {key: int(match[1]) for key in tree if (match := HYP.fullmatch(key))}
    if len(set(numbered.values())) < len(numbered):
        raise UserError(f"{where}: the number of a hypothesis occurs twice; number them from 1")
    hyps = []
    for key in sorted(numbered, key=numbered.get):
        place = f"{where}: {key}"
        hyp = json_io.expect(tree[key], dict, place, "it")
        text, scores = json_io.member(hyp, "text", str, place), json_io.scores_of(hyp, place, name)
        hyps.append(Hypothesis(text, scores, json_io.extras(hyp, ("score", "text"), place)))
    ref = json_io.optional(tree, "ref", str, where)
    return NBest(utt, tuple(hyps), ref, json_io.extras(tree, ("ref", *numbered), where))


def write(nbests: Iterable[NBest], path, name: str = "am") -> None:
    """Write lists; `score` is the component `name`, or the total of rescored lists."""
    json_io.write((row(nbest, name, path) for nbest in check_nbests(nbests, path)), path, "{", "}")


def row(nbest: NBest, name: str, path) -> str:
    """Return the entry of one list."""
    hyps = {}
    for rank, hyp in enumerate(nbest.hyps, 1):
        value = (
            hyp.scores[name]
            if name != "am" and name in hyp.scores
            else one_score(hyp, f"{path}: utterance {nbest.utt!r}")
        )
        own = {"text": hyp.text} if value is None else {"score": value, "text": hyp.text}
        hyps[f"hyp_{rank}"] = json_io.values_of(hyp.extra) | own
    tree = {
        **json_io.values_of(nbest.extra),
        **hyps,
        **({} if nbest.ref is None else {"ref": nbest.ref}),
    }
    return f"{json.dumps(nbest.utt, ensure_ascii=False)}: {json.dumps(tree, ensure_ascii=False)}"
