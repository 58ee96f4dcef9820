"""Files that are one object of all lists by utterance: those of mlm-scoring and of ESPnet1."""

import re
from collections.abc import Mapping

from lmtools.base.errors import UserError
from lmtools.formats.checks import component, one_score
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import expect, member, number_hypotheses, parse_scored
from lmtools.types import Hypothesis, NBest

HYP = re.compile("hyp_([0-9]{1,9})", re.ASCII)
RANK = re.compile(r"\[[0-9]+\]$")


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
    """Return a list of `output`; UserError for several speakers. Whole objects are kept as extras,
    so that the file written again differs in nothing but what was changed.
    """
    outputs = member(tree, "output", list, where)
    if any(isinstance(output, list) for output in outputs):
        raise UserError(
            f"{where}: 'output' is a list of lists, one a speaker; write a file for each speaker"
        )
    hyps = number_hypotheses(outputs, parse_output, where)
    ref = member(outputs[0], "text", str, where) if outputs and "text" in outputs[0] else None
    rest = {"utt": json_io.as_text({**tree, "output": []})} if tree.keys() - {"output"} else {}
    return NBest(utt, hyps, ref, rest)


def parse_output(output, where: str) -> Hypothesis:
    """Return one hypothesis: `rec_text` has its pieces joined, `▁` for a space, `<eos>` at the end;
    `score` is a natural logarithm, all parts of the search weighted and added.
    """
    text = join_words(member(expect(output, dict, where, "it"), "rec_text", str, where))
    rest = {name: value for name, value in output.items() if name != "score"}
    rank = where.rpartition(" ")[2]
    # nothing that is not known already
    bare = {"name": f"target1[{rank}]", "rec_text": f"{text}<eos>", "text": output.get("text")}
    extra = {} if rest.items() <= bare.items() else {"output": json_io.as_text(rest)}
    scores = {"am": member(output, "score", float, where)} if "score" in output else {}
    return Hypothesis(text, scores, extra)


def join_words(text: str) -> str:
    """Return the words of a `rec_text`."""
    return " ".join(text.replace("<eos>", " ").replace("▁", " ").split())


def spell_espnet1(nbest: NBest, where: str) -> dict:
    """Return the object of a list."""
    outputs = [spell_output(hyp, rank, nbest.ref, where) for rank, hyp in enumerate(nbest.hyps, 1)]
    return {**read_extra(nbest.extra, "utt"), "output": outputs}


def read_extra(extra: Mapping[str, str], name: str) -> dict:
    """Read the object that an extra holds; an empty one if there is none."""
    tree = json_io.value_of(extra.get(name, ""))
    return tree if isinstance(tree, dict) else {}


def spell_output(hyp: Hypothesis, rank: int, ref: str | None, where: str) -> dict:
    """Return the object of one hypothesis: `name` numbers it, pieces of a changed text are left
    out.
    """
    tree = read_extra(hyp.extra, "output")
    words = " ".join(hyp.text.split())
    if not isinstance(tree.get("rec_text"), str) or join_words(tree["rec_text"]) != words:
        tree = {name: value for name, value in tree.items() if not name.startswith("rec_")}
        tree["rec_text"] = words + "<eos>"
    if ref is not None and ref != tree.get("text"):
        tree = {name: value for name, value in tree.items() if name not in ("token", "tokenid")}
    tree["name"] = RANK.sub("", str(tree.get("name", "target1"))) + f"[{rank}]"
    if (score := one_score(hyp, where)) is not None:
        tree["score"] = score
    return tree if ref is None else {**tree, "text": ref}
