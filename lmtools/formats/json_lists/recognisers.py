"""What recognisers and CTC decoders return: Vosk, sherpa-onnx, the
clouds, pyctcdecode and its like.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.grammar import parse_json
from lmtools.base.log import say
from lmtools.formats import checks
from lmtools.formats.json_lists import json_io
from lmtools.formats.json_lists.json_io import (
    Entry,
    drop_partial,
    expect,
    member,
    number_hypotheses,
    parse_keyed,
    parse_scored,
    unique,
)
from lmtools.types import Hypothesis, NBest

# an answer of Vosk alone, final or not
ALONE = (
    r'\A\s*\{\s*("utt"\s*:\s*"[^"]*"\s*,\s*)?"partial"'
    r'|\A\s*\{\s*("result"\s*:\s*\[\s*\{\s*"conf"|"text"\s*:\s*"(?:[^"\\]|\\.)*"\s*\}\s*(\{|\Z))'
)
ASSEMBLY = {"audio_url", "acoustic_model", "speech_model"}  # keys of AssemblyAI's results
LOG_PROBS = "ys_log_probs"  # of sherpa-onnx
FINALS = ("final", "is_final", "isFinal")  # of Watson, Google
# what the clouds return of silence
SILENT = ("RecognitionStatus", "requestId", "totalBilledTime", "request_id", "total_billed_time")


def parse_vosk(utt: str, tree: Mapping, where: str) -> NBest:
    """Return a list of alternatives, or of the one text of a result without them."""
    if "alternatives" in tree:
        parse = partial(parse_scored, score="confidence")  # a logarithm
        return parse_keyed(utt, tree, where, "alternatives", parse=parse, kind="alternative")
    if "partial" in tree and "text" not in tree:
        raise UserError(f"{where}: a partial result; leave it out, and give the final one's `text`")
    ref = json_io.optional(tree, "ref", str, where)
    extra = json_io.extras(tree, ("utt", "ref", "text"), where)
    return NBest(utt, (Hypothesis(member(tree, "text", str, where), {}, extra),), ref)


def read_named_lines(path) -> Iterator[Entry]:
    """Yield sherpa-onnx's results: lines of JSON with `utt`, or below lines with a file's name."""
    utterances, name = checks.Utterances(), None
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        if not line.lstrip().startswith("{"):
            name = line.strip() if line.strip(" -\t") else name
            continue
        tree = expect(parse_json(line, where), dict, where, "the line")
        if "utt" in tree:
            utt = member(tree, "utt", str, where)
        elif name is not None:
            utt = Path(name).stem
        else:
            raise UserError(f"{where}: no line with the file's name before it; add one, or 'utt'")
        name = None
        yield utterances.add(utt, where), tree, where


def parse_sherpa(utt: str, tree: Mapping, where: str) -> NBest:
    """Return the list of one result; no score for tokens without log-probabilities."""
    ref = json_io.optional(tree, "ref", str, where)
    text = " ".join(member(tree, "text", str, where).split())
    values = member(tree, LOG_PROBS, list, where) if LOG_PROBS in tree else None
    scores = {}
    if values is not None and (values or not text):
        scores = {"am": float(sum(expect(value, float, where, LOG_PROBS) for value in values))}
    extra = json_io.extras(tree, ("utt", "ref", "text"), where)
    return NBest(utt, (Hypothesis(text, scores, extra),), ref)


def read_segments(path) -> Iterator[Entry]:
    """Yield the segments of the clouds' results; say how many interim ones were left out."""
    interim: list[str] = []
    entries = json_io.read_results(path)
    yield from unique(part for entry in entries for part in segments_of(*entry, interim))
    if interim:
        results = "1 interim result" if len(interim) == 1 else f"{len(interim)} interim results"
        say(f"{path}: {results} left out: they are not final")


def segments_of(utt: str, tree: Mapping, where: str, interim: list[str]) -> Iterator[Entry]:
    """Yield the segments of a result, UTT-1 .. if several; add interim results to `interim`."""
    ref = json_io.optional(tree, "ref", str, where)
    segments = list(alternatives_of(tree, where, interim)) or [[]]
    several = len(segments) > 1
    if several and ref is not None:
        raise UserError(
            f"{where}: {len(segments)} segments have one 'ref'; leave it out, and give --ref with"
            f" {utt}-1, {utt}-2 .."
        )
    for number, alternatives in enumerate(segments, 1):
        segment = {"alternatives": alternatives, "ref": ref}
        yield f"{utt}-{number}" if several else utt, segment, f"{where}: segment {number}"


