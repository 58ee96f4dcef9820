"""Samples of recordings: formats, rates, segments, commands, and what is no speech."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from lmtools.base.errors import UserError
from lmtools.decode import audio
from lmtools.decode.audio import SoundStream, measure_sound, read_samples
from lmtools.decode.utterances import Recording, Utterance

soundfile = pytest.importorskip("soundfile", reason="soundfile is not installed")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tone(seconds=1.0, rate=16_000, hertz=440) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def utterance(place="x.wav", start=0.0, end=None, command=False) -> Utterance:
    return Utterance("u", Recording(place, place, command), start, end)


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg"])
def test_formats(suffix):
    soundfile.write(f"x.{suffix}", tone(), 16_000)
    samples = read_samples(utterance(f"x.{suffix}"), 16_000)
    assert samples.dtype == np.float32
    assert np.allclose(samples, tone(), atol=0.05 if suffix == "ogg" else 1e-4)


@pytest.mark.parametrize("form", ["m4a", "mp4", "webm", "mkv"])
def test_what_phones_write(form):
    av = pytest.importorskip("av", reason="PyAV is not installed")
    codec, rate = ("libopus", 48_000) if form == "webm" else ("aac", 16_000)
    sound = tone(rate=rate).astype(np.float32)
    with av.open(f"x.{form}", "w") as media:
        stream = media.add_stream(codec, rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(sound[None], format="fltp", layout="mono")
        frame.rate = rate
        media.mux([*stream.encode(frame), *stream.encode(None)])
    samples = read_samples(utterance(f"x.{form}"), 16_000)
    assert abs(len(samples) - 16_000) < 2_000
    assert np.abs(np.fft.rfft(samples[:16_000], 16_000)).argmax() == 440
    part = read_samples(utterance(f"x.{form}", 0.5, 0.75), 16_000)
    assert np.allclose(part, samples[8_000:12_000], atol=0.02)
    Path(f"x.{form}").write_bytes(Path(f"x.{form}").read_bytes()[:100])
    audio.decode_media.cache_clear()
    with pytest.raises(UserError, match=rf"x.{form}: cannot be read as audio"):
        read_samples(utterance(f"x.{form}"), 16_000)


def test_a_playlist_names_no_other_file():
    """FFmpeg would guess what it is, and read what it names."""
    pytest.importorskip("av", reason="PyAV is not installed")
    soundfile.write("x.wav", tone(), 16_000)
    for text in (
        "#EXTM3U\n#EXTINF:1,\nx.wav\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile x.wav",
    ):
        Path("x.m4a").write_text(text)
        with pytest.raises(UserError, match=r"x.m4a: cannot be read as audio"):
            read_samples(utterance("x.m4a"), 16_000)


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_other_rates(rate):
    soundfile.write("x.wav", tone(rate=rate), rate)
    samples = read_samples(utterance(), 16_000)
    assert samples.shape == (16_000,)
    assert np.allclose(samples[1000:-1000], tone()[1000:-1000], atol=0.01)


def test_segments():
    soundfile.write("x.flac", tone(3), 16_000, subtype="PCM_24")
    whole = read_samples(utterance("x.flac"), 16_000)
    assert np.array_equal(read_samples(utterance("x.flac", 0.5, 2.25), 16_000), whole[8_000:36_000])
    assert np.array_equal(read_samples(utterance("x.flac", 2, 3.4), 16_000), whole[32_000:])


def test_a_command_is_what_it_prints():
    soundfile.write("x.flac", tone(), 16_000)
    whole = read_samples(utterance("x.flac"), 16_000)
    assert np.array_equal(read_samples(utterance("cat x.flac", command=True), 16_000), whole)
    part = read_samples(utterance("cat x.flac", 0.25, 0.5, command=True), 16_000)
    assert np.array_equal(part, whole[4_000:8_000])
    with pytest.raises(UserError, match="false: the command failed with status 1"):
        read_samples(utterance("false", command=True), 16_000)
    with pytest.raises(UserError, match="echo no: cannot be read as audio"):
        read_samples(utterance("echo no", command=True), 16_000)


def test_what_is_refused():
    soundfile.write("two.wav", np.stack([tone(), tone()], 1), 16_000)
    soundfile.write("slow.wav", tone(), 1_000)
    soundfile.write("none.wav", tone(0), 16_000)
    soundfile.write("nan.wav", tone() * np.nan, 16_000, subtype="FLOAT")
    soundfile.write("x.wav", tone(3), 16_000)
    Path("text.wav").write_text("words")
    Path("empty.flac").write_text("")
    Path("folder.wav").mkdir()
    for said, one in {
        "two.wav: 2 channels at 16000 Hz; give one": utterance("two.wav"),
        "slow.wav: 1 channels at 1000 Hz": utterance("slow.wav"),
        "none.wav: no samples there; ": utterance("none.wav"),
        "nan.wav: has samples that are no numbers; ": utterance("nan.wav"),
        "text.wav: cannot be read as audio (": utterance("text.wav"),
        "empty.flac: cannot be read as audio (": utterance("empty.flac"),
        "folder.wav: is no regular file; ": utterance("folder.wav"),
        "gone.wav: is not there; ": utterance("gone.wav"),
        "x.wav: ends after 3.00 s, the utterance at 4 s; ": utterance(start=1, end=4),
        "x.wav: no samples there; ": utterance(start=3, end=4),
        "x.wav: no samples there; c": utterance(start=7, end=8),
    }.items():
        with pytest.raises(UserError) as error:
            read_samples(one, 16_000)
        assert str(error.value).startswith(said.removesuffix("c")) and "; " in str(error.value)


def test_a_cut_file_is_refused_or_shorter():
    """What libsndfile takes of it, never noise or a hang."""
    soundfile.write("x.flac", tone(5), 16_000)
    data = Path("x.flac").read_bytes()
    for size in range(0, len(data), max(1, len(data) // 40)):
        Path("x.flac").write_bytes(data[:size])
        try:
            assert len(read_samples(utterance("x.flac"), 16_000)) <= 80_000
        except UserError as error:
            assert str(error).startswith("x.flac: ")


def stream(source, rate=16_000) -> np.ndarray:
    return np.concatenate(list(SoundStream(source, rate, "x")))


def test_a_stream_has_the_same_samples():
    pytest.importorskip("av", reason="PyAV is not installed")
    soundfile.write("x.flac", tone(3), 16_000)
    whole = read_samples(utterance("x.flac"), 16_000)
    assert np.array_equal(stream("x.flac"), whole)
    assert np.array_equal(stream(BytesIO(Path("x.flac").read_bytes())), whole)
    assert measure_sound("x.flac", "x") == 3
    both = np.stack([tone(3, 48_000), tone(3, 48_000, 1000)], -1)
    soundfile.write("two.wav", both, 48_000)
    mixed = stream("two.wav")
    assert len(mixed) == pytest.approx(48_000, abs=100)
    assert {*np.abs(np.fft.rfft(mixed[:16_000])).argsort()[-2:]} == {440, 1000}


def test_damage_in_a_stream_is_passed_over_and_said(capsys):
    av = pytest.importorskip("av", reason="PyAV is not installed")
    with av.open("x.mp4", "w") as media:
        out = media.add_stream("aac", rate=16_000, layout="mono")
        sound = np.random.default_rng(1).uniform(-0.5, 0.5, (1, 160_000)).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(sound, format="fltp", layout="mono")
        frame.rate = 16_000
        media.mux([*out.encode(frame), *out.encode(None)])
    data = bytearray(Path("x.mp4").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4_000] = b"\xff" * 4_000
    Path("x.mp4").write_bytes(data)
    assert 80_000 < len(stream("x.mp4")) < 160_000
    assert "damaged packets were passed over" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["#EXTM3U\n#EXTINF:3,\nx.wav\n", "ffconcat version 1.0\nfile x.wav\n", "", "RIFF"]
)
def test_a_stream_is_of_no_list_of_files(text):
    pytest.importorskip("av", reason="PyAV is not installed")
    soundfile.write("x.wav", tone(), 16_000)
    Path("x.m3u8").write_text(text)
    for source in ("x.m3u8", BytesIO(text.encode())):
        with pytest.raises(UserError, match=r"^x: cannot be read as audio"):
            stream(source)
