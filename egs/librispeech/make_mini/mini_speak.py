#!/usr/bin/env python3
"""Speaks held-out sentences with synthetic voices, adds white noise and decodes them: UTT.slf and
UTT.hyp in a work directory.

The plan (which sentence, voice and noise) is `UTT <TAB> voice <TAB> noise <TAB> words <TAB> printed
form` and follows from the seed alone. An utterance that was decoded before is not decoded again.
"""

import argparse
import functools
import multiprocessing
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from pocketsphinx import Decoder

from lmtools.base.atomic import atomic_path, atomic_text
from lmtools.base.files import read_lines

RATE = 16000  # samples a second: what the acoustic model was trained on
NOISE_SECONDS = 60  # one recording of noise; every utterance takes another part of it
VOICES = {
    "slt": ["flite", "-voice", "slt", "-o", "{wav}", "-t", "{text}"],
    "rms": ["flite", "-voice", "rms", "-o", "{wav}", "-t", "{text}"],
    "awb": ["flite", "-voice", "awb", "-o", "{wav}", "-t", "{text}"],
    "kal16": ["flite", "-voice", "kal16", "-o", "{wav}", "-t", "{text}"],
    "espeak": ["espeak-ng", "-v", "en-us+klatt2", "-w", "{wav}", "{text}"],
}
# faster and slower, and more voices of espeak: for lists of training apart by voice
for name in ("slt", "rms", "awb", "kal16"):
    for speed, stretch in (("fast", "0.87"), ("slow", "1.18")):
        VOICES[f"{name}-{speed}"] = [*VOICES[name], "--setf", f"duration_stretch={stretch}"]
for name in ("en-us", "en-us+f2", "en-gb", "en-gb+f3", "en-gb-scotland", "en-gb-x-rp+m5"):
    VOICES[name] = ["espeak-ng", "-v", name, "-w", "{wav}", "{text}"]


class Utterance(NamedTuple):
    """One line of the plan; `noise` is the volume of white noise in thousandths of full scale."""

    name: str
    voice: str
    noise: int
    words: str
    printed: str


def main() -> None:
    args = arguments()
    plan = choose(args)
    with atomic_text(args.plan) as out:
        out.writelines("\t".join(map(str, utterance)) + "\n" for utterance in plan)
    todo = [u for u in plan if not (args.work / f"{u.name}.hyp").exists()]
    print(f"{args.plan.stem}: {len(plan)} utterances, {len(todo)} to speak and decode", flush=True)
    if todo:
        decode_all(todo, args.work, args.jobs)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--sentences", required=True, help="`NAME <TAB> words <TAB> printed form` lines"
    )
    parser.add_argument("--plan", required=True, type=Path, help="the plan, written here")
    parser.add_argument("--work", required=True, type=Path, help="directory of UTT.slf and UTT.hyp")
    parser.add_argument("--count", required=True, type=int, help="utterances")
    parser.add_argument(
        "--voices",
        required=True,
        nargs="+",
        choices=VOICES,
        help="one for each utterance; repeated ones come oftener",
    )
    parser.add_argument(
        "--noises",
        required=True,
        nargs="+",
        type=int,
        help="volumes of the noise in thousandths of full scale",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def choose(args: argparse.Namespace) -> list[Utterance]:
    """Return `count` sentences drawn without replacement, voices and noise levels in equal shares,
    in the order of the text.
    """
    lines = [line.split("\t") for _, line in read_lines(args.sentences)]
    assert len(lines) >= args.count, (
        f"{args.sentences} has only {len(lines)} sentences; hold out more books"
    )
    draw = random.Random(args.seed)
    picked = sorted(draw.sample(range(len(lines)), args.count))
    kinds = [(voice, noise) for voice in args.voices for noise in args.noises]
    kinds = (kinds * (args.count // len(kinds) + 1))[: args.count]
    draw.shuffle(kinds)
    return [spoken(*lines[i], *kind) for i, kind in zip(picked, kinds, strict=True)]


def spoken(name: str, words: str, printed: str, voice: str, noise: int) -> Utterance:
    return Utterance(f"{name}-{voice}-n{noise}", voice, noise, words, printed)


def decode_all(todo: list[Utterance], work: Path, jobs: int) -> None:
    """Write UTT.slf and UTT.hyp of every utterance, `jobs` at a time."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.Pool(jobs) as pool:
        noise = Path(scratch) / "noise.wav"
        sox("-n", "-r", RATE, "-c", 1, "-b", 16, noise, "synth", NOISE_SECONDS, "whitenoise")
        began = time.monotonic()
        for done, _ in enumerate(
            pool.imap_unordered(functools.partial(decode, noise=noise, work=work), todo), 1
        ):
            if done % 50 == 0 or done == len(todo):
                print(
                    f"  {done} of {len(todo)} decoded, {time.monotonic() - began:.0f} s", flush=True
                )


def decode(utterance: Utterance, noise: Path, work: Path) -> None:
    """Speak and decodes one utterance; the .hyp file, the decoder's own first pass, comes last and
    says that it is done.

    A decoder adapts to what it has heard: each utterance gets a new one, so that the result depends
    on no other utterance.
    """
    decoder = Decoder(loglevel="FATAL")
    decoder.start_utt()
    decoder.process_raw(audio(utterance, noise), full_utt=True)
    decoder.end_utt()
    # asked for before the lattice is written, because it computes the posteriors of the links
    first_pass = decoder.hyp()
    with atomic_path(work / f"{utterance.name}.slf") as path:
        decoder.get_lattice().write_htk(str(path))
    with atomic_text(work / f"{utterance.name}.hyp") as out:
        out.write(first_pass.hypstr.upper() + "\n")


def audio(utterance: Utterance, noise: Path) -> bytes:
    """Return 16-bit samples of the utterance: peak at -3 dB, plus white noise."""
    with tempfile.TemporaryDirectory() as scratch:
        spoken, clean, mixed = (
            Path(scratch) / name for name in ("spoken.wav", "clean.wav", "mixed.raw")
        )
        text = utterance.printed.translate(str.maketrans("’", "'", "“”‘()[]"))
        command = [part.format(wav=spoken, text=text) for part in VOICES[utterance.voice]]
        subprocess.run(command, check=True, capture_output=True)
        sox(spoken, "-r", RATE, "-c", 1, "-b", 16, clean, "gain", "-n", -3)
        length = int(subprocess.run(["soxi", "-s", clean], check=True, capture_output=True).stdout)
        offset = random.Random(utterance.name).randrange(NOISE_SECONDS * RATE - length)
        part = f"|sox -R {noise} -p trim {offset}s {length}s"
        sox("-m", "-v", 1, clean, "-v", utterance.noise / 1000, part, "-b", 16, mixed)
        return mixed.read_bytes()


def sox(*words) -> None:
    """Run sox with repeatable random numbers."""
    subprocess.run(["sox", "-R", *map(str, words)], check=True, capture_output=True)


if __name__ == "__main__":
    main()
