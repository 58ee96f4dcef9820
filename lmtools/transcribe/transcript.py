"""What a recording says, and the files that it becomes: those of Whisper's own command line, the
object that OpenAI's interface calls verbose_json, and a table of what the second pass changed.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lmtools.base.errors import UserError
from lmtools.text.scripts import join_texts
from lmtools.transcribe.subtitles import lay_out
from lmtools.transcribe.timed import TimedText, TimedWord

# languages as OpenAI's verbose_json names them, behind their codes
LANGUAGES = """
af afrikaans, am amharic, ar arabic, as assamese, az azerbaijani, ba bashkir, be belarusian,
bg bulgarian, bn bengali, bo tibetan, br breton, bs bosnian, ca catalan, cs czech, cy welsh,
da danish, de german, el greek, en english, es spanish, et estonian, eu basque, fa persian,
fi finnish, fo faroese, fr french, gl galician, gu gujarati, ha hausa, haw hawaiian, he hebrew,
hi hindi, hr croatian, ht haitian creole, hu hungarian, hy armenian, id indonesian, is icelandic,
it italian, ja japanese, jw javanese, ka georgian, kk kazakh, km khmer, kn kannada, ko korean,
la latin, lb luxembourgish, ln lingala, lo lao, lt lithuanian, lv latvian, mg malagasy, mi maori,
mk macedonian, ml malayalam, mn mongolian, mr marathi, ms malay, mt maltese, my myanmar, ne nepali,
nl dutch, nn nynorsk, no norwegian, oc occitan, pa punjabi, pl polish, ps pashto, pt portuguese,
ro romanian, ru russian, sa sanskrit, sd sindhi, si sinhala, sk slovak, sl slovenian, sn shona,
so somali, sq albanian, sr serbian, su sundanese, sv swedish, sw swahili, ta tamil, te telugu,
tg tajik, th thai, tk turkmen, tl tagalog, tr turkish, tt tatar, uk ukrainian, ur urdu, uz uzbek,
vi vietnamese, yi yiddish, yo yoruba, yue cantonese, zh chinese
"""
NAMED = dict(one.strip().split(" ", 1) for one in LANGUAGES.split(","))
NO_SPEECH, LOG_PROB, REPEATED = 0.6, -1.0, 2.4  # at which Whisper's users doubt a text
FOREIGN = 0.1  # probability of the language below which it is another one
OPENAI = ("avg_logprob", "compression_ratio", "no_speech_prob", "temperature")


@dataclass(frozen=True)
class Transcript:
    """The segments of a recording of `duration` seconds in the language `language`; `fallback` is
    why the second pass failed, so that the text is the recogniser's own; None where it did not.
    """

    language: str
    duration: float
    segments: tuple[TimedText, ...]
    fallback: str | None = None

    @property
    def text(self) -> str:
        """Return the whole text in one line."""
        return join_texts(segment.text for segment in self.segments)

    @property
    def words(self) -> list[TimedWord]:
        """Return the words of all segments."""
        return [word for segment in self.segments for word in segment.words]

    @property
    def doubts(self) -> list[str]:
        """Return why the text may be no speech, or of another language, by what the recogniser says
        of it; each in a line.
        """
        marks = [segment.marks for segment in self.segments]
        shares = [one["language_prob"] for one in marks if "language_prob" in one]
        if shares and (mean := sum(shares) / len(shares)) < FOREIGN:
            cause = f"it does not sound like the language {self.language} (probability {mean:.2f})"
            return [f"{cause}; give the right one, or auto"]
        beyond = {"no_speech_prob": NO_SPEECH, "compression_ratio": REPEATED}
        doubtful = [
            clock(segment.start, ".")
            for segment, one in zip(self.segments, marks, strict=True)
            if one.get("avg_logprob", 0.0) < LOG_PROB
            or any(one.get(name, 0.0) > most for name, most in beyond.items())
        ]
        cause = f"{len(doubtful)} of {len(marks)} segments may be no speech, the first at"
        return [f"{cause} {at}; listen to them, or leave them out" for at in doubtful[:1]]

    def write(self, fmt: str) -> str:
        """Return the content of a file of a format: txt, srt, vtt, tsv, json, verbose_json or
        changes; UserError for any other.
        """
        if fmt not in WRITERS:
            raise UserError(f"{fmt}: no format of a transcript; give {', '.join(WRITERS)}")
        return WRITERS[fmt](self)


def write_txt(transcript: Transcript) -> str:
    return "".join(f"{segment.text}\n" for segment in transcript.segments)


def write_srt(transcript: Transcript) -> str:
    return "\n".join(
        f"{number}\n{clock(cue.start, ',')} --> {clock(cue.end, ',')}\n{cue.text}\n"
        for number, cue in enumerate(lay_out(transcript.segments, transcript.duration), 1)
    )


def write_vtt(transcript: Transcript) -> str:
    cues = (
        f"{clock(cue.start, '.')} --> {clock(cue.end, '.')}\n{escape(cue.text)}\n"
        for cue in lay_out(transcript.segments, transcript.duration)
    )
    return "\n".join(["WEBVTT\n", *cues])


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def clock(seconds: float, point: str) -> str:
    """Return a time as 00:01:02,345."""
    rest, milliseconds = divmod(round(seconds * 1000), 1000)
    minutes, rest = divmod(rest, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}{point}{milliseconds:03}"


def write_tsv(transcript: Transcript) -> str:
    rows = (
        f"{round(one.start * 1000)}\t{round(one.end * 1000)}\t{one.text}\n"
        for one in transcript.segments
    )
    return "".join(["start\tend\ttext\n", *rows])


def write_changes(transcript: Transcript) -> str:
    """Return the segments that the second pass changed: times, first answer, chosen text."""
    rows = (
        f"{one.start:.2f}\t{one.end:.2f}\t{one.first}\t{one.text}\n"
        for one in transcript.segments
        if one.first != one.text
    )
    return "".join(["start\tend\tfirst\tchosen\n", *rows])


def write_json(transcript: Transcript) -> str:
    """Return everything; openai-whisper's names where it has the same."""
    tree = {
        "text": transcript.text,
        "language": transcript.language,
        "duration": transcript.duration,
        **({"fallback": transcript.fallback} if transcript.fallback else {}),
        **({"doubts": transcript.doubts} if transcript.doubts else {}),
        "segments": list(describe_segments(transcript, with_words=True)),
    }
    return json.dumps(tree, ensure_ascii=False, indent=1) + "\n"


