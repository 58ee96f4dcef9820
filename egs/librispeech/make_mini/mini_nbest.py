#!/usr/bin/env python3
"""Writes N-best lists of distinct word strings and pruned lattices for the utterances of a plan,
from the decoder's own lattices.

`am` is the natural-log acoustic score of the best path of the string, fillers and their penalties
included; `lm` the natural-log probability that the decoder's language model gives to the string,
with <s> and </s>. Both are unscaled. The order is by what the decoder's last pass maximises, am +
9.5 lm - 0.63 words: it weights the LM with `bestpathlw`, and the word insertion penalty `wip`,
which is inside its weighted LM score, is scaled by bestpathlw / lw.
"""

import argparse
import functools
import io
import itertools
import lzma
import math
import multiprocessing
import tarfile
from pathlib import Path

from mini_lattice import Context, Scored, pruned, read_slf
from pocketsphinx import Decoder

from lmtools.base.atomic import atomic_path
from lmtools.base.files import read_lines
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest

DEPTH = 50  # hypotheses a list
# a link of the lattice is kept when the best path over it is this near to the best path, or as near
# as the last hypothesis
BEAM = 80.0


class FirstPass:
    """What the decoder's last pass adds to the acoustic score: its language model, `scale` and
    `penalty`.
    """

    def __init__(self) -> None:
        decoder = Decoder(loglevel="FATAL")
        self.model = decoder.get_lm()
        self.unit = math.log(decoder.config["logbase"])
        self.scale = decoder.config["bestpathlw"]
        self.penalty = self.scale / decoder.config["lw"] * math.log(decoder.config["wip"])
        self.probability = functools.cache(self.query)

    def query(self, word: str, context: Context) -> float:
        """Return ln p(word | context); pocketsphinx takes the word first, then its history, most
        recent first, and answers in base 1.0001.
        """
        return (
            self.model.prob([word.lower(), *(previous.lower() for previous in context)]) * self.unit
        )

    def total(self, hyp: Hypothesis) -> float:
        return (
            hyp.scores["am"] + self.scale * hyp.scores["lm"] + self.penalty * len(hyp.text.split())
        )


@functools.cache
def first_pass() -> FirstPass:
    """Return the process's own; it cannot travel between processes."""
    return FirstPass()


def main() -> None:
    args = arguments()
    plan = [line.split("\t") for _, line in read_lines(args.plan)]
    utterances = [(name, words, args.work / f"{name}.slf") for name, _, _, words, _ in plan]
    with multiprocessing.Pool(args.jobs) as pool:
        results = list(
            pool.imap(functools.partial(convert, depth=args.depth, least=args.least), utterances)
        )
    jsonl.write([nbest for nbest, _ in results], args.nbest)
    write_archive(sorted((nbest.utt, lattice) for nbest, lattice in results), args.lattices)
    print(
        f"{args.nbest.name}: {len(results)} lists, {sum(len(nbest.hyps) for nbest, _ in results)}"
        " hypotheses"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plan", required=True, help="the plan that mini_speak.py wrote")
    parser.add_argument("--work", required=True, type=Path, help="directory of UTT.slf")
    parser.add_argument("--nbest", required=True, type=Path, help="nbest.jsonl (.xz), written here")
    parser.add_argument(
        "--lattices", required=True, type=Path, help=".tar.xz of the pruned lattices, written here"
    )
    parser.add_argument("--depth", type=int, default=DEPTH, help="hypotheses a list")
    parser.add_argument(
        "--least",
        type=float,
        default=0.0,
        help="posterior under which a link is left out: 1e-4 for voices that the decoder hardly"
        " understands, whose lattices have 20,000 links",
    )
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def convert(utterance: tuple[str, str, Path], depth: int, least: float) -> tuple[NBest, str]:
    """Return the N-best list of an utterance and its pruned lattice."""
    utt, ref, path = utterance
    decoder = first_pass()
    lattice = read_slf(path).of_posterior(least)
    scored = Scored(lattice, decoder.probability, decoder.scale, decoder.penalty)
    best = [hypothesis(*entry) for entry in itertools.islice(scored.strings(), depth)]
    # the same order, but for near ties that rounding turned
    hyps = sorted(best, key=decoder.total, reverse=True)
    through = scored.through()
    floor = min(max(through) - BEAM, decoder.total(hyps[-1]) + decoder.penalty - 1.0)
    return NBest(utt, tuple(hyps), ref), pruned(lattice, [score >= floor for score in through], utt)


def hypothesis(words: list[str], am: float, lm: float) -> Hypothesis:
    return Hypothesis(" ".join(words), {"am": round(am, 2), "lm": round(lm, 3)})


def write_archive(members: list[tuple[str, str]], path: Path) -> None:
    """Write a .tar.xz of UTT.slf files in the given order, without times and owners, so that equal
    content gives equal bytes.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for utt, text in members:
            content = text.encode()
            entry = tarfile.TarInfo(f"{utt}.slf")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    with atomic_path(path) as temporary:
        temporary.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
