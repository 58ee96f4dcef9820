"""Subtitles and files of transcripts, as programs that show them need them."""

import json
import random
import unicodedata
from itertools import pairwise

import pytest

from lmtools.base.errors import UserError
from lmtools.transcribe.subtitles import APART, COLUMNS, LEAST, LONGEST, SPEED, lay_out, width
from lmtools.transcribe.timed import TimedText, TimedWord
from lmtools.transcribe.transcript import WRITERS, Transcript

SAID = "the sea was calm and, as they said, nobody had ever seen anything like it before."


def make_transcript(seed: int, letters: str = "") -> Transcript:
    """Two minutes of words at the pace of speech, with pauses; long ones of `letters`."""
    draw, segments, at = random.Random(seed), [], 0.0
    while at < 120:
        words = []
        for _ in range(draw.randint(1, 25)):
            word = draw.choice(SAID.split()) if not letters else letters * draw.randint(1, 60)
            end = at + 0.05 + 0.06 * len(word)
            words.append(TimedWord(at, end, word, 0.9))
            at = end + draw.choice([0, 0, 0.1, 0.4])
        text = " ".join(word.word for word in words)
        segments.append(TimedText(words[0].start, words[-1].end, text, text, words))
        at += draw.choice([0, 0.5, 5])
    return Transcript("en", at, tuple(segments))


@pytest.mark.parametrize("letters", ["", "字", "pneumo"])
@pytest.mark.parametrize("seed", range(4))
def test_subtitles_keep_their_limits(seed, letters):
    made = make_transcript(seed, letters)
    cues = lay_out(made.segments, made.duration)
    said = "".join(made.text.split())
    assert "".join("".join(cue.text.split()) for cue in cues) == said
    for cue in cues:
        lines = cue.text.split("\n")
        assert len(lines) <= 2 and max(map(width, lines)) <= COLUMNS
    for cue, after in pairwise(cues):
        assert cue.start < cue.end <= after.start - APART + 0.002
        seconds = cue.end - cue.start
        assert LEAST - 0.002 <= seconds <= LONGEST + 0.002
        # who has no time to read it has the next one at once
        fast = width(cue.text.replace("\n", " ")) / seconds > SPEED + 0.1
        assert not fast or after.start - cue.end < APART + 0.002
    if not letters:
        inside = sum(not cue.text.endswith((".", ",")) for cue in cues)
        assert inside < len(cues)  # some end where a phrase does


def say(text: str, start=0.0, end=0.0, each=None) -> TimedText:
    """A segment whose words share its time, or last `each` seconds one after another."""
    words = text.split()
    step = (end - start) / len(words) if each is None else each
    times = [(start + n * step, start + (n + 1) * step) for n in range(len(words))]
    timed = [TimedWord(*time, word, 1) for time, word in zip(times, words, strict=True)]
    return TimedText(start, end, text, text, timed)


LATE = "we waited there for the last train home"
CROWDED = {  # what Whisper makes of silence, and words with the odd times that it gives
    "all at the end": (4.0, say(LATE, 4.0, 4.0)),
    "behind the end": (30.0, say("bye", 29.0, 31.0)),
    "no time at all": (3.0, TimedText(0.0, 0.0, LATE, LATE)),
    "behind each other": (8.0, *(say("That is a problem. " * 3, 7.9, 8.0) for _ in range(6))),
    "one word for a gap": (60.0, say("Oh dear", 1.0, 59.0)),
    "no pause": (30.0, say(" ".join(["tale"] * 75), 0.0, 30.0)),
    "the last 0.1 s": (10.0, say(SAID, 0.0, 4.0), say("Bye.", 9.9, 10.0)),
    "short": (0.1, say("Click.", 0.0, 0.1)),
}


@pytest.mark.parametrize("name", CROWDED)
def test_no_subtitle_is_brief_or_long_or_beyond_the_end(name):
    duration, *segments = CROWDED[name]
    cues = lay_out(segments, duration)
    assert " ".join(" ".join(cue.text.split()) for cue in cues) == " ".join(
        " ".join(one.text.split()) for one in segments
    )
    for cue in cues:
        assert min(LEAST, duration) - 0.002 <= cue.end - cue.start <= LONGEST + 0.002
        assert cue.start >= 0 and cue.end <= duration
    assert all(cue.end < after.start for cue, after in pairwise(cues))


STAYED = "She stayed there until late in the", "evening, then went home by the last bus."


@pytest.mark.parametrize(
    ("text", "each", "cues"),
    [
        (f"He left early. {' '.join(STAYED)}", 0.3, ["He left early.", "\n".join(STAYED)]),
        ("Yes. " + " ".join(["and on"] * 15) + ". No.", 0.3, None),
        ("Is it? It is! " * 9, 0.25, None),
    ],
)  # fmt: skip
def test_a_sentence_that_ends_is_not_shown_with_a_part_of_the_next(text, each, cues):
    words = len(text.split())
    found = [cue.text for cue in lay_out([say(text, 0, words * each)], words * each + 1)]
    assert cues is None or found == cues
    for cue in found:
        flat = cue.replace("\n", " ")
        assert flat[-1] in ".?!" or not any(mark in flat for mark in ".?!")


def test_what_is_doubtful_is_told():
    def doubts(**marks):
        plain = {"avg_logprob": -0.3, "no_speech_prob": 0.1, "compression_ratio": 1.2}
        said = [TimedText(n, n + 1, "you", "you", [], plain | marks) for n in range(2)]
        return Transcript("de", 3, tuple(said)).doubts

    assert doubts() == doubts(language_prob=0.4) == Transcript("en", 3, ()).doubts == []
    (told,) = doubts(language_prob=0.02)
    assert told == (
        "it does not sound like the language de (probability 0.02); give the right one, or auto"
    )
    for mark in ({"no_speech_prob": 0.7}, {"avg_logprob": -1.2}, {"compression_ratio": 2.5}):
        (told,) = doubts(**mark)
        assert told.startswith("2 of 2 segments may be no speech, the first at 00:00:00.000; liste")


