#!/usr/bin/env python3
"""overlap.py VOCABULARIES: how many pieces the vocabularies VOCABULARIES/bpe-SIZE and
VOCABULARIES/unigram-SIZE have in common (of which Subword ELMo gives the share), a line a size.

Special ids do not count. A piece that begins a word is another than the same letters inside one;
the share by letters alone is said too, since the paper does not say which it means.
"""

import sys
from pathlib import Path

from lmtools.base.errors import exit_with_message
from lmtools.text import MARK
from lmtools.text.subword import load_subword
from lmtools.text.subword.base import SPECIALS


def overlap(first: set[str], second: set[str]) -> float:
    """Return the pieces that both have, in per cent of the smaller vocabulary."""
    return 100 * len(first & second) / max(1, min(len(first), len(second)))


def pieces_of(directory: Path) -> set[str]:
    """Return the pieces of a vocabulary, special ids apart."""
    return set(load_subword(directory).vocabulary[len(SPECIALS) :])


def letters(pieces: set[str]) -> set[str]:
    """Return what pieces are without the mark of a word's beginning."""
    return {piece.replace(MARK, "") for piece in pieces} - {""}


def main(home: Path) -> None:
    """Print a line for each size that has both."""
    sizes = sorted(int(path.name[4:]) for path in home.glob("bpe-*") if path.name[4:].isdecimal())
    for size in sizes:
        if (home / f"unigram-{size}").is_dir():
            bpe, unigram = (pieces_of(home / f"{kind}-{size}") for kind in ("bpe", "unigram"))
            shared = f"{overlap(bpe, unigram):.1f} % ({len(bpe & unigram)} pieces)"
            bare = f"{overlap(letters(bpe), letters(unigram)):.1f} % by letters alone"
            print(f"{size} pieces: BPE and unigram share {shared}, {bare}")


if __name__ == "__main__":
    with exit_with_message():
        main(Path(sys.argv[1]))
