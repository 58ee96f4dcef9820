"""`lmtools transcribe` and `lmtools.Transcriber` with a recogniser that needs no model: the second
pass, files, kills, what is left out.
"""

import json
import os
import subprocess
import sys
import wave
from pathlib import Path
from types import SimpleNamespace

import fake_listener
import numpy as np
import pytest

import lmtools
from lmtools.cli import main
from lmtools.decode import recognisers
from lmtools.ears import listening
from lmtools.text.normaliser import parse_normaliser
from lmtools.transcribe import transcriber
from lmtools.transcribe.second import SecondPass
from lmtools.types import NBest

pytest.importorskip("av", reason="av is not installed (pip install -e '.[asr]')")
TESTS = Path(__file__).parents[2]
TEXT = "we see the sea\na blue finch it sings\nthe sea is blue\n" * 3


def record(path: Path, seconds: float, channels=2, rate=8_000) -> None:
    """A WAV file of two tones."""
    time = np.arange(round(seconds * rate))
    tones = [np.rint(8000 * np.sin(time / (20 + 9 * n))) for n in range(channels)]
    with wave.open(str(path), "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(np.stack(tones, -1).astype("<i2").tobytes())


def encode(source: Path, out: Path, codec: str) -> None:
    """A file of another format with the same sound."""
    import av

    with av.open(str(source)) as given, av.open(str(out), "w") as made:
        stream = made.add_stream(codec, rate=48_000, layout="stereo")
        resample = av.AudioResampler(stream.format, "stereo", 48_000, stream.frame_size or 960)
        for frame in [*given.decode(audio=0), None]:
            for part in resample.resample(frame):
                made.mux(stream.encode(part))
        made.mux(stream.encode(None))


@pytest.fixture(scope="module")
def ngram(tmp_path_factory):
    """A bigram that knows the right words."""
    home = tmp_path_factory.mktemp("ngram")
    (home / "text").write_text(TEXT)
    command = ["ngram", "--text", home / "text", "--order", "2", "--out", home / "lm"]
    assert main(list(map(str, command))) == 0
    return str(home / "lm")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A directory with a fake model, in a process that takes it for Whisper."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transcriber, "listen", None)
    monkeypatch.setitem(recognisers.RECOGNISERS, "whisper", None)
    fake_listener.install()
    Path("m").mkdir()
    Path("m/model").write_text("word\n")
    return tmp_path


def transcribe(source, *more) -> int:
    words = ["transcribe", source, "--asr", "whisper:m", "--out", "o", *more]
    return main(list(map(str, words)))


def read_tree(path) -> dict:
    return json.loads(Path(path).read_text())


def test_the_second_pass_chooses_and_says_what_it_changed(home, ngram, capsys):
    record(home / "a b.wav", 25)
    assert transcribe("a b.wav", "--lm", ngram, "--changes") == 0
    assert "second pass: lm, weights default:whisper" in capsys.readouterr().err
    tree = read_tree("o/a_b.json")
    texts = [segment["text"] for segment in tree["segments"]]
    assert texts == ["We see the sea.", "A blue finch, it sings."] * 3 and tree["duration"] == 25
    first = tree["segments"][0]
    assert first["first"] == "we see the see" and first["avg_logprob"] == -0.25
    words = first["words"]
    assert [word["word"] for word in words] == ["We", "see", "the", "sea."]
    assert [word.get("changed", False) for word in words] == [False, False, False, True]
    assert words[1]["confidence"] == 1 and 0.5 < words[3]["confidence"] < 1
    assert words[3]["start"] == 3.75 and words[0]["probability"] == 0.5
    assert len(Path("o/a_b.changes.tsv").read_text().splitlines()) == 7
    assert {path.suffix[1:] for path in Path("o").glob("a_b.*")} == {
        "txt", "srt", "vtt", "tsv", "json"
    }  # fmt: skip
    assert main(["convert", "o/a_b.json", "lists.jsonl", "--format", "whisper"]) == 0
    (read,) = lmtools.read("lists.jsonl")
    assert read.hyps[0].text == tree["text"]


def test_without_a_model_it_says_that_this_is_the_recognisers_answer(home, monkeypatch, capsys):
    monkeypatch.setattr(transcriber, "find_english", list)
    record(home / "a.wav", 5)
    assert transcribe("a.wav", "--to", "txt") == 0
    said = capsys.readouterr().err
    assert "no language model is installed, so this is the recogniser's own answer" in said
    assert Path("o/a.txt").read_text() == "we see the see\na blue fins sings\n"
    assert transcribe("a.wav", "--to", "txt", "--lm", "none") == 0
    assert "no second pass: this is the recogniser's own answer" in capsys.readouterr().err


def test_the_installed_english_model_is_for_english_alone(home, ngram, monkeypatch):
    monkeypatch.setattr(transcriber, "find_english", lambda: [ngram])
    record(home / "a.wav", 5)
    made = lmtools.Transcriber("whisper:m")
    assert made.transcribe("a.wav").text == "We see the sea. A blue finch, it sings."
    monkeypatch.setattr(fake_listener.FakeWindow, "language", "de")
    assert made.transcribe("a.wav").text == "we see the see a blue fins sings"


def test_a_fault_of_the_second_pass_leaves_the_first(home, ngram, monkeypatch, capsys):
    record(home / "a.wav", 5)
    made = lmtools.Transcriber("whisper:m", {"lm": lmtools.load(ngram)})

    def fail(*_):
        raise MemoryError("all gone")

    assert made.transcribe("a.wav").fallback is None
    monkeypatch.setattr(SecondPass, "choose", fail)
    found = made.transcribe(Path("a.wav").read_bytes())
    assert found.fallback == "all gone" and found.text.startswith("we see the see a blue fins")


def test_an_ear_hears_each_segment(home, ngram, monkeypatch, capsys):
    record(home / "a.wav", 5)
    ear = fake_listener.FakeEar()
    made = lmtools.Transcriber("whisper:m", {"lm": lmtools.load(ngram)}, ear=ear)
    found = made.transcribe("a.wav")
    assert found.text == "we see the see a blue fins sings" and found.fallback is None
    texts = ["a blue fins sings", "A blue finch, it sings."]
    assert ear.asked[1] == (texts, 40_000) and made.signature["second"]["ear"] == ear.signature
    monkeypatch.setitem(listening.EARS, "fake", fake_listener.FakeEar)
    assert transcribe("a.wav", "--lm", ngram, "--ear", "fake:x", "--to", "txt") == 0
    assert "second pass: lm and a second ear, weights default" in capsys.readouterr().err
    assert Path("o/a.txt").read_text() == "we see the see\na blue fins sings\n"


def test_the_name_of_a_session_chooses_its_phrases(home):
    record(home / "a.wav", 5)
    Path("names.jsonl").write_text('{"id": "birds", "phrases": ["blue finch"]}\n')
    made = lmtools.Transcriber("whisper:m", [], phrases="names.jsonl")
    assert "finch" not in made.transcribe("a.wav").text
    seen = []
    found = made.transcribe("a.wav", prompt="birds", progress=lambda *at: seen.append(at))
    assert "A blue finch, it sings." in found.text and seen == [(5, 5)]


@pytest.mark.parametrize(
    ("more", "text"),
    [("", "A BlueFinch, it sings."), (",spelling=false", "A blue finch, it sings.")],
)
def test_phrases_are_written_as_the_glossary_does(home, more, text):
    record(home / "a.wav", 5)
    Path("names.txt").write_text("BlueFinch | blue finch\n")
    assert transcribe("a.wav", "--lm", "none", "--phrases", f"names.txt{more}", "--to", "json") == 0
    said = read_tree("o/a.json")["segments"][1]
    assert said["text"] == text and " ".join(word["word"] for word in said["words"]) == text
    made = lmtools.Transcriber("whisper:m", [], phrases=["BlueFinch | blue finch"])
    assert "A BlueFinch, it sings." in made.transcribe("a.wav").text


def test_killed_twice_it_goes_on_to_equal_files(home, ngram):
    record(home / "long.wav", 75)
    assert transcribe("long.wav", "--lm", ngram, "--changes") == 0
    os.rename("o", "whole")
    command = [sys.executable, "-c", fake_listener.SCRIPT, "transcribe", "long.wav"]
    command += ["--asr", "whisper:m", "--lm", ngram, "--out", "o", "--changes"]
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}", "KILL_AT": "kill"}
    for second in ("20", "60"):
        Path("kill").write_text(second)
        done = subprocess.run(command, env=environment, capture_output=True)
        assert done.returncode == -9 and not list(Path("o").glob("long.*"))
    (journal,) = Path("o").glob(".long.*.journal")
    assert len(journal.read_text().splitlines()) == 6
    journal.write_text(journal.read_text() + '{"cut')
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for path in Path("whole").glob("long.*"):
        assert Path("o", path.name).read_bytes() == path.read_bytes()
    assert len(list(Path("o").glob("long.*"))) == 6


