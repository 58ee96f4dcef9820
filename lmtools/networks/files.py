"""Confusion networks in files: NETWORKS names the formats.

`json` holds all, an utterance a line, and is read back:

    {"utt": "a1", "ref": "blue finch", "text": "blue fins", "slots": [{"chosen": "blue",
      "confidence": 0.94, "words": {"blue": 0.9, "blew": 0.1}, "time": [0.1, 0.42]}, ...]}

`words` are posteriors, most probable first, "" is no word; `confidence` is that of the chosen word
(its posterior, or what calibration made of it); `ref` and `time` may be missing. `text` is Kaldi
text and `ctm` sclite's, of the chosen words; ctm has their confidences, and times, made up where
they are unknown.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines
from lmtools.base.grammar import Finite, fit, parse_json
from lmtools.formats import kaldi_text
from lmtools.formats.checks import Utterances, encodable, write_lines
from lmtools.formats.nbest import ctm
from lmtools.formats.registry import Format, Formats
from lmtools.types import EMPTY, NO_WORD, ConfusionNetwork, Hypothesis, NBest, Slot

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
REMEDY = "posteriors and confidences are from 0 to 1; build the network again"
SUM = 1e-6  # what rounding may make of a sum of posteriors
TICK = 0.1  # seconds of a word whose time is unknown
SUMMARIES = {
    "json": "all of it, an utterance a line: slots, posteriors, confidences, times",
    "ctm": "sclite: `utt 1 start duration word confidence` of the chosen words",
    "text": "Kaldi text of the chosen words",
}


def recognises(path: Path, first: str) -> bool:
    return first.startswith("{") and '"utt"' in first and '"slots"' in first


class SlotTree(msgspec.Struct):
    """A slot in a file: fields of Slot."""

    words: dict[str, Share]
    chosen: str
    confidence: Share
    time: tuple[Finite, Finite] | None = None


class NetworkTree(msgspec.Struct):
    """A line of a file."""

    utt: str
    slots: list[SlotTree]
    ref: str | None = None


def read(path) -> Iterator[ConfusionNetwork]:
    """Yield networks line by line; UserError with the line of anything that is none."""
    utterances = Utterances()
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            tree = fit(
                parse_json(line, where), NetworkTree, where, {"slots": "slot"}, remedy=REMEDY
            )
            utt = utterances.add(tree.utt, where)
            slots = enumerate(tree.slots, 1)
            checked = tuple(check_slot(slot, f"{where}: slot {place}") for place, slot in slots)
            yield ConfusionNetwork(utt, checked, tree.ref)


def check_slot(slot: SlotTree, where: str) -> Slot:
    for word in (*slot.words, slot.chosen):
        if encodable(word, where) != NO_WORD and word.split() != [word]:
            raise UserError(f"{where}: {word!a} is no word; write words without white space")
    if not abs(math.fsum(slot.words.values()) - 1) <= SUM:
        raise UserError(f"{where}: the posteriors do not sum to 1; build the network again")
    return Slot(slot.words, slot.chosen, slot.confidence, slot.time)


def as_tree(network: ConfusionNetwork) -> dict:
    slots = []
    for slot in network.slots:
        time = {} if slot.time is None else {"time": [round(time, 3) for time in slot.time]}
        words = {word: shorten(share) for word, share in slot.words.items()}
        part = {"chosen": slot.chosen, "confidence": shorten(slot.confidence), "words": words}
        slots.append(part | time)
    ref = {} if network.ref is None else {"ref": network.ref}
    return {"utt": network.utt, **ref, "text": network.text, "slots": slots}


def shorten(share: float) -> float:
    return float(f"{share:.9g}")


def write(networks: Iterable[ConfusionNetwork], path) -> None:
    trees = {}

    def headers() -> Iterator[NBest]:
        for network in networks:
            trees["last"] = as_tree(network)
            yield NBest(network.utt, (Hypothesis(network.text),), network.ref)

    write_lines(headers(), path, lambda *_: [json.dumps(trees.pop("last"), ensure_ascii=False)])


def write_text(networks: Iterable[ConfusionNetwork], path) -> None:
    kaldi_text.write_rows(((network.utt, network.text) for network in networks), path)


def write_ctm(networks: Iterable[ConfusionNetwork], path) -> None:
    untimed: list[str] = []
    ctm.write((as_timed_list(network, untimed) for network in networks), path)
    ctm.tell_untimed(untimed, path)


def as_timed_list(network: ConfusionNetwork, untimed: list[str]) -> NBest:
    slots = network.spoken
    if all(slot.time is None for slot in slots):
        times = ctm.made_up(len(slots))
        untimed += [network.utt] if slots else []
    else:
        spans = fill_times([slot.time for slot in slots])
        times = [f"1 {start:.2f} {max(end - start, 0):.2f}" for start, end in spans]
    rows = [f"{time} {slot.confidence:.6f}" for time, slot in zip(times, slots, strict=True)]
    extra = {"times": "\n".join(rows)} if rows else EMPTY
    return NBest(network.utt, (Hypothesis(network.text, {}, extra),))


def fill_times(times: Sequence[tuple[float, float] | None]) -> list[tuple[float, float]]:
    """Return times with those unknown evenly between the known ones, TICK each at the ends."""
    known = [place for place, time in enumerate(times) if time is not None]
    filled = []
    for place, time in enumerate(times):
        if time is None:
            left = max((other for other in known if other < place), default=-1)
            right = min((other for other in known if other > place), default=len(times))
            gap = right - left - 1
            start = 0.0 if left < 0 else times[left][1]
            end = start + TICK * gap if right == len(times) else times[right][0]
            start = max(end - TICK * gap, 0.0) if left < 0 else start
            step = (end - start) / gap
            time = start + step * (place - left - 1), start + step * (place - left)
        filled.append(time)
    return filled


def refuse_read(path) -> Iterator[ConfusionNetwork]:
    raise UserError(f"{path}: holds no network, only chosen words; give the JSON of one")


def no_network(path: Path, first: str) -> bool:
    return False


NETWORKS = Formats(
    {
        "json": Format(SUMMARIES["json"], recognises, read, write),
        "ctm": Format(SUMMARIES["ctm"], no_network, refuse_read, write_ctm),
        "text": Format(SUMMARIES["text"], no_network, refuse_read, write_text),
    }
)
