"""Utterances of LibriSpeech's test-other decoded for real by Whisper and by Vosk: the first
hypothesis is what each answers by itself, and lists are those that the same models made elsewhere.

Models are those that utils/install_asr.sh fetches, in tools/asr or where LMTOOLS_WHISPER and
LMTOOLS_VOSK say; recordings and lists lie beside the repository, or where LMTOOLS_SPEECH says.
"""

import functools
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import lmtools
from lmtools.cli import main
from lmtools.decode.recognisers import RECOGNISERS
from lmtools.decode.silence import SpokenSound
from lmtools.decode.whisper import WORDS
from lmtools.formats import jsonl

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LMTOOLS_SPEECH") or ROOT.parent / "shared/data")
MODELS = {
    "whisper": Path(os.environ.get("LMTOOLS_WHISPER") or ROOT / "tools/asr/whisper-base"),
    "vosk": Path(os.environ.get("LMTOOLS_VOSK") or ROOT / "tools/asr/vosk-small"),
}
LISTS = {
    "whisper": "nbest/real/test-other-100.whisper-base-natural.jsonl",
    "vosk": "nbest/real/test-other-100.vosk-small.jsonl",
}
UTTERANCES = ("1688-142285-0000", "2609-156975-0003", "367-130732-0001", "3005-163389-0002")
RATE = 16_000


def need(name: str) -> None:
    """Skip, saying why, without the packages, the model or the recordings."""
    for package in RECOGNISERS[name].packages:
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed (utils/install_asr.sh)")
    if not MODELS[name].is_dir():
        pytest.skip(f"{MODELS[name]} is not there (utils/install_asr.sh, LMTOOLS_{name.upper()})")
    if not (DATA / "speech").is_dir():
        pytest.skip(f"no recordings in {DATA}/speech (LMTOOLS_SPEECH)")


def known_lists(name: str) -> dict:
    """The lists that were made elsewhere, by utterance."""
    with open(DATA / LISTS[name]) as lines:
        return {tree["utt"]: tree for tree in map(json.loads, lines)}


@pytest.fixture
def decoded(tmp_path):
    """A function that decodes recordings with a recogniser: lists by utterance."""

    def decode(name: str, *opts: str, audio=None, ref=()):
        out = tmp_path / f"out{len(list(tmp_path.glob('*.jsonl')))}.jsonl"
        words = ["--audio", audio or speech(tmp_path), "--out", out, "--device", "cpu", *ref]
        words += ["--opts", *opts] if opts else []
        assert main(["decode", "--asr", f"{name}:{MODELS[name]}", *map(str, words)]) == 0
        return {one.utt: one for one in jsonl.read(out)}

    return decode


def speech(folder: Path, utterances=UTTERANCES) -> Path:
    """A directory with links to recordings."""
    place = folder / "audio"
    place.mkdir(exist_ok=True)
    for utt in utterances:
        link = place / f"{utt}.flac"
        link.exists() or link.symlink_to(DATA / f"speech/{utt}.flac")
    return place


@functools.cache
def load_stock():
    """Whisper as faster-whisper's users load it."""
    from faster_whisper import WhisperModel

    return WhisperModel(str(MODELS["whisper"]), device="cpu", compute_type="int8", cpu_threads=1)


def transcribe(path: Path, **options) -> str:
    """What faster-whisper answers at temperature 0."""
    segments, _ = load_stock().transcribe(str(path), language="en", temperature=0, **options)
    return " ".join("".join(segment.text for segment in segments).split())


@pytest.mark.parametrize(
    "opts, options",
    [
        ((), {"beam_size": 20, "without_timestamps": True}),
        (("beam=5",), {"beam_size": 5, "without_timestamps": True}),
    ],
    ids=["default", "beam"],
)
def test_whispers_first_hypothesis_is_that_of_faster_whisper(decoded, tmp_path, opts, options):
    need("whisper")
    ours = decoded("whisper", *opts)
    assert set(ours) == set(UTTERANCES)
    for utt in UTTERANCES:
        assert ours[utt].hyps[0].text == transcribe(tmp_path / f"audio/{utt}.flac", **options)


