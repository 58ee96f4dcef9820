"""Which utterances a directory or a wav.scp has, and what is refused before anything is decoded."""

import os
from pathlib import Path

import pytest

from lmtools.base.context import using
from lmtools.base.errors import UserError
from lmtools.decode.utterances import find_utterances, identify_audio


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.wav").write_text("A")
    Path("b.flac").write_text("B")
    return tmp_path


def kaldi(name="d", **files) -> str:
    Path(name).mkdir(exist_ok=True)
    for file, text in files.items():
        Path(name, file.replace("_", ".")).write_text(text)
    return name


def test_librispeech(home):
    for chapter, suffix in (("84/121", ".flac"), ("174/2", ".FLAC")):
        folder = home / "LibriSpeech/dev" / chapter
        folder.mkdir(parents=True)
        name = chapter.replace("/", "-")
        for n in (0, 1):
            (folder / f"{name}-{n}{suffix}").write_text("")
        (folder / f"{name}.trans.txt").write_text(f"{name}-1 ONE\n{name}-0 NOUGHT\n")
    (home / "LibriSpeech/README.TXT").write_text("read me")
    found = find_utterances("LibriSpeech")
    assert [(one.utt, one.ref) for one in found] == [
        ("174-2-0", "NOUGHT"),
        ("174-2-1", "ONE"),
        ("84-121-0", "NOUGHT"),
        ("84-121-1", "ONE"),
    ]
    assert found[2].recording.place == "LibriSpeech/dev/84/121/84-121-0.flac"


def test_a_flat_directory_without_transcripts(home):
    assert [(one.utt, one.ref) for one in find_utterances(home)] == [("a", None), ("b", None)]
    Path("refs").write_text("b yes\na\nmore no\n")
    assert [one.ref for one in find_utterances(home, "refs")] == ["", "yes"]


def test_links_to_directories_are_not_followed(home):
    Path("d").mkdir()
    Path("d/circle").symlink_to(home)
    Path("d/c.wav").symlink_to(home / "a.wav")
    assert [one.utt for one in find_utterances("d")] == ["c"]


def test_wav_scp_in_its_order(home):
    kaldi(wav_scp="u2 b.flac\nu1\ta.wav\r\n", text="u1 one\nu2 two\nu3 three\n")
    found = find_utterances("d")
    assert [(one.utt, one.ref, one.recording.place) for one in found] == [
        ("u2", "two", "b.flac"),
        ("u1", "one", "a.wav"),
    ]
    assert find_utterances("d/wav.scp") == found


def test_segments(home):
    segments = "u2 r 1.5 2\nu1 r 0 1.25\nu3 s 0 9\n"
    kaldi(wav_scp="r a.wav\ns b.flac\nt a.wav\n", segments=segments, text="u1 1\nu2 2\nu3 3\n")
    found = find_utterances("d")
    assert [(one.utt, one.start, one.end, one.ref) for one in found] == [
        ("u2", 1.5, 2.0, "2"),
        ("u1", 0.0, 1.25, "1"),
        ("u3", 0.0, 9.0, "3"),
    ]
    assert found[0].recording.where == "d/segments:1: a.wav"
    audio, failed = identify_audio(found)
    assert not failed
    assert len(set(audio.values())) == 3 and audio["u1"].split()[0] == audio["u2"].split()[0]


def test_commands_need_permission(home):
    kaldi(wav_scp="u1 touch canary |\n")
    with pytest.raises(UserError, match=r"d/wav\.scp:1: wants to run the command 'touch canary'"):
        find_utterances("d")
    with using(allow_commands=True):
        (one,) = find_utterances("d")
    assert one.recording.command and one.recording.place == "touch canary"
    assert identify_audio([one])[0]["u1"] == "touch canary | 0.0-None"
    assert not Path("canary").exists()


def test_a_file_is_a_file_whatever_it_is_called(home):
    name = "touch canary |.wav"
    Path("d").mkdir()
    Path("d", name.replace(" ", "_")).write_text("")
    (one,) = find_utterances("d")
    assert not one.recording.command
    kaldi(wav_scp="u1 ark:touch canary\n")
    (one,) = find_utterances("d")
    assert not one.recording.command
    assert "ark:touch canary: is not there; " in identify_audio([one])[1]["u1"]
    assert not Path("canary").exists()


def test_recordings_that_are_not_there_are_told_apart(home):
    lines = "u1 a.wav\nu2 none.wav\nu3 .\nu4 /dev/zero\nu5 b.flac\n"
    kaldi(wav_scp=lines)
    audio, failed = identify_audio(find_utterances("d"))
    assert list(audio) == ["u1", "u5"] and failed == {
        "u2": "d/wav.scp:2: none.wav: is not there; correct the path",
        "u3": "d/wav.scp:3: .: is no regular file; correct the path",
        "u4": "d/wav.scp:4: /dev/zero: is no regular file; correct the path",
    }


