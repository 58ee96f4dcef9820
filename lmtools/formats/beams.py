"""Beams of CTC decoders dumped as JSON: a line an utterance, or a directory with a file UTT.json
each; the lines that dump them are in docs/toolkits.md.

    {"utt": "a1", "ref": "blue finch", "beams": [BEAM, ...]}

Beams stand best first. A BEAM is what the decoder gives:

- pyctcdecode: [text, state, frames, logit score, total] or the same without state; `am` is the
  logit score, `lm` the rest of the total: weighted LM, hot words and word bonus.
- torchaudio, flashlight-text: {"words": ["blue", "finch"], "score": -3.2, ...}, or `text` in place
  of `words`; `am` is the score, LM and word bonus within.
- brain-to-text: [sentence, acoustic score, LM score], or "sentence;acoustic;LM": `am`, `lm`.

What else an object holds is kept as extra. The format is read, not written.
"""

from collections.abc import Iterator, Mapping

from lmtools.errors import UserError
from lmtools.formats import checks, json_io
from lmtools.types import EMPTY, Hypothesis, NBest

ABOUT = "beams of pyctcdecode, torchaudio, brain-to-text as JSON lines: utt, beams"
OWN = ("words", "text", "score")

recognises = json_io.recognise_results(r'"beams"\s*:')
write = checks.refuse_write


def read(path) -> Iterator[NBest]:
    """The lists of a file or a directory; UserError for what is not as the format says."""
    names = None
    for utt, tree, where in json_io.results(path):
        found = json_io.member(tree, "beams", list, where)
        hyps = tuple(
            hypothesis(beam, f"{where}: beam {rank}") for rank, beam in enumerate(found, 1)
        )
        ref = json_io.optional(tree, "ref", str, where)
        nbest = NBest(utt, hyps, ref, json_io.extras(tree, ("utt", "ref", "beams"), where))
        names = checks.components(nbest, names, where)
        yield nbest


def hypothesis(beam, where: str) -> Hypothesis:
    """One hypothesis from its beam."""
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
    """One hypothesis of torchaudio."""
    if "words" in beam:
        words = json_io.member(beam, "words", list, where)
        text = " ".join(json_io.expect(word, str, where, "a word") for word in words)
    else:
        text = json_io.member(beam, "text", str, where)
    score = json_io.member(beam, "score", float, where)
    return Hypothesis(text, {"am": score}, json_io.extras(beam, OWN, where) or EMPTY)
