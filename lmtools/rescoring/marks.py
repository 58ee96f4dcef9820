"""Marks of N-best lists of rescored lattices: which of their scores are of which language model.

It stands in the `extra` of each list, so that it stays with lists that are taken out of a file.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from lmtools.base.errors import UserError
from lmtools.types import NBest

MARK = "rescored"  # name of the extra; its value is JSON: a signature by name of the score


def mark(nbest: NBest, signatures: Mapping[str, Mapping[str, str]]) -> NBest:
    """Mark each score in `signatures` as being of the model that it names; return the list."""
    content = json.dumps(
        {name: dict(signature) for name, signature in signatures.items()}, ensure_ascii=False
    )
    return replace(nbest, extra={**nbest.extra, MARK: content})


def read_marks(nbests: Iterable[NBest], source) -> dict[str, dict]:
    """Read the signature of each score that marks of lists name; empty where no list has a mark.

    UserError about `source` for a mark that is damaged.
    """
    signatures: dict[str, dict] = {}
    for text, utt in {
        nbest.extra[MARK]: nbest.utt for nbest in nbests if MARK in nbest.extra
    }.items():
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            tree = None
        if not (
            isinstance(tree, dict)
            and all(isinstance(signature, dict) for signature in tree.values())
        ):
            raise UserError(
                f"{source}: extra {MARK!r} of utterance {utt!r} is not what lmtools lattice rescore"
                " writes; rescore the lattices again"
            )
        signatures |= tree
    return signatures
