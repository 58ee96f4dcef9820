"""Which utterances there are: a directory of recordings, as LibriSpeech has them, or Kaldi's
wav.scp, with segments and transcripts where these are given.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lmtools.base.errors import UserError, one_line
from lmtools.base.files import SOUND, name_binary, read_head, read_lines, refuse_pipe, sha256
from lmtools.base.log import say
from lmtools.formats import kaldi_io, kaldi_text
from lmtools.formats.checks import first_time, identifier, number

MEDIA = {  # suffix -> FFmpeg's name of the format: what libsndfile does not read
    ".m4a": "mov", ".mp4": "mov", ".mov": "mov", ".3gp": "mov", ".aac": "aac", ".amr": "amr",
    ".webm": "matroska", ".mkv": "matroska", ".wma": "asf",
}  # fmt: skip
# the first of two files of a name is decoded
SUFFIXES = (
    ".flac", ".wav", ".wave", ".aiff", ".aif", ".sph", ".opus", ".ogg", ".oga", ".mp3", *MEDIA
)  # fmt: skip
TRANSCRIPTS = ".trans.txt"  # LibriSpeech's, one file a chapter


@dataclass(frozen=True)
class Recording:
    """A file of audio or, where `command`, a shell command that the user allowed and that prints
    one; `where` is what to say of it in messages.
    """

    place: str
    where: str
    command: bool = False


@dataclass(frozen=True)
class Utterance:
    """Utterance, decoded to one list: a recording, from `start` to `end` in seconds (None: its
    end), and its transcript (None: unknown); `wrong`: why it is passed over.
    """

    utt: str
    recording: Recording
    start: float = 0.0
    end: float | None = None
    ref: str | None = None
    wrong: str = ""


def find_utterances(source, ref=None) -> list[Utterance]:
    """Return the utterances of `source`: a wav.scp, a directory that has one, or a directory with
    recordings at any depth, by name; transcripts are those of the Kaldi text `ref`, or else of
    `text` beside wav.scp, or of LibriSpeech's *.trans.txt; or the one recording that it is.

    UserError for what is malformed, commands that are not allowed, and utterances without a
    transcript where others have one; whether recordings are there is not looked at. Of a directory
    of recordings, those that cannot be named stay, as `wrong`.
    """
    path = Path(source)
    script = path / "wav.scp" if path.is_dir() else path
    if script.is_file() and (
        script.suffix.lower() in SUFFIXES or name_binary(read_head(script), SOUND) is not None
    ):
        utterances, texts = list(read_names([script])), []
    elif script.is_file():
        beside = script.with_name("segments")
        refuse_pipe(beside)
        utterances = list(read_script(script))
        utterances = list(read_segments(beside, utterances)) if beside.exists() else utterances
        texts = [script.with_name("text")]
    elif path.is_dir():
        files = sorted(list_files(path), key=lambda file: (file.stem, file))
        utterances = list(read_names([file for file in files if file.suffix.lower() in SUFFIXES]))
        say_renamed(utterances)
        texts = [path / "text", *(file for file in files if file.name.endswith(TRANSCRIPTS))]
    else:
        raise UserError(
            f"{source}: no such directory, wav.scp or recording; give LibriSpeech's directory of a"
            " set, Kaldi's wav.scp, or one recording"
        )
    if not utterances:
        endings = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise UserError(f"{source}: no recordings; give a directory with {endings}, or a wav.scp")
    texts = [Path(ref)] if ref else [text for text in texts if text.is_file()]
    return attach_transcripts(utterances, texts) if texts else utterances


def list_files(directory: Path) -> Iterator[Path]:
    """Yield the regular files in a directory and those below it; links to directories are not
    followed, which could lead in circles.
    """
    for parent, _, names in os.walk(directory):
        yield from (Path(parent, name) for name in names if Path(parent, name).is_file())


def read_names(files: Sequence[Path]) -> Iterator[Utterance]:
    """Yield an utterance a file, called as the file is, with _ for blanks; of files of one name in
    one folder the first of SUFFIXES, and what cannot be an id or comes again as `wrong`.
    """
    seen: dict[str, Path] = {}
    rank = {suffix: place for place, suffix in enumerate(SUFFIXES)}
    places = {file: rank.get(file.suffix.lower(), len(rank)) for file in files}
    for file in sorted(files, key=lambda file: (file.stem, file.parent, places[file])):
        utt, recording = "_".join(file.stem.split()), Recording(str(file), str(file))
        try:
            identifier(utt, str(file))
            cause = f"{file}: {seen[utt]} is called so, too; rename it" if utt in seen else ""
        except UserError as error:
            cause = str(error)
        name = "_".join(str(file).encode(errors="replace").decode().split())
        yield Utterance(name if cause else utt, recording, wrong=cause)
        seen.setdefault(utt, file)


def say_renamed(utterances: Iterable[Utterance]) -> None:
    """Say that names of files with blanks are not the ids."""
    names = [(Path(one.recording.place).stem, one.utt) for one in utterances if not one.wrong]
    if renamed := [(name, utt) for name, utt in names if name != utt]:
        name, utt = renamed[0]
        say(f"blanks in {len(renamed)} names of recordings are _ in their ids: {name!r} is {utt}")


def read_script(path: Path) -> Iterator[Utterance]:
    """Yield the lines `utt file` and `utt command |` of a wav.scp; paths are relative to the
    working directory, as Kaldi has them.
    """
    for row, utt, target in rows(path, "utt file", 2):
        where = f"{path}:{row}"
        if target.endswith("|"):
            command = kaldi_io.permit_command(target[:-1].strip(), where)
            yield Utterance(utt, Recording(command, where, True))
        else:
            yield Utterance(utt, Recording(target, f"{where}: {target}"))


def check_file(recording: Recording) -> None:
    """Raise UserError where the file of a recording is none: a pipe could wait for ever."""
    if not os.path.isfile(recording.place):
        what = "is no regular file" if os.path.lexists(recording.place) else "is not there"
        raise UserError(f"{recording.where}: {what}; correct the path")


def read_segments(path: Path, whole: Sequence[Utterance]) -> Iterator[Utterance]:
    """Yield the lines `utt recording start end` of Kaldi segments over `whole` recordings."""
    recordings = {utterance.utt: utterance.recording for utterance in whole}
    for row, utt, rest in rows(path, "utt recording start end", 4):
        where = f"{path}:{row}"
        name, *times = rest.split()
        start, end = (number(time, where, "a time") for time in times)
        if name not in recordings:
            raise UserError(f"{where}: no recording {name!a} in wav.scp; add its line")
        end = None if end == -1 else end  # Kaldi: to the end of the recording
        if start < 0 or (end is not None and end <= start):
            raise UserError(f"{where}: from {start:g} to {times[1]} s is no time; correct the line")
        recording = replace(recordings[name], where=f"{where}: {recordings[name].place}")
        yield Utterance(utt, recording, start, end)


def rows(path: Path, form: str, words: int) -> Iterator[tuple[int, str, str]]:
    """Yield triples (line number, utterance id, what follows it) of a file whose lines have the
    `form`, of so many words (2: anything after the first).
    """
    seen: set[str] = set()
    for row, line in read_lines(path):
        utt, _, rest = line.strip().replace("\t", " ", 1).partition(" ")
        where = f"{path}:{row}"
        if words == 4 and len(rest.split()) == words:
            raise UserError(
                f"{where}: has a channel; make each channel a recording in wav.scp (`REC-A sox F -t"
                " wav - remix 1 |`), and leave it out"
            )
        if not rest.strip() or "\0" in rest or (words > 2 and len(rest.split()) != words - 1):
            raise UserError(f"{where}: {line[:80]!a} is not `{form}`; correct the line")
        first_time(identifier(utt, where), seen, where)
        seen.add(utt)
        yield row, utt, rest.strip()


def attach_transcripts(utterances: Sequence[Utterance], texts: Collection[Path]) -> list[Utterance]:
    """Return the utterances with the transcripts of Kaldi `texts`, which may have more."""
    refs: dict[str, str] = {}
    for text in texts:
        for row, utt, words in kaldi_text.rows(text):
            first_time(utt, refs, f"{text}:{row}")
            refs[utt] = words
    missing = [one.utt for one in utterances if one.utt not in refs and not one.wrong]
    if missing:
        where = str(texts[0]) + (" and others like it" if len(texts) > 1 else "")
        raise UserError(
            f"{where}: no transcript of {len(missing)} of {len(utterances)} utterances (first"
            f" {missing[0]!r}); add them, or take the recordings out"
        )
    return [replace(utterance, ref=refs.get(utterance.utt)) for utterance in utterances]


def identify_audio(utterances: Sequence[Utterance]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what stands for the audio of each utterance, the hash of its file, or the command, and
    its times; and in one line why others have none: they are `wrong`, or cannot be read.
    """
    known: dict[str, str] = {}
    audio, failed = {}, {}
    for utterance in utterances:
        place = utterance.recording.place
        try:
            if utterance.wrong:
                raise UserError(utterance.wrong)
            if place not in known and utterance.recording.command:
                known[place] = f"{place} |"
            elif place not in known:
                check_file(utterance.recording)
                known[place] = sha256(place)
            audio[utterance.utt] = f"{known[place]} {utterance.start}-{utterance.end}"
        except UserError as error:
            failed[utterance.utt] = one_line(error)
    return audio, failed