def test_a_title_is_no_end_of_a_sentence():
    text = "It was a long and rather cold evening when I went to see Mr. Hale at home."
    words = [TimedWord(n / 3, n / 3 + 0.3, word, 1) for n, word in enumerate(text.split())]
    made = lay_out([TimedText(0, 6, text, "", words)], 9)
    assert not any(line.endswith("Mr.") for cue in made for line in cue.text.split("\n"))


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        (["我们明天去海边，", "船很小。"], "我们 明天 去 海边，|船 很 小。"),
        (["昨日はABC商事で", "カメラを 買った"], "昨日 は ABC 商事 で|カメラ を 買った"),
        (["เราจะไป ทะเล", "พรุ่งนี้"], "เรา จะ ไป ทะเล|พรุ่งนี้"),
        (["မိုးရွာတယ်။ ကောင်းတယ်။"], "မိုး ရွာ တယ်။ ကောင်း တယ်။"),
        (["go to 海边 OK", "好的"], "go to 海边 OK|好的"),
        (["오늘은 날씨가", "좋아요"], "오늘은 날씨가|좋아요"),
        (["今天去海边看日出，船很小。"], ""),
    ],
)
def test_blanks_are_those_of_the_text(texts, cut):
    words = [
        [TimedWord(n + k / 10, n + k / 10 + 0.1, word, 0.9) for k, word in enumerate(some.split())]
        for n, some in enumerate(cut.split("|"))
    ]
    pairs = zip(texts, words, strict=True)
    segments = [TimedText(n, n + 1, text, text, some) for n, (text, some) in enumerate(pairs)]
    whole = Transcript("", 9, tuple(segments)).text
    cues = lay_out(segments, 9)
    assert whole == (" " if whole[0] in "go오" else "").join(texts)
    # nothing but the line shows where a segment begins that no blank and no comma parts
    told = whole[0] in "go오" or texts[0].endswith("，")
    assert [cue.text for cue in cues] == [whole if told else "\n".join(texts)]


def test_lines_break_where_letters_may_part():
    """Twenty-one wide letters a line; no line begins with a comma, or cuts a letter from signs."""
    for text in (
        "今天我们去海边看日出，" * 9,
        "「そうですか」と彼は言った。" * 9,
        "ที่นี่ เขากินข้าว" * 20,
    ):
        lines = [
            line
            for cue in lay_out([TimedText(0, 60, text, text)], 60)
            for line in cue.text.split("\n")
        ]
        assert len(lines) > 3 and max(map(width, lines)) <= COLUMNS
        assert not any(unicodedata.combining(line[0]) or line[0] in "，。」ๆา" for line in lines)
    assert width("ที่นี่") == 2 and width("字ＡｱA") == 6


@pytest.mark.parametrize("form", ["srt", "vtt"])
def test_another_program_reads_the_subtitles(form):
    pysubs2 = pytest.importorskip(
        "pysubs2", reason="pysubs2 is not installed (pip install -e .[dev])"
    )
    made = make_transcript(7)
    read = pysubs2.SSAFile.from_string(made.write(form), format_=form)
    cues = lay_out(made.segments, made.duration)
    assert [line.plaintext for line in read] == [cue.text for cue in cues]
    times = [(line.start, line.end) for line in read]
    assert times == [(round(1000 * cue.start), round(1000 * cue.end)) for cue in cues]


def test_the_other_formats_say_what_they_should():
    words = [TimedWord(1, 1.5, "Blue", 0.9), TimedWord(1.5, 2, "finch", 0.4, True, 0.75)]
    marks = {"avg_logprob": -0.3, "no_speech_prob": 0.01}
    changed = TimedText(1, 2, "Blue finch", "Blue fins", words, marks)
    made = Transcript("en", 3, (changed, TimedText(2.5, 3, "<End> & on", "<End> & on")))
    assert made.write("txt") == "Blue finch\n<End> & on\n"
    assert made.write("tsv") == "start\tend\ttext\n1000\t2000\tBlue finch\n2500\t3000\t<End> & on\n"
    assert made.write("changes").splitlines()[1:] == ["1.00\t2.00\tBlue fins\tBlue finch"]
    assert "&lt;End&gt; &amp; on" in made.write("vtt") and "<End> & on" in made.write("srt")
    tree = json.loads(made.write("json"))
    assert (tree["text"], tree["language"], tree["duration"]) == ("Blue finch <End> & on", "en", 3)
    assert tree["segments"][0]["first"] == "Blue fins" and "first" not in tree["segments"][1]
    assert tree["segments"][0]["words"][1] == {
        "word": "finch", "start": 1.5, "end": 2, "probability": 0.4, "confidence": 0.75,
        "changed": True,
    }  # fmt: skip
    verbose = json.loads(made.write("verbose_json"))
    assert [word["word"] for word in verbose["words"]] == ["Blue", "finch"]
    assert verbose["segments"][0]["avg_logprob"] == -0.3
    with pytest.raises(UserError, match=r"^pdf: no format of a transcript; give txt, "):
        made.write("pdf")


def test_nothing_said_is_an_empty_file_of_each_format():
    for form in WRITERS:
        assert isinstance(Transcript("en", 9.0, ()).write(form), str)
