#!/usr/bin/env python3
"""prepare.py mini|stsb|sick RAW OUT: OUT/{train,valid}.txt, OUT/{dev,test}/pairs.tsv and
OUT/sentences.txt, what all pairs are made of.

RAW holds the files as they were published; pairs.tsv has left TAB right TAB similarity.
"""

import sys
from pathlib import Path

from lmtools.atomic import atomic_text, copy_file
from lmtools.errors import exit_with_message
from lmtools.formats import pairs

# The files of each set, and their format
SOURCES = {
    "mini": ("tsv", {"dev": "dev.tsv", "test": "test.tsv"}),
    "stsb": ("stsb", {"dev": "sts-dev.csv", "test": "sts-test.csv"}),
    "sick": ("sick", {"dev": "SICK_trial.txt", "test": "SICK_test_annotated.txt"}),
}


def main(corpus: str, raw: Path, out: Path) -> None:
    """Write all of it, and say how much there is."""
    for part in ("train", "valid"):
        copy_file(raw / f"{part}.txt", out / f"{part}.txt")
    form, files = SOURCES[corpus]
    sentences = {}
    for part, file in files.items():
        some = list(pairs.read(raw / file, form))
        pairs.write(some, out / part / "pairs.tsv")
        sentences.update(dict.fromkeys(text for pair in some for text in (pair.left, pair.right)))
        print(f"{part}: {len(some)} pairs")
    with atomic_text(out / "sentences.txt") as stream:
        stream.writelines(f"{text}\n" for text in sentences)
    print(f"{len(sentences)} distinct sentences")


if __name__ == "__main__":
    with exit_with_message():
        main(sys.argv[1], *map(Path, sys.argv[2:]))
