"""Real recordings, joined to a long one, transcribed by the real Whisper: its windows can be taken
up anywhere, the second pass keeps to what was heard, times are where the words are.
"""

import json
import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import lmtools
from lmtools.cli import main

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LMTOOLS_SPEECH") or ROOT.parent / "shared/data")
MODEL = Path(os.environ.get("LMTOOLS_WHISPER") or ROOT / "tools/asr/whisper-base")
UTTERANCES = ("1688-142285-0000", "2609-156975-0003", "367-130732-0001", "3005-163389-0002")
if not (MODEL.is_dir() and (DATA / "speech").is_dir()):
    pytest.skip(f"{MODEL} or {DATA}/speech is not there", allow_module_level=True)
soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A FLAC file of four recordings with two seconds of silence between, and what they say."""
    home = tmp_path_factory.mktemp("joined")
    sounds = [soundfile.read(DATA / f"speech/{utt}.flac")[0] for utt in UTTERANCES]
    parts = [part for sound in sounds for part in (sound, np.zeros(32_000))]
    soundfile.write(home / "talk.flac", np.concatenate(parts), 16_000)
    with open(DATA / "librispeech/test-other.text") as lines:
        refs = dict(line.split(" ", 1) for line in lines)
    return home / "talk.flac", " ".join(refs[utt].strip().lower() for utt in UTTERANCES)


@pytest.fixture(scope="module")
def transcriber(tmp_path_factory):
    home = tmp_path_factory.mktemp("lm")
    (home / "text").write_text("the days for an adult is ten minutes\n" * 3)
    command = ["ngram", "--text", home / "text", "--order", "2", "--out", home / "lm"]
    assert main(list(map(str, command))) == 0
    return lmtools.Transcriber(f"whisper:{MODEL}", [str(home / "lm")])


def test_it_hears_the_words_at_their_times(joined, transcriber):
    place, ref = joined
    found = transcriber.transcribe(place)
    assert found.fallback is None and found.duration == pytest.approx(
        soundfile.info(place).duration, abs=0.01
    )
    first = " ".join(segment.first for segment in found.segments)
    normalise = transcriber.second.normalise
    assert lmtools.wer([ref], [normalise(first)]).score < 30
    assert len(found.segments) >= 4
    for segment in found.segments:
        assert " ".join(word.word for word in segment.words) == segment.text
        times = [time for word in segment.words for time in (word.start, word.end)]
        assert times == sorted(times) and all(0 <= time <= found.duration for time in times)
        assert all(0 <= word.probability <= 1 for word in segment.words)
        assert (segment.text != segment.first) == any(word.changed for word in segment.words) or (
            len(segment.first.split()) != len(segment.words)
        )
    tree = json.loads(found.write("json"))
    assert [one["text"] for one in tree["segments"]] == [one.text for one in found.segments]


def test_a_run_goes_on_from_any_window(joined, transcriber):
    place = str(joined[0])
    windows = list(transcriber.hear(place, place))
    assert len(windows) > 1 and windows[-1].state is None
    for number, window in islice(enumerate(windows, 1), len(windows) - 1):
        state = json.loads(json.dumps(window.state))
        assert list(transcriber.hear(place, place, state=state)) == windows[number:]


def test_what_is_no_language_or_no_sound_is_refused(joined, transcriber, tmp_path):
    with pytest.raises(lmtools.UserError, match=r"^language xx: the model knows "):
        transcriber.transcribe(joined[0], language="xx")
    (tmp_path / "none.mp3").write_text("nothing")
    for wrong in (tmp_path / "none.mp3", b"", b"RIFF"):
        with pytest.raises(lmtools.UserError, match="cannot be read as audio"):
            transcriber.transcribe(wrong)
    short = tmp_path / "short.wav"
    soundfile.write(short, np.zeros(100), 16_000)
    assert transcriber.transcribe(Path(short)).segments == ()
