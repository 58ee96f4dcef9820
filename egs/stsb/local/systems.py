#!/usr/bin/env python3
"""systems.py CONF SYSTEMS WORDS TEXT HOME NAME[=DIR]...: the ways to make vectors, a line each with
a tab between the system's name and its options of `lmtools embed`, quoted for a shell.

SYSTEMS are words: NAME, an LM; NAME-WAY with the ways below; words, word vectors in the file WORDS;
tfidf, counted on TEXT; auto, those that suit each LM. An LM without DIR will be in HOME/NAME, as
CONF/NAME.yaml says.
"""

import re
import shlex
import sys
from pathlib import Path

from lmtools.config import read_layers
from lmtools.errors import UserError, exit_with_message

WAYS = {
    "eos": ("--pool", "eos"),
    "cls": ("--pool", "cls"),
    "max": ("--pool", "max"),
    "masked": ("--masked",),
    "boundaries": ("--boundaries",),
}
SUITED = {
    "causal": ("eos",),
    "tta": ("eos",),
    "masked": ("masked",),
    "hf": ("masked", "cls", "boundaries"),
}
ONE_WAY = re.compile('"(GPT|[A-Za-z0-9]*(CausalLM|LMHeadModel))')  # Hugging Face's, in config.json
STATIC = ("words", "tfidf")


def kind(conf: Path, name: str, place: str) -> str:
    """The model that settings name: causal, masked, tta ...; hf for Hugging Face's masked ones."""
    if place.startswith("hf:"):
        file = Path(place.removeprefix("hf:")) / "config.json"
        return "gpt" if file.exists() and ONE_WAY.search(file.read_text()) else "hf"
    file = Path(place) / "config.yaml" if place else conf / f"{name}.yaml"
    try:
        return str(read_layers(file).get("model", "")) if file.exists() else ""
    except UserError:  # training says what is wrong with it
        return ""


def options(system: str, lms: dict[str, str], words: str, text: str) -> list[str]:
    """What `lmtools embed` is told of a system; UserError if it is none of any LM."""
    name, _, way = system.rpartition("-")
    if system in STATIC:
        return ["--lm", f"words:{words}" if system == "words" else f"tfidf:{text}"]
    if system in lms:
        return ["--lm", lms[system], "--layer", "all"]
    if name in lms and way in WAYS:
        return ["--lm", lms[name], *WAYS[way]]
    raise UserError(
        f"'{system}' is no system; give an LM ({' '.join(lms)}), alone or with -masked, -eos,"
        " -cls ..."
    )


def main(conf: str, systems: str, words: str, text: str, home: str, *pairs: str) -> None:
    """Print the systems."""
    lms = {name: place for name, _, place in (pair.partition("=") for pair in pairs)}
    chosen = []
    for system in systems.split():
        if system != "auto":
            chosen.append(system)
            continue
        for name, place in lms.items():
            if name in STATIC:
                raise UserError(
                    f"an LM is called {name}, as the static vectors are; give it another name"
                )
            suited = SUITED.get(kind(Path(conf), name, place), ())
            chosen += [name, *(f"{name}-{way}" for way in suited)]
    places = {name: place or f"{home}/{name}" for name, place in lms.items()}
    rows = {system: options(system, places, words, text) for system in chosen}
    if not rows:
        raise UserError("no system: name LMs with --lms or --lm-dirs, or vectors with --statics")
    for system, how in rows.items():
        print(system, shlex.join(how), sep="\t")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
