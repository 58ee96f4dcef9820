"""Beams of CTC decoders dumped as JSON: a line an utterance, or a directory with a file UTT.json
each; the lines that dump them are in docs/toolkits.md.

    {"utt": "a1", "ref": "blue finch", "beams": [BEAM, ...]}

Beams stand best first. A BEAM is what the decoder gives:

- pyctcdecode: [text, state, frames, logit score, total] or the same without state; `am` is the
  logit score, `lm` the rest of the total: weighted LM, hot words and word bonus. The same by name,
  {"text": .., "logit_score": .., "lm_score": ..}, of which lm_score is the total.
- torchaudio, flashlight-text: {"words": ["blue", "finch"], "score": -3.2, ...}, or `text` in place
  of `words`; `am` is the score, LM and word bonus within.
- brain-to-text: [sentence, acoustic score, LM score], or "sentence;acoustic;LM": `am`, `lm`.

What Hugging Face's Wav2Vec2ProcessorWithLM gives holds no `beams` but `text`, `logit_score` and
`lm_score`, each a list with an item a beam, or the best one's alone.

What else an object holds is kept as extra. The format is read, not written.
"""

from collections.abc import Iterator, Mapping

from lmtools.errors import UserError
from lmtools.formats import checks, json_io
from lmtools.types import EMPTY, Hypothesis, NBest

ABOUT = "beams of pyctcdecode, torchaudio, brain-to-text as JSON lines: utt, beams"
OWN = ("words", "text", "score", "logit_score", "lm_score", "last_lm_state")
COLUMNS = ("text", "logit_score", "lm_score")  # of Hugging Face

recognises = json_io.recognise_results(r'"(beams|logit_score)"\s*:')
write = checks.refuse_write


def read(path) -> Iterator[NBest]:
    """Read the lists of a file or a directory; UserError for what is not as the format says."""
    names = None
    for utt, tree, where in json_io.results(path):
        if "beams" not in tree and "logit_score" in tree:
            tree = split_columns(tree, where)
        found = json_io.member(tree, "beams", list, where)
        hyps = tuple(
            hypothesis(beam, f"{where}: beam {rank}") for rank, beam in enumerate(found, 1)
        )
        ref = json_io.optional(tree, "ref", str, where)
        nbest = NBest(utt, hyps, ref, json_io.extras(tree, ("utt", "ref", "beams"), where))
        names = checks.components(nbest, names, where)
        yield nbest


def split_columns(tree: Mapping, where: str) -> Mapping:
    """Return an object of `beams` for one of columns; UserError unless they are equally long."""
    many = isinstance(tree["logit_score"], list)
    columns = {
        name: value if many else [value]
        for name, value in tree.items()
        if name not in ("utt", "ref") and value is not None
    }
    size = len(columns["logit_score"])
    for name in COLUMNS:
        column = json_io.member(columns, name, list, where)
        if len(column) != size:
            raise UserError(
                f"{where}: {len(column)} items in {name!r} for {size} in 'logit_score'; give one a"
                " beam"
            )
    whole = [name for name, value in columns.items() if isinstance(value, list)]
    whole = [name for name in whole if len(columns[name]) == size]
    beams = [{name: columns[name][rank] for name in whole} for rank in range(size)]
    rest = {name: value for name, value in tree.items() if name not in whole and value is not None}
    return rest | {"beams": beams}


def hypothesis(beam, where: str) -> Hypothesis:
    """Return one hypothesis from its beam."""
    if isinstance(beam, dict):
        return from_object(beam, where)
    if isinstance(beam, str):
        parts = beam.rsplit(";", 2)
        if len(parts) == 3:
            am, lm = (checks.number(part.strip(), where, "a score") for part in parts[1:])
            return Hypothesis(json_io.expect(parts[0], str, where, "it"), {"am": am, "lm": lm})
    elif isinstance(beam, list) and len(beam) in (3, 4, 5):
        text = json_io.expect(beam[0], str, where, "the text")
        am, last = (json_io.expect(value, float, where, "a score") for value in beam[-2:])
        if len(beam) == 3:
            return Hypothesis(text, {"am": am, "lm": last})
        frames = {"text_frames": json_io.as_text(beam[-3])}
        return Hypothesis(text, {"am": am, "lm": last - am}, frames)
    raise UserError(
        f"{where}: is {json_io.clip_value(beam)}; expected what pyctcdecode, torchaudio or"
        " brain-to-text give"
    )


def from_object(beam: Mapping, where: str) -> Hypothesis:
    """Return one hypothesis of torchaudio, or by the names of pyctcdecode."""
    if "words" in beam:
        words = json_io.member(beam, "words", list, where)
        text = " ".join(json_io.expect(word, str, where, "a word") for word in words)
    else:
        text = json_io.member(beam, "text", str, where)
    extra = json_io.extras(beam, OWN, where) or EMPTY
    if "logit_score" in beam:
        am, total = (json_io.member(beam, name, float, where) for name in COLUMNS[1:])
        return Hypothesis(text, {"am": am, "lm": total - am}, extra)
    return Hypothesis(text, {"am": json_io.member(beam, "score", float, where)}, extra)
