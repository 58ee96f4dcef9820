"""A run over recordings: files of transcripts, each recording by itself, from where a run that was
killed stopped, with the same files in the end.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from lmtools.base.atomic import atomic_text, hold_lock
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError, one_line
from lmtools.base.files import read_head, sha256
from lmtools.base.log import ProgressBar, say
from lmtools.formats.jsonl import Journal, JournalEntry
from lmtools.transcribe.transcriber import HeardWindow, Transcriber, join_windows
from lmtools.transcribe.transcript import Transcript
from lmtools.types import NBest

RULES = 3  # part of the journals' signature: raised when equal options give other transcripts
SHOWN = 5  # names of files that were left out, of an ending
ENDINGS = {"changes": "changes.tsv", "verbose_json": "verbose.json"}  # else the format's name
WINDOW = msgspec.json.Decoder(HeardWindow)


class BadRecordingError(Exception):
    """Why a recording has no transcript, in one line."""


@dataclass
class Transcribed:
    """What a run did: recordings, seconds of sound, segments and those whose text the second pass
    changed, and the reason of each recording that failed, by name.
    """

    recordings: int = 0
    seconds: float = 0.0
    segments: int = 0
    changed: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def transcribe_all(
    source: str, out: str, transcriber: Transcriber, formats: Sequence[str]
) -> Transcribed:
    """Write a file a recording and format into the directory `out`; what an earlier run heard of
    the same sound with the same models is taken from its journal. UserError where no recording can
    be read.
    """
    check = open_door("decode", "utterances:check_file", "transcribe")
    measure = open_door("decode", "audio:measure_sound", "transcribe")
    say_left_out(source, utterances := find_recordings(source))
    done, lengths = Transcribed(), {}
    for one in utterances:
        try:
            if one.wrong:
                raise UserError(one.wrong)
            if one.start or one.end is not None:
                raise UserError(f"{one.recording.where}: is a part; give whole recordings")
            if not one.recording.command:
                check(one.recording)
                lengths[one.utt] = measure(one.recording.place, one.recording.where)
        except UserError as error:
            fail(done, one.utt, one_line(error))
    known = all(lengths.get(one.utt) for one in utterances if one.utt not in done.failed)
    total = sum(lengths.values()) / 60 if known else None
    Path(out).mkdir(parents=True, exist_ok=True)
    with hold_lock(out), ProgressBar("transcribe", total, "minute") as progress:
        for one in utterances:
            if one.utt in done.failed:
                continue
            try:
                transcript = hear_recording(one, out, transcriber, progress)
            except BadRecordingError as error:
                fail(done, one.utt, str(error))
                continue
            write_files(transcript, Path(out, one.utt), formats)
            count(done, one.utt, transcript)
    if not done.recordings:
        utt, reason = next(iter(done.failed.items()))
        raise UserError(f"{source}: no recording can be transcribed; the first, {utt}: {reason}")
    return done


def find_recordings(source: str) -> list:
    """Return the recordings that a path means, as `lmtools decode` finds them, or a file that is no
    text, whatever its ending is.
    """
    find = open_door("decode", "utterances:find_utterances", "transcribe")
    if Path(source).is_file() and b"\0" in read_head(source):
        return list(open_door("decode", "utterances:read_names", "transcribe")([Path(source)]))
    return find(source)


def fail(done: Transcribed, utt: str, reason: str) -> None:
    done.failed[utt] = reason
    say(f"{utt}: failed: {reason}")


def count(done: Transcribed, utt: str, transcript: Transcript) -> None:
    changed = sum(one.text != one.first for one in transcript.segments)
    done.recordings += 1
    done.seconds += transcript.duration
    done.segments += len(transcript.segments)
    done.changed += changed
    if transcript.fallback:
        say(f"warning: {utt}: has the recogniser's own text in part: {transcript.fallback}")
    for doubt in transcript.doubts:
        say(f"warning: {utt}: {doubt}")


def say_left_out(source: str, utterances: Sequence) -> None:
    """Say which files of a directory are no recordings by their names."""
    if not Path(source).is_dir():
        return
    taken = {one.recording.place for one in utterances}
    list_files = open_door("decode", "utterances:list_files", "transcribe")
    others: dict[str, list[str]] = {}
    for file in sorted(list_files(Path(source))):
        if str(file) not in taken and not file.name.startswith("."):
            others.setdefault(file.suffix or "no ending", []).append(file.name)
    for ending, names in others.items():
        shown = ", ".join(names[:SHOWN]) + (" ..." if len(names) > SHOWN else "")
        say(f"left out: {len(names)} files, as {ending} is no ending of recordings: {shown}")


def hear_recording(one, out: str, transcriber: Transcriber, progress: ProgressBar) -> Transcript:
    """Return the transcript of a recording; what its journal has is not heard again."""
    place, command = one.recording.place, one.recording.command
    run = open_door("decode", "audio:run_command", "transcribe")
    source = io.BytesIO(run(place)) if command else place
    signature = {"audio": f"{place} |" if command else sha256(place), "rules": RULES}
    journal = Journal(Path(out, one.utt), signature | transcriber.signature)
    windows = list(read_windows(journal))
    state, before = (windows[-1].state, windows[-1].end) if windows else (None, 0.0)
    progress.advance(before / 60)
    if windows and state is None:
        return join_windows(windows, transcriber.recogniser.options.language)
    heard = transcriber.hear(source, one.recording.where, one.utt, state=state)
    with journal.appending() as add:
        for window in guard(heard, one.recording.where):
            extra = {"window": msgspec.json.encode(window).decode()}
            add(JournalEntry(NBest(str(len(windows)), ()), extra))
            windows.append(window)
            progress.advance((window.end - before) / 60)
            before = window.end
    return join_windows(windows, transcriber.recogniser.options.language)


def guard(windows: Iterator[HeardWindow], where: str) -> Iterator[HeardWindow]:
    """Yield windows; BadRecordingError for what is wrong with the recording, and not with what is
    done with the windows.
    """
    try:
        yield from windows
    except UserError as error:
        raise BadRecordingError(one_line(error)) from None
    except Exception as error:  # whatever a library says of sound that it does not like
        cause = f"{where}: cannot be decoded ({type(error).__name__}: {error}); take it out"
        raise BadRecordingError(one_line(UserError(cause))) from None


def read_windows(journal: Journal) -> Iterator[HeardWindow]:
    """Yield the windows that a journal has, up to the first that is lacking."""
    entries = journal.read()
    for number in range(len(entries)):
        if str(number) not in entries:
            return
        yield WINDOW.decode(entries[str(number)].notes["window"])


def write_files(transcript: Transcript, stem: Path, formats: Sequence[str]) -> None:
    for form in formats:
        path = stem.with_name(f"{stem.name}.{ENDINGS.get(form, form)}")
        with atomic_text(path) as stream:
            stream.write(transcript.write(form))
