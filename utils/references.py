#!/usr/bin/env python3
"""references.py LISTS.jsonl OUT: the references of N-best lists as Kaldi text."""

import sys

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.formats import jsonl


def main(lists: str, out: str) -> None:
    """Write them; UserError if a list has none."""
    with atomic_text(out) as text:
        for nbest in jsonl.read(lists):
            if nbest.ref is None:
                raise UserError(f'{lists}: utterance {nbest.utt!r} has no reference; add "ref"')
            text.write(f"{nbest.utt} {nbest.ref}\n")


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:])
