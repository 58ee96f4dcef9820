#!/usr/bin/env python3
"""gaps.py MODEL SPEECH OUT KIND[:SECONDS].. [--ref TEXT] [--systems A,B] [--lm LM] [--first N]:
what Whisper invents where nobody speaks.

SPEECH has recordings of single utterances. For silence, noise and music, which are made,
OUT/KIND-SECONDS.flac has all utterances (or the FIRST N) in a row with as many seconds of it behind
each; `speechless` are 30 recordings without any speech: silence, noise, hum, clicks and music.
Printed are words of the references, insertions, all errors, words of segments that begin and end in
a gap, and how many recordings have any word. One thread; WER after `librispeech`'s normaliser.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import soundfile
from faster_whisper import WhisperModel

from lmtools import Transcriber
from lmtools.decode.audio import read_samples
from lmtools.decode.utterances import find_utterances
from lmtools.evaluate.edits import align
from lmtools.text.normaliser import NORMALISERS

RATE = 16_000
NOTES = (220, 262, 294, 330, 392, 440, 523)  # Hz
WORDS = NORMALISERS["librispeech"]
Said = list[tuple[float, float, str]]


def make_music(draw: np.random.Generator, seconds: float, voices=3, pace=2.0) -> np.ndarray:
    """Return chords of some voices, `pace` a second, each with three harmonics."""
    sound = np.zeros(round(seconds * RATE))
    for start in range(0, len(sound), round(RATE / pace)):
        at = np.arange(min(len(sound) - start, RATE)) / RATE
        for note in draw.choice(NOTES, voices, replace=False):
            for harmonic in (1, 2, 3):
                wave = np.sin(2 * np.pi * note * harmonic * at) * np.exp(-3 * at) / harmonic
                sound[start : start + len(at)] += wave
    return 0.3 * sound / np.abs(sound).max()


def make_noise(draw: np.random.Generator, seconds: float, level=-30, slope=0.0) -> np.ndarray:
    """Return noise of `level` dB; its power falls with the frequency by the power `slope`: 0 is
    white, 1 pink, 2 brown.
    """
    size = round(seconds * RATE)
    bands = np.fft.rfft(draw.standard_normal(size))
    bands /= np.maximum(np.arange(len(bands)), size * 20 / RATE) ** (slope / 2)
    sound = np.fft.irfft(bands, size)
    return 10 ** (level / 20) * sound / np.sqrt(np.mean(sound**2))


def make_hum(seconds: float, hertz: float, level: float) -> np.ndarray:
    at = np.arange(round(seconds * RATE)) / RATE
    return level * sum(np.sin(2 * np.pi * hertz * n * at) / n for n in (1, 2, 3, 5))


def make_clicks(seconds: float, *times: float) -> np.ndarray:
    sound = np.zeros(round(seconds * RATE))
    for time in times:
        sound[round(time * RATE) :][:16] = np.linspace(0.9, -0.9, 16)
    return sound


KINDS: dict[str, Callable[[np.random.Generator, float], np.ndarray]] = {
    "silence": lambda draw, seconds: np.zeros(round(seconds * RATE)),
    "noise": make_noise,
    "music": make_music,
}


def make_speechless() -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the samples of each of 30 recordings."""
    draw = np.random.default_rng(30)
    for seconds in (0.1, 1, 8, 29, 65):
        yield f"silence-{seconds}s", np.zeros(round(seconds * RATE))
    for slope, colour in enumerate(("white", "pink", "brown")):
        for level, seconds in ((-60, 8), (-40, 20), (-20, 40)):
            yield f"{colour}{level}dB", make_noise(draw, seconds, level, slope)
    for hertz in (50, 60):
        for level in (0.01, 0.2):
            yield f"hum-{hertz}Hz-{level}", make_hum(12, hertz, level)
    yield "click", make_clicks(3, 1.5)
    yield "clicks", make_clicks(20, *draw.uniform(0, 19, 10))
    yield "metronome", make_clicks(35, *np.arange(0, 34, 0.5))
    yield "noise-0.1s", make_noise(draw, 0.1)
    for number, (voices, pace, seconds) in enumerate(
        [(1, 1, 10), (1, 4, 20), (3, 1, 10), (3, 2, 29), (3, 2, 60), (4, 3, 20), (5, 8, 20)]
    ):
        yield f"music-{number}", make_music(draw, seconds, voices, pace)
    at = np.arange(15 * RATE) / RATE
    yield "sweep", 0.2 * np.sin(2 * np.pi * (100 + 100 * at) * at)


def make_recordings(args) -> Iterator[tuple[str, Path, list[str], Said]]:
    """Write the recordings; yield the row, the path, the words and the gaps of each."""
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    utterances = find_utterances(args.speech, args.ref)[: args.first]
    for kind in args.kinds:
        if kind == "speechless":
            for name, sound in make_speechless():
                soundfile.write(out / f"{name}.flac", sound, RATE)
                yield kind, out / f"{name}.flac", [], [(0.0, len(sound) / RATE, "")]
            continue
        name, _, length = kind.partition(":")
        gap, draw = float(length or 10), np.random.default_rng(3)
        parts, gaps, seconds = [], [], 0.0
        for one in utterances:
            parts += [read_samples(one, RATE), KINDS[name](draw, gap) if gap else []]
            seconds += len(parts[-2]) / RATE
            gaps.append((seconds, seconds + gap, name))
            seconds += gap
        path = out / f"{kind.replace(':', '-')}.flac"
        soundfile.write(path, np.concatenate(parts), RATE)
        yield kind, path, WORDS(" ".join(one.ref for one in utterances)).split(), gaps


def make_system(name: str, model: str, lm: str | None) -> Callable[[Path], Said]:
    """Return what hears a recording: stock or own, with `+vad` or without."""
    who, _, vad = name.partition("+")
    if who == "stock":
        stock = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=1)

        def hear(path: Path) -> Said:
            found, _ = stock.transcribe(
                str(path), language="en", beam_size=5, vad_filter=vad == "vad"
            )
            return [(one.start, one.end, one.text) for one in found]

        return hear
    opts = [f"vad={str(vad == 'vad').lower()}"]
    own = Transcriber(f"whisper:{model}", [lm] if lm else [], device="cpu", opts=opts)
    return lambda path: [(one.start, one.end, one.text) for one in own.transcribe(path).segments]


def main() -> None:
    """Print a row a kind and system."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "speech", "out"):
        parser.add_argument(name)
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--ref")
    parser.add_argument("--lm")
    parser.add_argument("--first", type=int)
    parser.add_argument("--systems", default="stock,stock+vad,own,own+vad")
    args = parser.parse_args()
    print("| gaps | system | words | insertions | errors | words in gaps | recordings |")
    print("|---|---|---:|---:|---:|---:|---:|")
    systems = {name: make_system(name, args.model, args.lm) for name in args.systems.split(",")}
    recordings = list(make_recordings(args))
    for kind in dict.fromkeys(kind for kind, *_ in recordings):
        for name, hear in systems.items():
            total = np.zeros(5, int)
            for _, path, ref, gaps in (one for one in recordings if one[0] == kind):
                said = hear(path)
                spoken = WORDS(" ".join(text for *_, text in said)).split()
                within = sum(
                    len(WORDS(text).split())
                    for start, end, text in said
                    if any(begin <= start and end <= stop for begin, stop, _ in gaps)
                )
                counts = align(ref, spoken).counts
                total += [len(ref), counts.insertions, counts.errors, within, bool(spoken)]
            print("|", " | ".join(map(str, (kind, name, *total))), "|", flush=True)


if __name__ == "__main__":
    main()
