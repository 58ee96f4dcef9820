#!/usr/bin/env python3
"""llms_table.py EXPERIMENT DATA EXP: the table of a case of run_llms.sh, EXP/llms.md: WER of its
systems on test, or on dev where there is no test, with EXP/rescore, and EXP/avg/rescore, whose
weights have Whisper's score by length, too.

p is of matched pairs and, where the experiment has groups, of sign flips of whole speakers, against
the first of each list and against the 4-gram of the same folder. Holm's values are of all
comparisons with the 4-gram but those that the experiment plans.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from seeds_table import RESAMPLES_SEED, read_references

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.evaluate.corpus import Evaluation, References
from lmtools.evaluate.significance import compare_groups, holm
from lmtools.formats import kaldi_text, read
from lmtools.rescoring.experiment import ExperimentPlan, read_experiment

FOLDERS = {".": "", "avg": ", avg"}
BASE, FIRST = "ngram4", "first of each list"
HEAD = "| system | WER % | 95% CI | p to the first | speakers | p to the 4-gram | speakers | Holm |"
Texts = Mapping[str, str]


class Row(NamedTuple):
    """A system's output, and p by utterance and by speaker against two others."""

    label: str
    found: Evaluation
    first: tuple[float, float | None]
    base: tuple[float, float | None] | None
    planned: bool


def main(experiment: str, data: Path, home: Path) -> None:
    """Write the table and print it."""
    part = "test" if (data / "test").is_dir() else "dev"
    lists = data / part / "nbest.jsonl"
    references = read_references(lists)
    stock = {nbest.utt: nbest.hyps[0].text for nbest in read(lists, "jsonl")}
    plan = read_experiment(experiment)
    rows = [
        row
        for folder in FOLDERS
        for row in compare_systems(references, plan, home / folder, part, stock)
    ]
    whole = references.evaluate(stock)
    lines = [HEAD, "|---|---:|---|---|---|---|---|---|", *tabulate(rows, whole)]
    with atomic_text(home / "llms.md") as out:
        out.write("\n".join(lines) + "\n")
    print(*lines, sep="\n")


def compare_systems(
    references: References, plan: ExperimentPlan, home: Path, part: str, stock: Texts
) -> Iterator[Row]:
    """Yield the row of each system of the experiment in a folder."""
    texts = {
        name: kaldi_text.read(home / "rescore" / name / f"{part}.txt") for name in plan.systems
    }
    if BASE not in texts:
        raise UserError(
            f"{plan.place}: no system {BASE}; add the one that others are compared with"
        )
    for name, entry in plan.systems.items():
        chosen, rivals = texts[name], [stock] if name == BASE else [stock, texts[BASE]]
        tests = [compare(references, chosen, rival, bool(plan.groups)) for rival in rivals]
        label = (entry.label or name) + FOLDERS[home.name if home.name in FOLDERS else "."]
        planned = home.name != "avg" and name in (plan.planned or ())
        yield Row(label, references.evaluate(chosen), tests[0], (*tests, None)[1], planned)


def compare(
    references: References, chosen: Texts, rival: Texts, groups: bool
) -> tuple[float, float | None]:
    """Return p of matched pairs, and of sign flips of speakers if there are some."""
    first, second = (references.evaluate(texts).statistics for texts in (chosen, rival))
    speakers = groups and [
        *kaldi_text.find_speakers(references.refs, None, "refs", "give others").values()
    ]
    flips = groups and compare_groups(first, second, speakers, "wer", RESAMPLES_SEED).flips_p
    return references.compare(chosen, rival).p, flips if groups else None


def tabulate(rows: list[Row], stock: Evaluation) -> Iterator[str]:
    """Yield the lines of the table."""
    others = [row for row in rows if row.base and not row.planned]
    adjusted = dict(zip(map(id, others), holm([row.base[0] for row in others]), strict=True))
    yield f"| {FIRST} | {describe(stock)} | | | | | |"
    for row in rows:
        cells = [describe(row.found), *map(show, row.first), *map(show, row.base or (None, None))]
        cells.append("planned" if row.planned else show(adjusted.get(id(row))))
        yield f"| {row.label} | {' | '.join(cells)} |"


def describe(found: Evaluation) -> str:
    return f"{found.score:.2f} | {', '.join(f'{end:.2f}' for end in found.interval() or ()) or '-'}"


def show(p: float | None) -> str:
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.2g}"


if __name__ == "__main__":
    with exit_with_message():
        experiment, data, home = sys.argv[1:]
        main(experiment, Path(data), Path(home))
