#!/usr/bin/env python3
"""words_seeds.py DATADIR SET OUT.md EXPDIR...: trainings of run_words.sh that differ in their seed
alone, an EXPDIR each.

The first table has of each system in all of them the test perplexity of each seed and the mean WER
with the least and the greatest. The second has two systems a row, the later name less the earlier:
the ratio of test perplexities, with the 95% interval and p of a paired t-test of log-perplexities
over seeds; and the difference of WER, with those of the paired bootstrap over utterances, an
utterance's errors being those of all seeds together.
"""

import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel
from seeds_table import describe_difference, describe_spread, evaluate_texts, read_references

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.seal import read_json

SYSTEMS = "| system | test perplexity | WER % |\n|---|---|---|"
PAIRS = "| less | test perplexity | WER % |\n|---|---|---|"


def main(data: Path, part: str, out: Path, *homes: Path) -> None:
    """Write both tables and print them."""
    references = read_references(data / part / "nbest.jsonl")
    found = [evaluate_texts(references, home / "rescore", part) for home in homes]
    names = sorted(set.intersection(*map(set, found)))
    perplexities = {name: list_perplexities(homes, name, part) for name in names}
    lines = [SYSTEMS]
    for name in names:
        cell = ", ".join(f"{value:.2f}" for value in perplexities[name])
        spread = describe_spread([systems[name] for systems in found])
        lines.append(f"| {name} | {cell} | {spread} |")
    lines += ["", PAIRS]
    for base, name in combinations([name for name in names if name.startswith("lstm")], 2):
        if name.endswith("+ngram") == base.endswith("+ngram"):
            both = ([systems[each] for systems in found] for each in (name, base))
            ratio = describe_ratio(perplexities[name], perplexities[base])
            lines.append(f"| {name} less {base} | {ratio} | {describe_difference(*both)} |")
    text = "\n".join(lines) + "\n"
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


def list_perplexities(homes: Sequence[Path], name: str, part: str) -> list[float]:
    """Return the perplexity of each seed; none of a system that has none."""
    paths = [home / "ppl" / name / f"{part}.json" for home in homes]
    return [read_json(path)["word_ppl"] for path in paths if path.exists()]


def describe_ratio(ours: Sequence[float], base: Sequence[float]) -> str:
    """Return by how much perplexity is greater than base's, with interval and p."""
    if len(ours) != len(base) or len(ours) < 2:
        return ""
    test = ttest_rel(np.log(ours), np.log(base))
    middle = np.mean(np.log(ours) - np.log(base))
    low, high = test.confidence_interval()
    ratio, low, high = (f"{np.expm1(value):+.1%}" for value in (middle, low, high))
    return f"{ratio} [{low}, {high}], p {test.pvalue:.2g}"


if __name__ == "__main__":
    with exit_with_message():
        data, part, *rest = sys.argv[1:]
        main(Path(data), part, *map(Path, rest))
