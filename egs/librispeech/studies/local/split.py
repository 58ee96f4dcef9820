#!/usr/bin/env python3
"""split.py SET PART BEGINNING: of the references, lists and lattices in directory SET those whose
utterance ids begin so, in directory PART.
"""

import shutil
import sys
from pathlib import Path

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError, exit_with_message
from lmtools.formats import jsonl, kaldi_text


def main(whole: Path, part: Path, beginning: str) -> None:
    """See above; UserError where no utterance begins so."""
    lists = whole / "nbest.jsonl"
    kept = [nbest for nbest in jsonl.read(lists) if nbest.utt.startswith(beginning)]
    if not kept:
        raise UserError(
            f"{lists}: no utterance begins with {beginning!r}; name the beginnings of its parts in"
            " run_swbd.sh"
        )
    texts = kaldi_text.read(whole / "text").items()
    jsonl.write(kept, part / "nbest.jsonl")
    kaldi_text.write({utt: text for utt, text in texts if utt.startswith(beginning)}, part / "text")
    if (whole / "lattices").exists():
        with atomic_directory(part / "lattices", "*.slf") as folder:
            for path in (whole / "lattices").glob("*.slf"):
                if path.name.startswith(beginning):
                    shutil.copy(path, folder)
    print(f"{part}: {len(kept):,} lists of {whole}")


if __name__ == "__main__":
    with exit_with_message():
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