def alternatives_of(tree: Mapping, where: str, interim: list[str]) -> Iterator[Sequence]:
    """Yield the alternatives of each final segment of a result of one of the clouds."""
    if isinstance(tree.get("response"), dict):  # of Google's long recordings
        tree = tree["response"]
    if "NBest" in tree:
        yield member(tree, "NBest", list, where)
    elif "recognizedPhrases" in tree:
        for phrase in members(tree, "recognizedPhrases", where):
            yield member(phrase, "nBest", list, where)
    elif isinstance(tree.get("results"), dict):
        results = tree["results"]
        if "channels" in results:
            for channel in members(results, "channels", where):
                yield member(channel, "alternatives", list, where)
        elif "segments" in results:
            for segment in members(results, "segments", where):
                yield member(segment, "alternatives", list, where)
        else:
            spoken, items = member(results, "transcripts", list, where), results.get("items")
            one = len(spoken) == 1 and isinstance(spoken[0], dict) and items is not None
            yield [spoken[0] | {"items": items}] if one else spoken
    elif spoken := list(word_results(tree, where)):
        yield from spoken
    elif "results" in tree:
        for result in members(tree, "results", where):
            finals = [result[name] for name in FINALS if name in result]
            # Google leaves isFinal out where it is false, and gives only such results a stability
            if False in finals or (not finals and result.get("stability")):
                interim.append(where)
            else:
                yield member(result, "alternatives", list, where) if result else []
    elif others := tree.keys() - {"utt", "ref", *SILENT, "DisplayText", "Offset", "Duration"}:
        raise UserError(
            f"{where}: no results of a cloud that is known, but {sorted(others)[0]!a};"
            " give what they return as it is"
        )


def word_results(tree: Mapping, where: str) -> Iterator[Sequence]:
    """Yield the one alternative of each segment of AssemblyAI's (times in milliseconds), Rev's and
    Speechmatics' results, with its words as objects.
    """
    if "monologues" in tree:
        for monologue in members(tree, "monologues", where):
            parts = list(members(monologue, "elements", where))
            text = "".join(str(part.get("value", " ")) for part in parts)
            yield [{"transcript": text, "words": [p for p in parts if p.get("type") != "punct"]}]
    elif ASSEMBLY & tree.keys():
        if tree.get("status", "completed") != "completed":
            raise UserError(f"{where}: the transcript is not complete; fetch it again")
        words = [
            word | {key: member(word, key, float, where) / 1000 for key in ("start", "end")}
            for word in members(tree, "words", where)
        ]
        yield [{"transcript": member(tree, "text", str, where), "words": words}]
    elif "results" in tree and any("type" in part for part in members(tree, "results", where)):
        words = [
            {key: part[key] for key in ("type", "start_time", "end_time") if key in part}
            | next(members(part, "alternatives", where), {})
            | {"joined": part.get("attaches_to") == "previous"}
            for part in members(tree, "results", where)
        ]
        signs = (" "[word["joined"] :] + member(word, "content", str, where) for word in words)
        text = "".join(signs)
        yield [{"transcript": text, "words": words}]


def members(tree: Mapping, name: str, where: str) -> Iterator[Mapping]:
    """Yield the objects of the list `name`."""
    for number, item in enumerate(member(tree, name, list, where), 1):
        yield expect(item, dict, f"{where}: segment {number}", "it")


def finish_clouds(nbests: Iterator[NBest], path, text: str = "lexical") -> Iterator[NBest]:
    """Return the lists, without scores unless all have them; UserError for another `text`."""
    if text not in ("lexical", "display"):
        raise UserError(f"text={text}: neither lexical nor display; give one of them")
    return drop_partial(nbests, path)


def parse_segment(utt: str, tree: Mapping, where: str, text: str = "lexical") -> NBest:
    """Return the list of one segment, whose scores may be missing or -inf."""

    def parse_alternative(item, place: str) -> Hypothesis:
        item = expect(item, dict, place, "it")
        names = ("transcript", text, text.capitalize())
        name = next((name for name in names if name in item), names[0])
        spoken = " ".join(member(item, name, str, place).split())
        values = list(confidences(item, place))
        extra = json_io.extras(item, (name,), place)
        if any(not 0 <= value <= 1 for value in values):
            raise UserError(
                f"{place}: a confidence is not from 0 to 1; give what the cloud returned"
            )
        score = sum(math.log(value) if value else -math.inf for value in values)
        return Hypothesis(spoken, {"am": score} if values else {}, extra)

    hyps = number_hypotheses(tree["alternatives"], parse_alternative, where, "alternative")
    return NBest(utt, hyps, tree["ref"])


def confidences(tree: Mapping, where: str) -> Iterator[float]:
    """Yield the confidence of an alternative, or those of AWS's words, which are texts there."""
    for key in ("confidence", "Confidence"):
        if key in tree:
            yield expect(tree[key], float, where, key)
            return
    for item in members(tree, "items", where) if "items" in tree else ():
        value = item.get("confidence")
        if item.get("type", "pronunciation") == "pronunciation" and value is not None:
            spelling = value if isinstance(value, str) else json_io.as_text(value)
            yield checks.number(spelling, where, "a confidence")
