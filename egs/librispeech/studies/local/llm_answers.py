#!/usr/bin/env python3
"""llm_answers.py LM LISTS OUT [N]: what a language model answers to lists (the first N of them),
held to their words: WER of the answers as they are, beside the first of each list (OUT/answers.txt,
Kaldi text), and the lists with new answers, as `lmtools correct` writes them (OUT/more.jsonl). Of
first-pass scores these have `am` alone, which lists of any recogniser have.
"""

import sys
from dataclasses import replace
from pathlib import Path

from lmtools.base.computing import Computing
from lmtools.base.errors import exit_with_message
from lmtools.correction.lists import Corrector
from lmtools.evaluate.corpus import References
from lmtools.formats import kaldi_text, read, write
from lmtools.rescoring.features import NEAR
from lmtools.types import NBest


def main(lm: str, lists: str, out: Path, most: int | None = None) -> None:
    """Ask, write, and print both WERs."""
    nbests = read(lists)[:most]
    corrector = Corrector.open(lm, Computing(device="cpu"))
    answers, more = {}, []
    for nbest, built, text in corrector.answer(nbests):
        answers[nbest.utt] = nbest.hyps[0].text if text is None else text
        more.append(keep_total(corrector.join(nbest, built, text)))
    out.mkdir(parents=True, exist_ok=True)
    kaldi_text.write(answers, out / "answers.txt")
    write(more, out / "more.jsonl", "jsonl")
    references = References({nbest.utt: nbest.ref for nbest in nbests})
    for name, texts in (
        ("first of each list", {nbest.utt: nbest.hyps[0].text for nbest in nbests}),
        ("answers as they are", answers),
    ):
        print(f"{lists}: {name}: {references.evaluate(texts)}")
    print(*corrector.describe(), sep="\n")


def keep_total(nbest: NBest) -> NBest:
    """Return a list with the scores `am` and `near` alone."""
    kept = [{k: v for k, v in hyp.scores.items() if k in ("am", NEAR)} for hyp in nbest.hyps]
    pairs = zip(nbest.hyps, kept, strict=True)
    return replace(nbest, hyps=tuple(replace(hyp, scores=scores) for hyp, scores in pairs))


if __name__ == "__main__":
    with exit_with_message():
        main(*sys.argv[1:3], Path(sys.argv[3]), *map(int, sys.argv[4:]))
