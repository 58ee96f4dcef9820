#!/usr/bin/env python3
"""to_ctm.py TEXT SEGMENTS CTM: the texts of utterances as a ctm of their recordings, by Kaldi's
segments, whose recordings are called RECORDING-CHANNEL, as en_4156-A.

Words are spread evenly over the segment of their utterance: a scorer that cuts words by the same
segments, as those of an stm, finds each in its own.
"""

import sys
from collections.abc import Iterator, Mapping

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.formats import kaldi_text
from lmtools.formats.checks import number


def rows(texts: Mapping[str, str], segments: Mapping[str, str], source: str) -> Iterator[str]:
    """Yield a line a word, in the order of the segments; UserError for what is no segment."""
    for utt, row in segments.items():
        fields = row.split()
        if len(fields) != 3 or "-" not in fields[0]:
            raise UserError(
                f"{source}: {utt} has {row!r}; give `utterance RECORDING-CHANNEL begin end`"
            )
        recording, _, channel = fields[0].rpartition("-")
        begin, end = (number(field, f"{source}: {utt}", "a time") for field in fields[1:])
        words = texts.get(utt, "").split()
        step = (end - begin) / max(len(words), 1)
        for place, word in enumerate(words):
            yield f"{recording} {channel} {begin + place * step:.3f} {step:.3f} {word}\n"


def main(text: str, segments: str, out: str) -> None:
    """Write the ctm; UserError for an utterance without a segment."""
    texts, times = kaldi_text.read(text), kaldi_text.read(segments)
    if unknown := [utt for utt in texts if utt not in times]:
        raise UserError(f"{segments}: has no segment of {unknown[0]!r}; give that of these texts")
    with atomic_text(out) as stream:
        stream.writelines(rows(texts, times, segments))


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
