#!/usr/bin/env python3
"""Writes mini.json: the sizes and error rates of the mini corpus, as a whole and by voice and level
of noise.
"""

import argparse
import json
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

from mini_nbest import BEAM, DEPTH, first_pass

from lmtools.base.atomic import atomic_text
from lmtools.base.files import read_lines
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.nbest import oracle
from lmtools.formats import jsonl
from lmtools.types import NBest


def main() -> None:
    args = arguments()
    decoder = first_pass()
    figures = {
        "text": {name: text_figures(args.out / f"{name}.txt.xz") for name in ("train", "valid")},
        "sets": {
            name: set_figures(list(jsonl.read(args.out / f"{name}.nbest.jsonl.xz")), args.work)
            for name in ("dev", "test")
        },
        "lists": {"depth": DEPTH, "lattice_beam": BEAM},
        "first_pass": {"am": 1.0, "lm": decoder.scale, "words": round(decoder.penalty, 4)},
        "made_with": {"pocketsphinx": version("pocketsphinx"), "packages": args.packages},
    }
    with atomic_text(args.out / "mini.json") as out:
        out.write(json.dumps(figures, indent=1) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        help="directory of the corpus; mini.json is written there",
    )
    parser.add_argument("--work", required=True, type=Path, help="directory of UTT.hyp")
    parser.add_argument(
        "--packages",
        nargs="*",
        default=[],
        help="names and versions of the programs that were used",
    )
    return parser.parse_args()


def text_figures(path: Path) -> dict:
    lines = [line.split() for _, line in read_lines(path)]
    return {
        "lines": len(lines),
        "words": sum(map(len, lines)),
        "vocabulary": len({word for line in lines for word in line}),
    }


def set_figures(nbests: list[NBest], work: Path) -> dict:
    """Return figures of one set; an utterance's name ends in -VOICE-nNOISE."""
    groups: dict[str, dict[str, list[NBest]]] = {
        "voice": defaultdict(list),
        "noise": defaultdict(list),
    }
    for nbest in nbests:
        _, voice, noise = nbest.utt.rsplit("-", 2)
        groups["voice"][voice].append(nbest)
        groups["noise"][noise].append(nbest)
    figures = {
        nbest.utt: (work / f"{nbest.utt}.hyp").read_text(encoding="utf-8").strip()
        for nbest in nbests
    }
    same = sum(figures[nbest.utt] == nbest.hyps[0].text for nbest in nbests)
    rows = sum(METRICS["wer"].statistics(nbest.ref, [figures[nbest.utt]])[0] for nbest in nbests)
    return {
        **error_rates(nbests),
        "hypotheses": sum(len(nbest.hyps) for nbest in nbests),
        "decoder": {"wer": round(float(METRICS["wer"].score(rows)), 2), "same_as_rank_1": same},
        **{
            f"by_{kind}": {name: error_rates(group) for name, group in sorted(group.items())}
            for kind, group in groups.items()
        },
    }


def error_rates(nbests: list[NBest]) -> dict:
    """Return utterances, words, first-pass WER and oracle WER (percent)."""
    rates = oracle(nbests)
    words = sum(len(nbest.ref.split()) for nbest in nbests)
    return {
        "utterances": len(nbests),
        "words": words,
        "wer": round(float(rates[0]), 2),
        "oracle": round(float(rates[-1]), 2),
    }


if __name__ == "__main__":
    main()