def write_verbose(transcript: Transcript) -> str:
    """Return OpenAI's verbose_json, with words and segments."""
    tree = {
        "task": "transcribe",
        "language": NAMED.get(transcript.language, transcript.language),
        "duration": transcript.duration,
        "text": transcript.text,
        "words": [
            {"word": one.word, "start": one.start, "end": one.end} for one in transcript.words
        ],
        "segments": list(describe_segments(transcript, with_words=False)),
    }
    return json.dumps(tree, ensure_ascii=False) + "\n"


def describe_segments(transcript: Transcript, with_words: bool) -> Iterator[dict]:
    for number, one in enumerate(transcript.segments):
        tree = {"id": number, "start": one.start, "end": one.end, "text": one.text}
        if with_words:
            tree |= {"first": one.first} if one.first != one.text else {}
            tree |= one.marks | {"words": [describe_word(word) for word in one.words]}
        else:
            tree |= {"seek": round(one.start * 100), "tokens": []}
            tree |= {name: one.marks.get(name, 0.0) for name in OPENAI}
        yield tree


def describe_word(word: TimedWord) -> dict:
    tree = {"word": word.word, "start": word.start, "end": word.end}
    tree["probability"] = word.probability
    if word.confidence is not None:
        tree["confidence"] = word.confidence
    return tree | ({"changed": True} if word.changed else {})


WRITERS: dict[str, Callable[[Transcript], str]] = {
    "txt": write_txt,
    "srt": write_srt,
    "vtt": write_vtt,
    "tsv": write_tsv,
    "json": write_json,
    "verbose_json": write_verbose,
    "changes": write_changes,
}
