#!/usr/bin/env python3
"""gaps.py MODEL SPEECH OUT [LM [KIND..]]: what Whisper invents between sentences.

SPEECH is a Kaldi directory with the text of each utterance. For silence, noise and music, which
are made, OUT/KIND.flac has all utterances with 10 seconds of it behind each; with KIND.. these
alone are heard. Printed are the errors of faster-whisper's `transcribe(beam_size=5)` with its VAD
filter and without, of lmtools' own answer, and of its second pass by LM: insertions, all errors,
and words of segments that begin and end in a gap. One thread; WER after `librispeech`'s normaliser.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
from faster_whisper import WhisperModel

from lmtools import Transcriber
from lmtools.decode.audio import read_samples
from lmtools.decode.utterances import find_utterances
from lmtools.evaluate.edits import Counts, align
from lmtools.text.normaliser import NORMALISERS

RATE, GAP = 16_000, 10
NOTES = (220, 262, 294, 330, 392, 440, 523)  # Hz
WORDS = NORMALISERS["librispeech"]
Said = list[tuple[float, float, str]]


def make_music(draw: np.random.Generator) -> np.ndarray:
    """Return chords of three notes, two a second, each with three harmonics."""
    sound = np.zeros(GAP * RATE)
    for start in range(0, len(sound), RATE // 2):
        at = np.arange(min(len(sound) - start, RATE)) / RATE
        for note in draw.choice(NOTES, 3, replace=False):
            for harmonic in (1, 2, 3):
                wave = np.sin(2 * np.pi * note * harmonic * at) * np.exp(-3 * at) / harmonic
                sound[start : start + len(at)] += wave
    return 0.3 * sound / np.abs(sound).max()


KINDS = {
    "silence": lambda draw: np.zeros(GAP * RATE),
    "noise": lambda draw: 0.03 * draw.standard_normal(GAP * RATE),
    "music": make_music,
}


def make_recordings(speech: str, out: Path) -> Iterator[tuple[Path, list[str], Said]]:
    """Write the recordings; yield the path of each, its words, and its gaps."""
    utterances, draw = find_utterances(speech), np.random.default_rng(3)
    out.mkdir(parents=True, exist_ok=True)
    for kind, make in KINDS.items():
        parts, gaps, seconds = [], [], 0.0
        for one in utterances:
            parts += [read_samples(one, RATE), make(draw)]
            seconds += len(parts[-2]) / RATE
            gaps.append((seconds, seconds + GAP, kind))
            seconds += GAP
        soundfile.write(out / f"{kind}.flac", np.concatenate(parts), RATE)
        yield out / f"{kind}.flac", WORDS(" ".join(one.ref for one in utterances)).split(), gaps


def hear_all(model: str, lm: str | None, path: Path) -> Iterator[tuple[str, Said]]:
    """Yield each system's segments of a recording."""
    stock = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=1)
    for name, vad in (("faster-whisper", False), ("faster-whisper, VAD", True)):
        found, _ = stock.transcribe(str(path), language="en", beam_size=5, vad_filter=vad)
        yield name, [(one.start, one.end, one.text) for one in found]
    found = Transcriber(f"whisper:{model}", [lm] if lm else [], device="cpu").transcribe(path)
    yield "own answer", [(one.start, one.end, one.first) for one in found.segments]
    if lm:
        yield "second pass", [(one.start, one.end, one.text) for one in found.segments]


def main(model: str, speech: str, out: str, lm: str | None = None, *kinds: str) -> None:
    """Print a row a system and kind, and one of all kinds."""
    totals: dict[str, tuple[Counts, int]] = {}
    print("| system | between | words | insertions | errors | words in gaps |")
    print("|---|---|---:|---:|---:|---:|")

    def show(system: str, kind: str, counts: Counts, within: int) -> None:
        row = (system, kind, counts.length, counts.insertions, counts.errors, within)
        print("|", " | ".join(map(str, row)), "|", flush=True)

    for path, ref, gaps in make_recordings(speech, Path(out)):
        if kinds and path.stem not in kinds:
            continue
        for system, said in hear_all(model, lm, path):
            counts = align(ref, WORDS(" ".join(text for *_, text in said)).split()).counts
            within = sum(
                len(WORDS(text).split())
                for start, end, text in said
                if any(begin <= start and end <= stop for begin, stop, _ in gaps)
            )
            show(system, path.stem, counts, within)
            before = totals.get(system, (Counts(0, 0, 0, 0), 0))
            totals[system] = before[0] + counts, before[1] + within
    for system, (counts, within) in totals.items():
        show(system, "all", counts, within)


if __name__ == "__main__":
    main(*sys.argv[1:])
