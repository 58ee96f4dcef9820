"""Made speech with references, to choose by where no recordings of dev are at hand: 120 sentences
of a file of transcripts by four voices of flite, as ten speakers of other rates, pitches and
levels of noise, in a small room.

    made_speech.py TRANSCRIPTS OUT
    made_speech.py --noise DECIBELS RECORDINGS OUT
    made_speech.py --joined TRANSCRIPTS OUT

Writes OUT/SPEAKER-UTTERANCE.flac and OUT.text, references in lower case. Needs flite's program. The
second form adds the same noise, that many decibels below the speech, to a directory of recordings.
The third writes longer ones, OUT/SPEAKER.flac and OUT/text: seven sentences of each of seven
speakers, by the same voices.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import fftconvolve

from lmtools.base.errors import exit_with_message
from lmtools.formats import kaldi_text

VOICES = ("slt", "rms", "awb", "kal16", "slt", "rms", "awb", "kal16", "slt", "rms")
COUNT, WORDS = 120, range(6, 35)
QUIET = 21.0, 33.0  # dB from noise to speech, of a speaker; of an utterance up to 3 more or less
RATE = 16_000
ROOM = 0.3, 0.06, 0.02  # seconds that it rings, those in which it falls to 1/e, and how loud
SPEAKERS, SENTENCES, LARGER = 7, slice(5, 12), (0.25, 0.05, 0.06)  # of the third form, its room


def speak(text: str, speaker: tuple, path: Path) -> np.ndarray:
    """Return what flite says."""
    voice, stretch, pitch = speaker
    settings = [
        "--setf",
        f"duration_stretch={stretch:.2f}",
        "--setf",
        f"int_f0_target_mean={pitch}",
    ]
    subprocess.run(["flite", "-voice", voice, *settings, "-t", text, "-o", str(path)], check=True)
    return soundfile.read(path, dtype="float32")[0]


def ring(samples: np.ndarray, room: tuple, rng: np.random.Generator) -> np.ndarray:
    """Return samples in a room."""
    seconds, fall, loud = room
    size = int(seconds * RATE)
    echo = np.exp(-np.arange(size) / (RATE * fall)) * rng.standard_normal(size) * loud
    echo[0] = 1
    return fftconvolve(samples, echo)[: len(samples)]


def make_noise(size: int, rng: np.random.Generator) -> np.ndarray:
    """Return low and white noise."""
    noise = np.cumsum(rng.standard_normal(size)) * 0.02
    noise -= fftconvolve(noise, np.ones(400) / 400, "same")
    noise = noise / noise.std() + 0.5 * rng.standard_normal(size)
    return noise / noise.std()


def add_noise(heard: np.ndarray, noise: np.ndarray, decibels: float) -> np.ndarray:
    """Return samples with noise, as loud as all recordings."""
    heard = heard + noise * heard.std() * 10 ** (-decibels / 20)
    return (heard / np.abs(heard).max() * 0.7).astype(np.float32)


def main(transcripts: str, out: str) -> None:
    """Write the sound and the references."""
    rng = np.random.default_rng(58)
    lines = list(kaldi_text.read(transcripts).items())
    fit = (lines[at] for at in rng.permutation(len(lines)))
    chosen = [(utt, text) for utt, text in fit if len(text.split()) in WORDS][:COUNT]
    speakers = [
        (voice, rng.uniform(0.85, 1.05), int(rng.integers(95, 200)), rng.uniform(*QUIET))
        for voice in VOICES
    ]
    Path(out).mkdir(parents=True, exist_ok=True)
    with Path(f"{out}.text").open("w") as references:
        for number, (utt, text) in enumerate(chosen):
            place = number % len(speakers)
            decibels = speakers[place][3] + rng.uniform(-3, 3)
            name = f"s{place:02}-{utt.replace('-', '_')}"
            path = Path(out, f"{name}.wav")
            said = speak(text.lower(), speakers[place][:3], path)
            path.unlink()
            said = ring(np.pad(said, (RATE // 5, 3 * RATE // 10)), ROOM, rng)
            samples = add_noise(said, make_noise(len(said), rng), decibels)
            soundfile.write(path.with_suffix(".flac"), samples, RATE)
            references.write(f"{name} {text.lower()}\n")


def make_noisy(decibels: str, recordings: str, out: str) -> None:
    """Write each recording with noise."""
    rng = np.random.default_rng(58)
    Path(out).mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(recordings).glob("*.flac")):
        samples, rate = soundfile.read(path)
        noisy = add_noise(samples, make_noise(len(samples), rng), float(decibels))
        soundfile.write(Path(out, path.name), noisy, rate)


def make_joined(transcripts: str, out: str) -> None:
    """Write the longer recordings and their references."""
    rng = np.random.default_rng(1)
    said: dict[str, list[str]] = {}
    for utt, text in kaldi_text.read(transcripts).items():
        said.setdefault(utt.partition("-")[0], []).append(text.lower())
    Path(out).mkdir(parents=True, exist_ok=True)
    references = {}
    for number, name in enumerate(sorted(said)[::3][:SPEAKERS]):
        path, parts = Path(out, f"{name}.wav"), []
        for text in said[name][SENTENCES]:
            speaker = VOICES[number % 4], rng.uniform(0.75, 1.0), int(rng.integers(95, 190))
            parts += [speak(text, speaker, path)]
            parts += [np.zeros(int(RATE * rng.uniform(0.1, 0.6)), dtype=np.float32)]
            path.unlink()
        heard = ring(np.concatenate(parts), LARGER, rng)
        noise = make_noise(len(heard), rng)
        samples = add_noise(heard, noise, rng.uniform(14, 24))
        soundfile.write(path.with_suffix(".flac"), samples, RATE)
        references[name] = " ".join(said[name][SENTENCES])
    kaldi_text.write(references, Path(out, "text"))


if __name__ == "__main__":
    with exit_with_message():
        forms = {"--noise": make_noisy, "--joined": make_joined}
        if sys.argv[1] in forms:
            forms[sys.argv[1]](*sys.argv[2:])
        else:
            main(*sys.argv[1:])