def scores(hyps) -> dict[str, float]:
    """The score of each text as it comes first, without case and punctuation."""
    found: dict[str, float] = {}
    for text, score in hyps:
        found.setdefault(WORDS(text), score)
    return found


def test_whisper_gives_the_lists_that_are_known(decoded):
    need("whisper")
    known = known_lists("whisper")
    ref = ("--ref", DATA / "librispeech/test-other.text")
    for utt, ours in decoded("whisper", ref=ref).items():
        assert ours.ref.lower() == known[utt]["ref"].lower()
        mine = scores((hyp.text, hyp.scores["avg"]) for hyp in ours.hyps)
        theirs = scores((hyp["text"], hyp["scores"]["avg"]) for hyp in known[utt]["hyps"])
        assert next(iter(mine)) == next(iter(theirs))
        assert len(mine) == len(ours.hyps) <= 20
        # int8 rounds otherwise on other processors
        both = mine.keys() & theirs.keys()
        assert len(both) >= 0.5 * len(theirs)
        assert all(mine[words] == pytest.approx(theirs[words], abs=0.05) for words in both)
        for hyp in ours.hyps:
            length = hyp.scores["length"]
            assert hyp.scores["am"] == pytest.approx(hyp.scores["avg"] * length, abs=0.01)


def tones(seconds: int) -> np.ndarray:
    at = np.arange(seconds * RATE) / RATE
    parts = [np.sin(2 * np.pi * hertz * at) for hertz in (220, 277, 330, 440)]
    return 0.1 * sum(parts) * (1 + np.sin(2 * np.pi * 2 * at)) / 2


