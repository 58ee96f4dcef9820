"""ESPnet1's recognition results, data.json: `{"utts": {"zed1": {"output": [{"rec_text":
"▁blue▁finch<eos>", "score": -7.4, ...}, ...]}}}`.

One object of `output` is one hypothesis, the best first: `rec_text` (pieces joined, `▁` is a space,
`<eos>` the end) gives the text, `score` the component `am` (a natural log, all parts of the search
already weighted and added), `text` the reference. The whole objects are kept as extras, so that the
file written again differs in nothing but what was changed: order, texts, scores, references.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from lmtools.errors import UserError
from lmtools.formats import json_io
from lmtools.formats.checks import check_nbests, components, one_score
from lmtools.types import Hypothesis, NBest

ABOUT = "ESPnet1 data.json with the hypotheses under output"
RANK = re.compile(r"\[[0-9]+\]$")

recognises = json_io.recognise("{", '"utts"', '"rec_text"')


def read(path) -> Iterator[NBest]:
    """Read the lists of a file; UserError for what is not of the format, or of several speakers."""
    names = None
    file = json_io.expect(json_io.load(path), dict, str(path), "the file")
    for entry in json_io.utterances(json_io.member(file, "utts", dict, str(path)), path):
        nbest = utterance(*entry)
        names = components(nbest, names, entry[-1])
        yield nbest


def utterance(utt: str, tree: Mapping, where: str) -> NBest:
    """Return one list from its object."""
    outputs = json_io.member(tree, "output", list, where)
    if any(isinstance(output, list) for output in outputs):
        raise UserError(
            f"{where}: 'output' is a list of lists, one a speaker; write a file for each speaker"
        )
    hyps = [
        hypothesis(output, rank, f"{where}: hypothesis {rank}")
        for rank, output in enumerate(outputs, 1)
    ]
    first = outputs[0] if outputs else {}
    ref = json_io.member(first, "text", str, where) if "text" in first else None
    rest = {"utt": json_io.as_text({**tree, "output": []})} if tree.keys() - {"output"} else {}
    return NBest(utt, tuple(hyps), ref, rest)


def hypothesis(output, rank: int, where: str) -> Hypothesis:
    """Return one hypothesis from its object of `output`."""
    text = plain(json_io.member(json_io.expect(output, dict, where, "it"), "rec_text", str, where))
    rest = {name: value for name, value in output.items() if name != "score"}
    # nothing that is not known already
    bare = {"name": f"target1[{rank}]", "rec_text": f"{text}<eos>", "text": output.get("text")}
    extra = {} if rest.items() <= bare.items() else {"output": json_io.as_text(rest)}
    return Hypothesis(text, json_io.scores_of(output, where), extra)


def plain(text: str) -> str:
    """Return the words of a `rec_text`."""
    return " ".join(text.replace("<eos>", " ").replace("▁", " ").split())


def write(nbests: Iterable[NBest], path) -> None:
    """Write lists; `name` numbers the hypotheses, pieces of changed texts are left out."""
    json_io.write(
        (row(nbest, path) for nbest in check_nbests(nbests, path)), path, '{"utts": {', "}}"
    )


def row(nbest: NBest, path) -> str:
    """Return the entry of one list."""
    where = f"{path}: utterance {nbest.utt!r}"
    outputs = [as_output(hyp, rank, nbest.ref, where) for rank, hyp in enumerate(nbest.hyps, 1)]
    tree = {**read_extra(nbest.extra, "utt"), "output": outputs}
    return f"{json.dumps(nbest.utt, ensure_ascii=False)}: {json.dumps(tree, ensure_ascii=False)}"


def read_extra(extra: Mapping[str, str], name: str) -> dict:
    """Read the object that an extra holds; an empty one if there is none."""
    tree = json_io.value_of(extra.get(name, ""))
    return tree if isinstance(tree, dict) else {}


def as_output(hyp: Hypothesis, rank: int, ref: str | None, where: str) -> dict:
    """Return the object of one hypothesis."""
    tree = read_extra(hyp.extra, "output")
    words = " ".join(hyp.text.split())
    if not isinstance(tree.get("rec_text"), str) or plain(tree["rec_text"]) != words:
        tree = {name: value for name, value in tree.items() if not name.startswith("rec_")} | {
            "rec_text": words + "<eos>"
        }
    if ref is not None and ref != tree.get("text"):
        tree = {name: value for name, value in tree.items() if name not in ("token", "tokenid")}
    name = RANK.sub("", str(tree.get("name", "target1"))) + f"[{rank}]"
    score = one_score(hyp, where)
    return {
        **tree,
        "name": name,
        **({} if score is None else {"score": score}),
        **({} if ref is None else {"text": ref}),
    }
