#!/usr/bin/env python3
"""prepare_pairs.py FORMAT DATA SET=FILE...: DATA/SET/pairs.tsv, left TAB right TAB similarity, of
each set's pairs, and DATA/sentences.txt, what all of them are made of, each sentence once.

FORMAT is one of `lmtools sts --help`; FILE is as published.
"""

import sys
from pathlib import Path

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import exit_with_message
from lmtools.vectors import pairs


def main(form: str, data: Path, *sets: str) -> None:
    """Write all of it, and say how much there is."""
    sentences = {}
    for name, _, file in (text.partition("=") for text in sets):
        read = list(pairs.read(file, form))
        pairs.write(read, data / name / "pairs.tsv")
        sentences.update(dict.fromkeys(text for pair in read for text in (pair.left, pair.right)))
        print(f"{name}: {len(read)} pairs")
    with atomic_text(data / "sentences.txt") as stream:
        stream.writelines(f"{text}\n" for text in sentences)
    print(f"{len(sentences)} distinct sentences")


if __name__ == "__main__":
    with exit_with_message():
        main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
