"""A run of a recogniser over recordings: by several processes, each utterance by itself, resumable
at any of them, with the same lists in the end.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from lmtools.base.atomic import atomic_text, hold_lock, is_stream
from lmtools.base.computing import WHOLE, Shard
from lmtools.base.errors import UserError, one_line
from lmtools.base.log import ProgressBar, say
from lmtools.base.workers import as_completed
from lmtools.decode.audio import read_samples
from lmtools.decode.recognisers import Recogniser, make_recogniser, sign_recogniser
from lmtools.decode.utterances import Utterance, find_utterances, identify_audio
from lmtools.formats import jsonl
from lmtools.formats.jsonl import Journal, JournalEntry
from lmtools.types import EMPTY, SESSION, Hypothesis, NBest

REMEDY = "give fewer processes (a lower --nj), or fetch the model again"
FAILED = ".failed"  # what follows the name of the lists in the name of their report
# the same of what is said of segments: Kaldi's files, and the windows they were heard in
SEGMENTS, SESSIONS, WINDOWS = ".segments", ".utt2session", ".windows.jsonl"
SILENCE = {"am": 0.0, "avg": 0.0, "nospeech": 1.0, "length": 0.0}  # scores where nobody speaks
DIGITS = 4  # of marks


@dataclass(frozen=True)
class DecodeOptions:
    """Which recogniser, NAME:DIR with `key=value` options, on which device, by how many
    processes; `strict`: the first recording that fails ends the run; `shard`: which part of the
    recordings, of which any may fail.
    """

    asr: str
    opts: Sequence[str] = ()
    device: str = "auto"
    nj: int = 1
    strict: bool = False
    shard: Shard = WHOLE


@dataclass(frozen=True)
class HeardLists:
    """What became of an utterance: its list, or those of its segments, JSON of the windows that
    these were heard in, its length and the time that it took, in seconds.
    """

    lists: list[NBest]
    windows: str
    seconds: float
    spent: float

    @classmethod
    def of(cls, entries: Sequence[JournalEntry]) -> "HeardLists":
        """Return what the entries of a journal say, all those of an utterance."""
        notes = entries[0].notes
        lists = [entry.nbest for entry in entries]
        return cls(lists, notes["windows"], notes["seconds"], spent=notes["spent"])

    def entries(self, utt: str, audio: str) -> list[JournalEntry]:
        """Return the entries of a journal that say so."""
        notes = {"utt": utt, "audio": audio, "lists": len(self.lists), "windows": self.windows}
        notes |= {"seconds": self.seconds, "spent": self.spent}
        return [JournalEntry(nbest, notes) for nbest in self.lists]


@dataclass(frozen=True)
class Decoded:
    """Totals of decoding, in this run or before: `seconds` of speech and the seconds that decoding
    them took; `long` utterances became several lists; `failed` has the reason of each that could
    not be decoded, by name.
    """

    utterances: int
    hypotheses: int
    seconds: float
    spent: float
    long: int
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def real_time_factor(self) -> float:
        """Return seconds that a process takes for a second of speech."""
        return self.spent / self.seconds if self.seconds else 0.0


def decode_speech(source, out: str, options: DecodeOptions, ref=None) -> Decoded:
    """Write the N-best lists of the recordings in `source` to `out`, in their order, with
    transcripts where there are any (or those in the Kaldi text `ref`), and the reasons of those
    that cannot be decoded to `out` FAILED, lines `utt reason`, which is not there if there is none.

    A recording that the recogniser cuts has a list a segment, without transcript, whose session it
    is; any other beside it is a session of one segment. SEGMENTS, SESSIONS and WINDOWS are written
    beside. What an earlier run decoded of the same audio with the same model and options is taken
    from its journal; what failed is tried again. UserError for what cannot be read or decoded where
    `strict`, or of all recordings; what was decoded is kept.
    """
    if is_stream(out):
        raise UserError(f"{out}: lists of speech are resumed by the name of their file; give one")
    utterances = list(options.shard.share(partial(find_utterances, source, ref)))
    recogniser = make_recogniser(options.asr, options.opts, options.device)
    with hold_lock(out):
        known, failed = find_heard(utterances, recogniser, options, out)
        if failed:  # before the lists that lack them
            with atomic_text(out + FAILED) as stream:
                stream.writelines(f"{utt} {reason}\n" for utt, reason in failed.items())
        if not known and options.shard == WHOLE:
            utt, reason = next(iter(failed.items()))
            raise UserError(f"{source}: no recording can be decoded; the first, {utt}: {reason}")
        kept = [(one, known[one.utt]) for one in utterances if one.utt in known]
        cut = any(SESSION in nbest.extra for _, heard in kept for nbest in heard.lists)
        lists = [
            nbest
            if nbest.extra
            else replace(
                nbest, ref=one.ref, extra=describe_part(one.utt, 0, heard.seconds) if cut else EMPTY
            )
            for one, heard in kept
            for nbest in heard.lists
        ]
        write_segments(lists, out)
        write_lines(
            out + WINDOWS, (line for _, heard in kept for line in json.loads(heard.windows))
        )
        jsonl.write(lists, out)
        if not failed:
            Path(out + FAILED).unlink(missing_ok=True)
    heard = [one for _, one in kept]
    return Decoded(
        utterances=len(heard),
        hypotheses=sum(len(nbest.hyps) for one in heard for nbest in one.lists),
        seconds=sum(one.seconds for one in heard),
        spent=sum(one.spent for one in heard),
        long=sum(one.seconds > recogniser.longest > 0 for one in heard),
        failed=failed,
    )


def describe_part(session: str, start: float, end: float) -> dict[str, str]:
    """Return what the list of a part of a recording says besides its hypotheses."""
    return {SESSION: session, "start": f"{start:.2f}", "end": f"{end:.2f}"}


def write_segments(lists: Sequence[NBest], out: str) -> None:
    """Write Kaldi's `segments` and sessions of lists that have some; else they are not there."""
    cut = [(one.utt, one.extra) for one in lists if SESSION in one.extra]
    write_lines(out + SESSIONS, (f"{utt} {extra[SESSION]}" for utt, extra in cut))
    times = (f"{utt} {extra[SESSION]} {extra['start']} {extra['end']}" for utt, extra in cut)
    write_lines(out + SEGMENTS, times)


