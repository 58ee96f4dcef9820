"""Made speech with references, to choose by where no recordings of dev are at hand: 120 sentences
of a file of transcripts by four voices of flite, as ten speakers of other rates, pitches and
levels of noise, in a small room.

    made_speech.py TRANSCRIPTS OUT
    made_speech.py --noise DECIBELS RECORDINGS OUT

Writes OUT/SPEAKER-UTTERANCE.flac and OUT.text, references in lower case. Needs flite's program. The
second form adds the same noise, that many decibels below the speech, to a directory of recordings.
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


def speak(text: str, speaker: tuple, path: Path) -> np.ndarray:
    """Return what flite says, with silence around it."""
    voice, stretch, pitch, _ = speaker
    settings = [
        "--setf",
        f"duration_stretch={stretch:.2f}",
        "--setf",
        f"int_f0_target_mean={pitch}",
    ]
    subprocess.run(["flite", "-voice", voice, *settings, "-t", text, "-o", str(path)], check=True)
    samples, _ = soundfile.read(path, dtype="float32")
    return np.pad(samples, (RATE // 5, 3 * RATE // 10))


def mix(samples: np.ndarray, decibels: float, rng: np.random.Generator) -> np.ndarray:
    """Return samples in a room with noise."""
    size = 3 * RATE // 10
    room = np.exp(-np.arange(size) / (0.06 * RATE)) * rng.standard_normal(size) * 0.02
    room[0] = 1
    return add_noise(fftconvolve(samples, room)[: len(samples)], decibels, rng)


def add_noise(heard: np.ndarray, decibels: float, rng: np.random.Generator) -> np.ndarray:
    """Return samples with low and white noise, as loud as all recordings."""
    noise = np.cumsum(rng.standard_normal(len(heard))) * 0.02
    noise -= fftconvolve(noise, np.ones(400) / 400, "same")
    noise = noise / noise.std() + 0.5 * rng.standard_normal(len(heard))
    heard = heard + noise / noise.std() * heard.std() * 10 ** (-decibels / 20)
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
            samples = mix(speak(text.lower(), speakers[place], path), decibels, rng)
            path.unlink()
            soundfile.write(path.with_suffix(".flac"), samples, RATE)
            references.write(f"{name} {text.lower()}\n")


def make_noisy(decibels: str, recordings: str, out: str) -> None:
    """Write each recording with noise."""
    rng = np.random.default_rng(58)
    Path(out).mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(recordings).glob("*.flac")):
        samples, rate = soundfile.read(path)
        soundfile.write(Path(out, path.name), add_noise(samples, float(decibels), rng), rate)


if __name__ == "__main__":
    with exit_with_message():
        if sys.argv[1:2] == ["--noise"]:
            make_noisy(*sys.argv[2:])
        else:
            main(*sys.argv[1:])
