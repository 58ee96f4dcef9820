#!/usr/bin/env python3
"""metrics.py REFERENCES RESCORED OUT SYSTEMS.yaml [KEY=WORDS...]: BLEU, chrF and TER of
RESCORED/SYSTEM/test.txt of each system of `lmtools rescore --systems`, a table in Markdown, printed
and in OUT.
"""

import sys
from pathlib import Path

from lmtools.atomic import atomic_text
from lmtools.errors import exit_with_message
from lmtools.evaluate import METRICS, evaluate
from lmtools.formats import kaldi_text
from lmtools.report.rescoring.experiment import read_names
from lmtools.rescoring import read_systems

SHOWN = ("bleu", "chrf", "ter")


def rows(references: str, rescored: Path, systems: list[str]):
    """The lines of the table, and below it the metrics' signatures."""
    refs = kaldi_text.read(references)
    yield f"| system | {' | '.join(METRICS[metric].title for metric in SHOWN)} |"
    yield "|---" + "|---:" * len(SHOWN) + "|"
    names = read_names(rescored.parent)
    for system in names.ordered(systems):
        path = rescored / system / "test.txt"
        texts = kaldi_text.read(path)
        scores = [evaluate(refs, texts, metric, path).score for metric in SHOWN]
        yield f"| {names.label(system)} | {' | '.join(f'{score:.2f}' for score in scores)} |"
    yield ""
    for metric in SHOWN:
        yield f"- {METRICS[metric].title}: {METRICS[metric].signature}"


def main(references: str, rescored: str, out: str, file: str, *settings: str) -> None:
    """Write and print the table."""
    systems = list(read_systems(file, settings))
    text = "".join(f"{line}\n" for line in rows(references, Path(rescored), systems))
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