def write_lines(path: str, lines: Iterable[str]) -> None:
    """Write lines, or remove a file of an earlier run where there are none."""
    lines = list(lines)
    if lines:
        with atomic_text(path) as stream:
            stream.writelines(f"{line}\n" for line in lines)
    else:
        Path(path).unlink(missing_ok=True)


def find_heard(
    utterances: Sequence[Utterance], recogniser: Recogniser, options: DecodeOptions, out: str
) -> tuple[dict[str, HeardLists], dict[str, str]]:
    """Return what is known of utterances, or heard now, and reasons of those that failed."""
    audio, failed = identify_audio(utterances)
    for utt, reason in failed.items():
        report_failure(utt, reason, options.strict)
    journal = Journal(out, sign_recogniser(options.asr, recogniser))
    known = read_heard(journal, audio)
    missing = [one for one in utterances if one.utt in audio and one.utt not in known]
    label, there = f"decode by {options.asr}", len(utterances) - len(missing)
    if missing:
        with (
            ProgressBar(label, len(utterances), "utterance", there) as progress,
            journal.appending() as add,
        ):
            for utt, made in decode_missing(missing, recogniser, options):
                if isinstance(made, str):
                    failed[utt] = made
                    report_failure(utt, made, options.strict)
                else:
                    known[utt] = made
                    for entry in made.entries(utt, audio[utt]):
                        add(entry)
                progress.advance()
    for utt in list(known):
        if clash := {one.utt for one in known[utt].lists} & audio.keys() - {utt}:
            failed[utt] = f"{min(clash)}: is a segment's name and a recording's; rename that"
            report_failure(utt, failed[utt], options.strict)
            del known[utt]
    return known, {one.utt: failed[one.utt] for one in utterances if one.utt in failed}


def read_heard(journal: Journal, audio: Mapping[str, str]) -> dict[str, HeardLists]:
    """Return what a journal has of utterances whose audio is the same, all lists of each."""
    grouped: dict[str, list[JournalEntry]] = {}
    for entry in journal.read().values():
        utt = entry.notes.get("utt")
        if utt in audio and entry.notes.get("audio") == audio[utt]:
            grouped.setdefault(utt, []).append(entry)
    return {
        utt: HeardLists.of(sorted(entries, key=lambda entry: entry.nbest.utt))
        for utt, entries in grouped.items()
        if len(entries) == entries[0].notes["lists"]
    }


def report_failure(utt: str, reason: str, strict: bool) -> None:
    """Say that an utterance failed, and why; UserError for that if `strict`."""
    if strict:
        raise UserError(reason)
    say(one_line(UserError(f"{utt}: failed: {reason}")))


def decode_missing(
    missing: Sequence[Utterance], recogniser: Recogniser, options: DecodeOptions
) -> Iterator[tuple[str, HeardLists | str]]:
    """Yield the id of each utterance and what `decode_utterance` makes of it, as it is made."""
    # processes of their own even for one: a library that crashes ends none of ours
    results = as_completed(
        decode_utterance, missing, min(options.nj, len(missing)), recogniser.load,
        remedy=REMEDY,
    )  # fmt: skip
    for number, result in results:
        yield missing[number].utt, result


def decode_utterance(recogniser: Recogniser, utterance: Utterance) -> HeardLists | str:
    """Return what is heard in an utterance; or why nothing is."""
    began, where = time.monotonic(), utterance.recording.where
    try:
        samples = read_samples(utterance, recogniser.rate)
        seconds = len(samples) / recogniser.rate
        if seconds > recogniser.longest > 0:
            lists, windows = cut_recording(utterance.utt, recogniser.listen(samples), seconds)
        else:
            lists, windows = [NBest(utterance.utt, tuple(recogniser.decode(samples)))], []
    except UserError as error:
        return one_line(error)
    # whatever a library says of sound that it does not like
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        return one_line(UserError(f"{where}: cannot be decoded ({cause}); take it out"))
    if not lists[0].hyps:
        return f"{where}: no hypothesis; take the recording out"
    return HeardLists(lists, json.dumps(windows), seconds, spent=time.monotonic() - began)


def cut_recording(utt: str, windows: Iterable, seconds: float) -> tuple[list[NBest], list[str]]:
    """Return the lists of a recording's segments, and a line of JSON a window; where nothing is
    said, one list of the empty text.
    """
    segments, lines = [], []
    for window in windows:
        segments += [(one.start, min(one.end, seconds), one.hyps) for one in window.segments]
        marks = {name: round(value, DIGITS) for name, value in window.marks.items()}
        line = {"session": utt, "start": window.start, "end": window.end, **marks}
        lines.append(json.dumps({**line, "segments": len(window.segments)}))
    if not segments:
        segments = [(0.0, seconds, [Hypothesis("", SILENCE)])]
    lists = []
    for number, (start, end, hyps) in enumerate(segments, 1):
        extra = describe_part(utt, start, end)
        lists.append(NBest(f"{utt}-{number:04}", tuple(hyps), extra=extra))
    return lists, lines
