#!/usr/bin/env python3
"""overlap.py TEXT ENGLISH OUT: how much of the LMs' text is in ENGLISH, the translators' English
side, as lines of Markdown, printed and in OUT: sentences, and runs of RUN words, each counted as
often as it occurs in TEXT. An LM that read little else knows little that a translator does not.
"""

import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.base.files import read_lines

RUN = 8
CHUNK = 100_000  # lines that are looked up at once


def runs(sentence: str) -> Iterator[tuple[str, ...]]:
    """Return the runs of RUN words in a sentence, whatever their case."""
    words = sentence.lower().split()
    return (tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1))


def sentence_keys(lines: list[str]) -> Iterator[int]:
    """Return each sentence as a number of 64 bits, which hold what a set of texts would not."""
    return (hash(" ".join(line.split())) for line in lines)


def run_keys(lines: list[str]) -> Iterator[int]:
    """Return each run of words likewise."""
    return (hash(run) for line in lines for run in runs(line))


def chunks(path: str) -> Iterator[list[str]]:
    """Return the lines of a file, CHUNK at a time."""
    lines = (line for _, line in read_lines(path))
    return iter(lambda: list(islice(lines, CHUNK)), [])


def shared(text: str, english: str, keys) -> tuple[int, int]:
    """Return how many of the text's keys there are, and how many of them English has."""
    known = np.unique(np.concatenate([collect(keys, chunk) for chunk in chunks(english)]))
    collected = [collect(keys, chunk) for chunk in chunks(text)]
    return sum(map(len, collected)), sum(int(np.isin(chunk, known).sum()) for chunk in collected)


def collect(keys, lines: list[str]) -> np.ndarray:
    """Return the keys of some lines (keys,)."""
    return np.fromiter(keys(lines), dtype=np.int64)


def main(text: str, english: str, out: str) -> None:
    """Count, write and print."""
    with atomic_text(out) as stream:
        for what, keys in (("sentences", sentence_keys), (f"runs of {RUN} words", run_keys)):
            count, common = shared(text, english, keys)
            line = (
                f"- Of the LM text's {count:,} {what} {100 * common / max(1, count):.1f}% are in"
                " the translators' English side."
            )
            stream.write(f"{line}\n")
            print(line)


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
