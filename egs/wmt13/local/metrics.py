#!/usr/bin/env python3
"""metrics.py EXPERIMENT.yaml REFERENCES RESCORED OUT: BLEU, chrF and TER of
RESCORED/SYSTEM/test.txt of each system of the experiment, a table in Markdown, printed and in OUT.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.evaluate.corpus import References
from lmtools.evaluate.metrics import METRICS
from lmtools.formats import kaldi_text
from lmtools.report.lists import read_names
from lmtools.report.style import load_style
from lmtools.rescoring.experiment import read_experiment

CONF = Path(__file__).parents[1] / "conf/report.yaml"
SHOWN = ("bleu", "chrf", "ter")


def rows(experiment: str, references: str, rescored: Path) -> Iterator[str]:
    """Yield the lines of the table, and below it the metrics' signatures."""
    refs = kaldi_text.read(references)
    # measures each distinct text once, as most systems choose the same: TER takes long
    measures = [References(refs, metric) for metric in SHOWN]
    yield f"| system | {' | '.join(METRICS[metric].title for metric in SHOWN)} |"
    yield "|---" + "|---:" * len(SHOWN) + "|"
    plan = read_experiment(experiment)
    names = read_names(rescored.parent, load_style(CONF, plan))
    for system in plan.systems:
        path = rescored / system / "test.txt"
        texts = kaldi_text.read(path)
        scores = [measure.evaluate(texts, path).score for measure in measures]
        yield f"| {names.label(system)} | {' | '.join(f'{score:.2f}' for score in scores)} |"
    yield ""
    for metric in SHOWN:
        yield f"- {METRICS[metric].title}: {METRICS[metric].signature}"


def main(experiment: str, references: str, rescored: str, out: str) -> None:
    """Write and print the table."""
    text = "".join(f"{line}\n" for line in rows(experiment, references, Path(rescored)))
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
