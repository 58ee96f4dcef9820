"""Results of the recognisers of Google, Amazon (Transcribe) and Microsoft (Azure) as JSON: a line
an utterance, with its id as `utt`, or a directory with a file UTT.json each.

    Google  {"results": [{"alternatives": [{"transcript": "blue", "confidence": 0.9}, ..]}, ..]}
    AWS     {"results": {"segments": [{"alternatives": [{"transcript": .., "items": [..]}, ..]}]}}
    Azure   {"NBest": [{"Confidence": 0.9, "Lexical": "blue", "Display": "Blue."}, ..]}, or, of
            batches, {"recognizedPhrases": [{"nBest": [{"confidence": 0.9, ..}, ..]}, ..]}

`utt` and `ref` are the user's. A result of several segments is one utterance a segment, UTT-1,
UTT-2 and so on, and may have no `ref`. The component `am` is the logarithm of the confidence (of
AWS the sum over the words) where all hypotheses of the file have one above 0: Google gives it to
the first one alone. Of Azure the text is the spoken form; `text=display` takes the written one.
What else an alternative holds is kept as extra. The format is read, not written.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lmtools.errors import UserError
from lmtools.formats import checks, json_io
from lmtools.types import Hypothesis, NBest

ABOUT = "results of Google's, Amazon's and Azure's recognisers: lines with utt, or UTT.json each"
OPTIONS = {"text": "of Azure: lexical (the default, the spoken form) or display (the written one)"}
SILENT = ("RecognitionStatus", "requestId", "totalBilledTime", "request_id", "total_billed_time")

recognises = json_io.recognise_results(
    r'"(results|NBest|recognizedPhrases)"\s*:', r'"(transcripts?|[Ll]exical)"\s*:'
)
write = checks.refuse_write


def read(path, text: str = "lexical") -> Iterator[NBest]:
    """Read the lists of a file or a directory; UserError for what is not as the clouds write it."""
    if text not in ("lexical", "display"):
        raise UserError(f"text={text}: neither lexical nor display; give one of them")
    found = [nbest for one in json_io.results(path) for nbest in utterances(*one, text)]
    seen: set[str] = set()
    for nbest in found:
        checks.first_time(nbest.utt, seen, str(path))
        seen.add(nbest.utt)
    if all(hyp.scores.get("am", -math.inf) > -math.inf for one in found for hyp in one.hyps):
        yield from found
        return
    for nbest in found:
        yield replace(nbest, hyps=tuple(replace(hyp, scores={}) for hyp in nbest.hyps))


def utterances(utt: str, tree: Mapping, where: str, text: str) -> Iterator[NBest]:
    """Yield the lists of one result, whose scores may be missing or -inf."""
    ref = json_io.optional(tree, "ref", str, where)
    segments = list(segments_of(tree, where))
    if len(segments) > 1 and ref is not None:
        raise UserError(
            f"{where}: {len(segments)} segments have one 'ref'; leave it out, and give --ref with"
            f" {utt}-1, {utt}-2 .."
        )
    for number, found in enumerate(segments or [[]], 1):
        hyps = tuple(
            hypothesis(one, f"{where}: segment {number}: alternative {rank}", text)
            for rank, one in enumerate(found, 1)
        )
        yield NBest(utt if len(segments) < 2 else f"{utt}-{number}", hyps, ref)


def segments_of(tree: Mapping, where: str) -> Iterator[Sequence]:
    """Yield the alternatives of each segment of a result."""
    if isinstance(tree.get("response"), dict):  # of Google's long recordings
        tree = tree["response"]
    if "NBest" in tree:
        yield json_io.member(tree, "NBest", list, where)
    elif "recognizedPhrases" in tree:
        for phrase in members(tree, "recognizedPhrases", where):
            yield json_io.member(phrase, "nBest", list, where)
    elif isinstance(tree.get("results"), dict):
        results = tree["results"]
        if "segments" in results:
            for segment in members(results, "segments", where):
                yield json_io.member(segment, "alternatives", list, where)
        else:
            yield json_io.member(results, "transcripts", list, where)
    elif "results" in tree:
        for result in members(tree, "results", where):
            yield json_io.member(result, "alternatives", list, where) if result else []
    elif others := tree.keys() - {"utt", "ref", *SILENT, "DisplayText", "Offset", "Duration"}:
        raise UserError(
            f"{where}: no results of Google, AWS or Azure, but {sorted(others)[0]!a}; give what"
            " they return as it is"
        )


def members(tree: Mapping, name: str, where: str) -> Iterator[Mapping]:
    """Yield the objects of the list `name`."""
    for number, one in enumerate(json_io.member(tree, name, list, where), 1):
        yield json_io.expect(one, dict, f"{where}: segment {number}", "it")


def hypothesis(tree, where: str, text: str) -> Hypothesis:
    """Return one hypothesis from its alternative; the score -inf for a confidence of 0."""
    tree = json_io.expect(tree, dict, where, "it")
    names = ("transcript", text, text.capitalize())
    name = next((name for name in names if name in tree), names[0])
    spoken = " ".join(json_io.member(tree, name, str, where).split())
    key = next((key for key in ("confidence", "Confidence") if key in tree), None)
    extra = json_io.extras(tree, (name,), where)
    if key is not None:
        values = [json_io.expect(tree[key], float, where, key)]
    else:
        values = list(confidences(tree, where))
        if not values:
            return Hypothesis(spoken, {}, extra)
    if any(not 0 <= value <= 1 for value in values):
        raise UserError(f"{where}: a confidence is not from 0 to 1; give what the cloud returned")
    score = sum(math.log(value) if value else -math.inf for value in values)
    return Hypothesis(spoken, {"am": score}, extra)


def confidences(tree: Mapping, where: str) -> Iterator[float]:
    """Yield the confidence of each word of AWS's alternative, which are texts there."""
    for item in members(tree, "items", where) if "items" in tree else ():
        confidence = item.get("confidence")
        if item.get("type", "pronunciation") == "pronunciation" and confidence is not None:
            told = confidence if isinstance(confidence, str) else json_io.as_text(confidence)
            yield checks.number(told, where, "a confidence")