@pytest.mark.parametrize(
    "files, said",
    [
        ({"wav_scp": "u1\n"}, "d/wav.scp:1: 'u1' is not `utt file`"),
        ({"wav_scp": "u1 a.wav\n\n"}, "d/wav.scp:2: '' is not `utt file`"),
        ({"wav_scp": "u1 a\0.wav\n"}, "d/wav.scp:1: 'u1 a\\x00.wav' is not `utt file`"),
        ({"wav_scp": "u1 a.wav\nu1 b.flac\n"}, "d/wav.scp:2: utterance 'u1' occurs a second time"),
        ({"wav_scp": "\ufeff\ufeffu1 a.wav\n"}, "d/wav.scp:1: utterance id '\\ufeffu1'"),
        ({"wav_scp": ""}, "d: no recordings"),
        ({"wav_scp": "u1 a.wav\n", "text": "u2 x\n"}, "d/text: no transcript of 1 of 1 utterances"),
        ({"wav_scp": "u1 a.wav\n", "text": "u1 x\nu1 y\n"}, "d/text:2: utterance 'u1' occurs a"),
        ({"wav_scp": "r a.wav\n", "segments": "u1 q 0 1\n"}, "d/segments:1: no recording 'q' in"),
        ({"wav_scp": "r a.wav\n", "segments": "u1 r 1 1\n"}, "d/segments:1: from 1 to 1 s is no"),
        ({"wav_scp": "r a.wav\n", "segments": "u1 r -1 1\n"}, "d/segments:1: from -1 to 1 s"),
        ({"wav_scp": "r a.wav\n", "segments": "u1 r 0 -2\n"}, "d/segments:1: from 0 to -2 s is no"),
        ({"wav_scp": "r a.wav\n", "segments": "u1 r 0 nan\n"}, "d/segments:1: a time is 'nan'"),
        ({"wav_scp": "r a.wav\n", "segments": "u1 r 0\n"}, "d/segments:1: 'u1 r 0' is not `utt re"),
        ({"wav_scp": "r a.wav\n", "segments": ""}, "d: no recordings"),
    ],
)
def test_what_is_refused(home, files, said):
    kaldi(**files)
    with pytest.raises(UserError) as error:
        find_utterances("d")
    assert str(error.value).startswith(said) and "; " in str(error.value)


def test_two_of_a_name(home):
    """The first of SUFFIXES is decoded, and of two folders the first; the other is named."""
    for path in ("d/a.wav", "d/a.mp3", "e/a.flac"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("")
    (home / "a.wav").unlink()
    audio, failed = identify_audio(find_utterances("."))
    assert list(audio) == ["a", "b"] and failed == {
        "d/a.mp3": "d/a.mp3: d/a.wav is called so, too; rename it",
        "e/a.flac": "e/a.flac: d/a.wav is called so, too; rename it",
    }


def test_names_that_are_no_ids(home, capsys):
    """Blanks become _; what is no text, or exists already so, is passed over."""
    Path("d").mkdir()
    for name in ("take 2.wav", "take_3.wav", "take 3.wav"):
        Path("d", name).write_text("")
    Path(os.fsdecode(b"d/\xff.wav")).write_text("")
    Path("d/text").write_text("take_2 two\ntake_3 three\n")
    utterances = find_utterances("d")
    audio, failed = identify_audio(utterances)
    assert list(audio) == ["take_2", "take_3"]
    assert [one.ref for one in utterances if not one.wrong] == ["two", "three"]
    assert failed["d/take_3.wav"] == "d/take_3.wav: d/take 3.wav is called so, too; rename it"
    assert "holds half a surrogate pair" in failed["d/?.wav"]
    said = "blanks in 2 names of recordings are _ in their ids: 'take 2' is take_2\n"
    assert capsys.readouterr().err == said


def test_a_segment_to_the_end_of_the_recording(home):
    """As Kaldi's extract-segments has it."""
    kaldi(wav_scp="r a.wav\n", segments="u1 r 1.5 -1\nu2 r 0 -1.0\n")
    assert [(one.start, one.end) for one in find_utterances("d")] == [(1.5, None), (0.0, None)]


def test_every_kind_of_recording_is_found(home):
    Path("d").mkdir()
    for suffix in ("m4a", "MP4", "opus", "wave", "webm"):
        Path(f"d/{suffix}.{suffix}").write_text("")
    assert [one.utt for one in find_utterances("d")] == ["MP4", "m4a", "opus", "wave", "webm"]
