#!/usr/bin/env python3
"""words_seeds.py DATADIR SET OUT.md EXPDIR...: trainings of run_words.sh that differ in their seed
alone, an EXPDIR each. Of each system in all of them: test perplexity of each seed, its ratio to
CE's with the p of a paired t-test of log-perplexities over seeds, mean WER with the least and the
greatest, and the difference of WER to CE's with its 95% interval and p: the paired bootstrap over
utterances, an utterance's errors being those of all seeds together.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel
from seeds_table import describe_difference, describe_spread, evaluate_texts, read_references

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.seal import read_json

REFERENCE = "lstm-softmax"
HEAD = "| system | test perplexity | to CE | WER % | less CE's |"


def main(data: Path, part: str, out: Path, *homes: Path) -> None:
    """Write the table and print it."""
    references = read_references(data / part / "nbest.jsonl")
    found = [evaluate_texts(references, home / "rescore", part) for home in homes]
    lines = [HEAD, "|---|---|---|---|---|"]
    for name in sorted(set.intersection(*map(set, found))):
        base = REFERENCE + "+ngram" * name.endswith("+ngram")
        both = [[systems[each] for systems in found] for each in (name, base)]
        differs = describe_difference(*both) if name.startswith("lstm") and name != base else ""
        perplexities = compare_perplexities([home / "ppl" for home in homes], name, part)
        lines.append(f"| {name} | {perplexities} | {describe_spread(both[0])} | {differs} |")
    text = "\n".join(lines) + "\n"
    with atomic_text(out) as stream:
        stream.write(text)
    print(text, end="")


def compare_perplexities(folders: Sequence[Path], name: str, part: str) -> str:
    """Return the perplexity of each seed, and the ratio to CE's with its p; nothing of a system
    that has none.
    """
    files = [[folder / lm / f"{part}.json" for folder in folders] for lm in (name, REFERENCE)]
    if not all(path.exists() for path in files[0]):
        return "|"
    ours, base = ([read_json(path)["word_ppl"] for path in paths] for paths in files)
    cell = ", ".join(f"{value:.2f}" for value in ours)
    if name == REFERENCE:
        return f"{cell} |"
    logs = np.log(ours), np.log(base)
    ratio, p = np.exp(np.mean(logs[0] - logs[1])), ttest_rel(*logs).pvalue
    return f"{cell} | {ratio - 1:+.1%}, p {p:.2g}"


if __name__ == "__main__":
    with exit_with_message():
        data, part, *rest = sys.argv[1:]
        main(Path(data), part, *map(Path, rest))