FORMATS = {
    "a.m4a": "aac",
    "b.mp4": "aac",
    "c.webm": "libopus",
    "d.opus": "libopus",
    "e.mp3": "libmp3lame",
    "f.avi": "libmp3lame",
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_of_phones_and_cameras(home, name):
    record(home / "source.wav", 12)
    encode(home / "source.wav", home / name, FORMATS[name])
    assert transcribe(name, "--lm", "none", "--to", "json") == 0
    tree = read_tree(f"o/{Path(name).stem}.json")
    assert abs(tree["duration"] - 12) < 0.2 and len(tree["segments"]) == 4


def test_a_directory_says_what_it_leaves_out_and_why(home, capsys):
    Path("set/deep").mkdir(parents=True)
    record(Path("set/a.wav"), 3)
    record(Path("set/deep/b.wav"), 3)
    Path("set/c.mp3").write_text("no sound\n")
    Path("set/list.m4a").write_text("#EXTM3U\n#EXTINF:3,\na.wav\n")
    Path("set/notes.doc").write_text("x")
    assert transcribe("set", "--lm", "none") == 3
    said = capsys.readouterr().err
    assert "left out: 1 files, as .doc is no ending of recordings: notes.doc" in said
    assert "c: failed: set/c.mp3: cannot be read as audio" in said
    assert "list: failed: set/list.m4a: cannot be read as audio" in said
    assert "2 recordings, 0.1 minutes, 4 segments, 0 changed" in said
    assert {path.name for path in Path("o").glob("*.srt")} == {"a.srt", "b.srt"}
    assert transcribe("set/c.mp3", "--lm", "none") == 1
    assert "no recording can be transcribed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, error",
    [
        (["--to", "pdf"], "--to pdf: no such format; give txt, srt,"),
        (["--asr", "vosk:m"], "--asr vosk:m: has no segments of recordings; give whisper:DIR"),
        (["--lm", "nowhere"], "nowhere"),
        (["--weights", "nowhere.json"], "nowhere.json"),
        (["--ear", "bat:x"], "bat:x: no recogniser that scores texts is called so"),
        (["--ear", "fake:x", "--lm", "none"], "--ear: default weights need a language model"),
    ],
)
def test_what_is_wrong_is_said_before_any_sound_is_heard(home, words, error, monkeypatch, capsys):
    monkeypatch.setitem(listening.EARS, "fake", fake_listener.FakeEar)
    record(home / "a.wav", 3)
    assert transcribe("a.wav", *words) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert error in said[-1] and said[-1].startswith("lmtools transcribe: ")
    assert not Path("o").exists()


@pytest.mark.parametrize("other", ["飴", "雪"])
def test_changed_words_are_found_by_letters(other):
    """Words as the recogniser gives them, which no blank parts in its texts."""
    own = transcriber.Transcriber.__new__(transcriber.Transcriber)
    own.second = SimpleNamespace(normalise=parse_normaliser("librispeech"))
    timed = [(word, n, n + 1, 0.9) for n, word in enumerate(["昨日", "は", "雨。"])]
    best = NBest.of("u", ["昨日は雨", f"昨日は{other}"], total=[-1.0, -1.5])
    for first, changed in (("昨日は雨。", False), (f"昨日は{other}。", True)):
        words = list(own.mark_words(timed, first, best))
        assert [word.changed for word in words] == [False, False, changed]
        assert [word.confidence for word in words] == [1, 1, pytest.approx(0.6225, abs=1e-4)]