HOSTILE = {
    "silence": lambda: np.zeros(10 * RATE),
    "noise": lambda: 0.1 * np.random.default_rng(0).standard_normal(10 * RATE),
    "music": lambda: tones(12),
    "long-silence": lambda: np.zeros(65 * RATE),
    "instant": lambda: np.zeros(100),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_where_nobody_speaks_the_answer_is_empty(decoded, tmp_path, kind):
    need("whisper")
    import soundfile

    path = tmp_path / "u.wav"
    soundfile.write(path, HOSTILE[kind](), RATE)
    (only,) = decoded("whisper", audio=path).values()
    assert [hyp.text for hyp in only.hyps] == [""]
    if kind == "silence":  # as faster-whisper has it without its detector
        (only,) = decoded("whisper", "beam=5", "depth=1", "vad=false", audio=path).values()
        stock = transcribe(path, beam_size=5, without_timestamps=True)
        assert only.hyps[0].text.lower() == stock.lower() == "you"


def test_pauses_are_those_of_faster_whisper():
    need("whisper")
    import soundfile
    from faster_whisper.vad import get_speech_timestamps

    draw, parts = np.random.default_rng(5), []
    for utt in UTTERANCES:
        pause = np.zeros(round(draw.uniform(3, 20) * RATE))
        parts += [pause + 0.003 * draw.standard_normal(len(pause)) * draw.choice([0, 1])]
        parts += [soundfile.read(DATA / f"speech/{utt}.flac")[0]]
    samples = np.concatenate([*parts, np.zeros(5 * RATE)]).astype(np.float32)
    spoken = SpokenSound(np.array_split(samples, 99), vad=True)
    found = np.concatenate(list(spoken))
    wanted = get_speech_timestamps(samples)
    assert np.array_equal(found, np.concatenate([samples[a["start"] : a["end"]] for a in wanted]))
    left = 0
    for one in wanted:
        assert spoken.time(left / RATE) == pytest.approx(one["start"] / RATE)
        left += one["end"] - one["start"]
        assert spoken.time(left / RATE, end=True) == pytest.approx(one["end"] / RATE)


def test_what_is_long_is_as_faster_whisper_has_it(decoded, tmp_path):
    need("whisper")
    import soundfile

    paths = sorted((DATA / "speech").glob("*.flac"))[:30]
    samples = np.concatenate([soundfile.read(path)[0] for path in paths])[: 70 * RATE]
    (tmp_path / "hostile").mkdir()
    path = tmp_path / "hostile/u.wav"
    soundfile.write(path, samples, RATE)
    lists = decoded("whisper", "depth=5", "window=5", "vad=false", audio=path.parent)
    stock = transcribe(path, beam_size=5)
    said = " ".join(one.hyps[0].text for one in lists.values())
    # int8 rounds otherwise where more hypotheses are kept, and one word may change a window
    assert lmtools.wer([WORDS(stock)], [WORDS(said)]).score < 10
    assert len(stock.split()) > 100
    assert all(one.extra["session"] == "u" and len(one.hyps) <= 5 for one in lists.values())
    times = [float(one.extra[name]) for one in lists.values() for name in ("start", "end")]
    assert times == sorted(times) and times[-1] <= 70 and len(lists) >= 6
    own, *others = max(lists.values(), key=lambda one: len(one.hyps)).hyps
    assert others and all(abs(one.scores["length"] - own.scores["length"]) < 12 for one in others)


def test_whisper_leaves_nothing_to_warn_of(tmp_path):
    need("whisper")
    words = ["--asr", f"whisper:{MODELS['whisper']}", "--audio", speech(tmp_path, UTTERANCES[:1])]
    words += ["--out", tmp_path / "o.jsonl", "--device", "cpu", "--opts", "beam=2"]
    command = [sys.executable, "-m", "lmtools", "decode", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(done.stderr.splitlines()) == 1 and "real-time factor" in done.stderr


VOSK = """
import sys, wave, json, vosk
vosk.SetLogLevel(-1)
recogniser = vosk.KaldiRecognizer(vosk.Model(sys.argv[1]), 16000)
recogniser.AcceptWaveform(wave.open(sys.argv[2]).readframes(-1))
print(json.loads(recogniser.FinalResult())["text"])
"""


def test_vosks_first_hypothesis_is_its_own(decoded, tmp_path):
    """What a program of its own gets of each recording."""
    need("vosk")
    import soundfile

    known = known_lists("vosk")
    lists = decoded("vosk")
    assert set(lists) == set(UTTERANCES)
    for utt, ours in lists.items():
        wav = tmp_path / f"{utt}.wav"
        soundfile.write(wav, *soundfile.read(DATA / f"speech/{utt}.flac"))
        command = [sys.executable, "-c", VOSK, MODELS["vosk"], wav]
        own = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert ours.hyps[0].text == " ".join(own.split())
        mine = {hyp.text: hyp.scores["am"] for hyp in ours.hyps}
        theirs = {hyp["text"]: hyp["scores"]["am"] for hyp in known[utt]["hyps"]}
        # its dither is random, and began elsewhere with other numbers
        both = mine.keys() & theirs.keys()
        assert len(mine) == 50 and len(both) >= 35
        assert all(mine[text] == pytest.approx(theirs[text], abs=3) for text in both)
        assert list(mine.values())[1:] == sorted(list(mine.values())[1:], reverse=True)


@pytest.mark.parametrize("name", ["am/final.mdl", "graph/HCLr.fst", "conf/model.conf"])
def test_a_damaged_model_of_vosk_is_told_in_a_line(tmp_path, capfd, name):
    need("vosk")
    for path in MODELS["vosk"].rglob("*"):
        mine = tmp_path / "model" / path.relative_to(MODELS["vosk"])
        mine.mkdir(parents=True) if path.is_dir() else mine.symlink_to(path)
    (tmp_path / "model" / name).unlink()
    data = (MODELS["vosk"] / name).read_bytes()
    (tmp_path / "model" / name).write_bytes(data[: len(data) // 2])
    words = ["--asr", f"vosk:{tmp_path}/model", "--audio", speech(tmp_path, UTTERANCES[:1])]
    assert main(["decode", *map(str, words), "--out", str(tmp_path / "o.jsonl")]) == 1
    said = capfd.readouterr().err
    assert f"lmtools decode: {tmp_path}/model: cannot load the model (" in said
    assert said.count("\n") == 1 and "); fetch it again" in said and "LOG" not in said
