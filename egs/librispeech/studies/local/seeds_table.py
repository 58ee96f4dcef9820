#!/usr/bin/env python3
"""seeds_table.py DATADIR EXPDIR OUT.md CASE/SET...: the tables of run_seeds.sh, of
DATADIR/CASE/SET/nbest.jsonl and EXPDIR/CASE/rescore/SYSTEM/SET.txt; systems are KIND-SEED and
KIND+ngram4-SEED.

The first has the mean WER over seeds with the least and the greatest. The second has the difference
of T-TA to the other LM with its 95% interval and p: the paired bootstrap over utterances (Bisani
and Ney 2004), an utterance's errors being those of all seeds together.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.evaluate.corpus import Evaluation, References
from lmtools.evaluate.significance import paired_bootstrap
from lmtools.formats import kaldi_text, read

KINDS = {"causal": "uniLM", "masked": "biLM", "tta": "T-TA"}
SINGLE = {"first-pass": "tuned without LM", "ngram4": "n-gram (4)"}
RESAMPLES_SEED = 1
Found = Mapping[str, Mapping[str, Evaluation]]  # by set, then by system


def main(data: Path, home: Path, out: Path, *sets: str) -> None:
    """Write both tables and print them."""
    found = {name: evaluate_set(data, home, name) for name in sets}
    lines = [*tabulate_wers(found), "", *tabulate_differences(found)]
    text = "\n".join(lines) + "\n"
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


def evaluate_set(data: Path, home: Path, name: str) -> dict[str, Evaluation]:
    """Return the WER of each system on a set."""
    case, part = name.split("/")
    references = read_references(data / name / "nbest.jsonl")
    return evaluate_texts(references, home / case / "rescore", part)


def read_references(lists: Path) -> References:
    """Return the references of lists."""
    return References({nbest.utt: nbest.ref for nbest in read(lists, "jsonl")})


def evaluate_texts(references: References, folder: Path, part: str) -> dict[str, Evaluation]:
    """Return the WER of each system's FOLDER/SYSTEM/PART.txt."""
    paths = sorted(folder.glob(f"*/{part}.txt"))
    if not paths:
        raise UserError(f"{folder}: no SYSTEM/{part}.txt; run stage 5")
    return {path.parent.name: references.evaluate(kaldi_text.read(path)) for path in paths}


def tabulate_wers(found: Found) -> list[str]:
    """Return the table of WER: a row a kind of LM, a column a set."""
    lines = [f"| LM | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for name, label in SINGLE.items():
        cells = [f"{systems[name].score:.2f}" for systems in found.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    for kind in (*KINDS, *(f"{kind}+ngram4" for kind in KINDS)):
        cells = [describe_spread(list_seeds(systems, kind)) for systems in found.values()]
        lines.append(f"| {name_kind(kind)} | {' | '.join(cells)} |")
    return lines


def tabulate_differences(found: Found) -> list[str]:
    """Return the table of T-TA less the other LMs, alone and with the n-gram."""
    lines = [f"| T-TA less | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for suffix in ("", "+ngram4"):
        for other in ("causal", "masked"):
            cells = [
                describe_difference(
                    *(list_seeds(systems, kind + suffix) for kind in ("tta", other))
                )
                for systems in found.values()
            ]
            lines.append(f"| {name_kind(other + suffix)} | {' | '.join(cells)} |")
    return lines


def list_seeds(systems: Mapping[str, Evaluation], kind: str) -> list[Evaluation]:
    """Return the systems KIND-SEED in the order of seeds."""
    return [systems[name] for name in sorted(systems) if name.rpartition("-")[0] == kind]


def name_kind(kind: str) -> str:
    """Return what the table calls an LM, with the n-gram or without."""
    lm, _, ngram = kind.partition("+")
    return KINDS[lm] + (" + n-gram (4)" if ngram else "")


def describe_spread(seeds: Sequence[Evaluation]) -> str:
    """Return the mean WER, the least and the greatest."""
    scores = [found.score for found in seeds]
    return f"{np.mean(scores):.2f} [{min(scores):.2f}, {max(scores):.2f}]"


def describe_difference(first: Sequence[Evaluation], second: Sequence[Evaluation]) -> str:
    """Return the difference of mean WER with interval and p."""
    left, right = (sum(found.statistics for found in seeds) for seeds in (first, second))
    test = paired_bootstrap(left, right, first[0].metric, seed=RESAMPLES_SEED)
    ends = "-"
    if test.difference_interval:
        ends = ", ".join(f"{end:+.2f}" for end in test.difference_interval)
    p = "<0.001" if test.p is not None and test.p < 0.001 else test.describe().removeprefix("p = ")
    return f"{test.difference:+.2f} [{ends}], p {p}"


if __name__ == "__main__":
    with exit_with_message():
        data, home, out, *sets = sys.argv[1:]
        main(Path(data), Path(home), Path(out), *sets)
