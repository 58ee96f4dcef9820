"""A text that several processes tokenised and numbered, each a part: what a part leaves, and the
text of all of them, as one process has it.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_path
from lmtools.base.computing import Shard
from lmtools.base.errors import UserError
from lmtools.ngram.counts import IndexedText, index
from lmtools.ngram.disk import BLOCK, DiskArray
from lmtools.ngram.sentences import BOS, SYMBOLS, UNKNOWN, TokenisedText

WORDS = ".words.json"  # what follows the name of the ids


def write_part(texts: Sequence, tokenise: Callable, shard: Shard, out) -> dict[str, int]:
    """Write the ids, int32, of a part of texts, and the vocabulary beside it; return tallies."""
    sentences = TokenisedText(texts, tokenise, shard)
    text = index(sentences, folder=Path(out).parent)
    with atomic_path(out) as path, open(path, "wb") as stream:
        for block in text.ids.blocks():
            stream.write(block.astype("<i4").tobytes())
    with atomic_path(f"{out}{WORDS}") as path:
        path.write_text(json.dumps(text.vocabulary), encoding="utf-8")
    return {name: getattr(sentences, name) for name in ("sentences", "tokens", "reserved")}


class TextParts:
    """The parts of a text in files of `write_part`, with the sums of their tallies."""

    def __init__(self, paths: Sequence[Path], tallies: Sequence[dict[str, int]], text: str):
        self.paths, self.text = paths, text
        self.sentences, self.tokens, self.reserved = (
            sum(tally[name] for tally in tallies) for name in ("sentences", "tokens", "reserved")
        )

    def index(self, closed: bool, folder=None) -> IndexedText:
        """Return the text, of a `closed` vocabulary with UNKNOWN as its last word."""
        if not self.sentences:
            raise UserError(
                f"{self.text}: no sentence in the text; give text with one sentence a line"
            )
        numbers = {symbol: number for number, symbol in enumerate(SYMBOLS)}
        ids, occurrences = DiskArray(folder, np.int32), np.zeros(0, dtype=np.int64)
        for path in self.paths:
            words = json.loads(Path(f"{path}{WORDS}").read_text(encoding="utf-8"))
            number_of = np.array([numbers.setdefault(word, len(numbers)) for word in words])
            with open(path, "rb") as stream:
                while content := stream.read(4 * BLOCK):
                    block = number_of[np.frombuffer(content, "<i4")].astype(np.int32)
                    counted = np.bincount(block, minlength=len(numbers))
                    counted[: len(occurrences)] += occurrences
                    occurrences = counted
                    ids.append(block)
        if closed:
            numbers.setdefault(UNKNOWN, len(numbers))
        occurrences = np.pad(occurrences, (0, len(numbers) - len(occurrences)))
        occurrences[BOS] = 0
        return IndexedText(ids, list(numbers), occurrences)
