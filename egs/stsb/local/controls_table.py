#!/usr/bin/env python3
"""controls_table.py STS OUT.md PAIRS...: the table of run_controls.sh, of STS/SYSTEM/PAIRS.json as
`lmtools sts --out` writes them.

A row has the correlations (times 100) of a system's last layer (context) and embedding layer
(embed); of systems NAME-SEED, the mean over seeds with the least and the greatest. p is the
greatest of Williams' tests of a trained LM's context against that of each untrained seed of the
same kind.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.seal import read_json
from lmtools.vectors.similarity import compare_correlations

LMS = {"causal": "uniLM", "masked": "biLM, intact", "tta": "T-TA"}
OTHERS = {
    "words": "word vectors",
    "tfidf": "tf-idf",
    "overlap": "words in common (Jaccard)",
    "length": "length alone",
}
DASH = ""


def main(sts: Path, out: Path, *sets: str) -> None:
    """Write the table of all systems that are there, and print it."""
    heads = [f"{name} {kind}" for name in sets for kind in ("context", "Spearman", "embed", "p")]
    lines = [f"| system | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    for label, systems, controls in list_systems(sts):
        cells = [cell for name in sets for cell in describe(sts, name, systems, controls)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


def list_systems(sts: Path) -> list[tuple[str, list[str], list[str]]]:
    """Return label, systems of a row and systems that it is tested against, for all rows."""
    there = sorted(path.name for path in sts.iterdir() if path.is_dir())
    seeds = {name: [x for x in there if x.rpartition("-")[0] == name] for name in (*LMS, "random")}
    rows = [(f"{label}, untrained", seeds[name], []) for name, label in LMS.items()]
    rows.append(("random vectors of words", seeds["random"], []))
    rows += [(label, [name], []) for name, label in OTHERS.items() if name in there]
    rows += [(label, [name], seeds[name]) for name, label in LMS.items() if name in there]
    return [row for row in rows if row[1]]


def describe(sts: Path, name: str, systems: Sequence[str], controls: Sequence[str]) -> list[str]:
    """Return the cells of one row and set of pairs: context, its Spearman, embed and p."""
    trees = [read_json(sts / system / f"{name}.json") for system in systems]
    several = len(trees[0]["rows"]) > 1
    last, ranks = ([tree["rows"][-1][kind][0] for tree in trees] for kind in KINDS)
    first = [tree["rows"][0]["pearson"][0] for tree in trees]
    p = [test(trees[0], read_json(sts / control / f"{name}.json")) for control in controls]
    return [
        spread(last),
        spread(ranks),
        spread(first) if several else DASH,
        ("<0.001" if max(p) < 5e-4 else f"{max(p):.3f}") if p else DASH,
    ]


KINDS = ("pearson", "spearman")


def test(ours: dict, theirs: dict) -> float:
    """Return the p of Williams' test of two systems' last layers."""
    gold = np.array(ours["similarity"])
    cosines = (np.array(tree["rows"][-1]["cosine"]) for tree in (ours, theirs))
    return compare_correlations(gold, *cosines)[0]


def spread(values: Sequence[float]) -> str:
    """Return a mean times 100, with the least and the greatest of several values."""
    shown = f"{np.mean(values) * 100:.2f}"
    if len(values) == 1:
        return shown
    return f"{shown} [{min(values) * 100:.2f}, {max(values) * 100:.2f}]"


if __name__ == "__main__":
    with exit_with_message():
        main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
