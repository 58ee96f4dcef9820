"""minicons and lmtools score the same hypotheses with the same BERT of random weights, in turns;
prints rates, ratio and difference.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from minicons import scorer as minicons

from lmtools.base.computing import Computing
from lmtools.base.files import read_lines
from lmtools.score import load, score_texts

NBEST = Path(__file__).parent.parent / "egs/librispeech/mini/test.nbest.jsonl.xz"
SIZE = {
    "num_hidden_layers": 3,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "vocab_size": 30_522,
}


def vocabulary(texts: list[str], size: int) -> list[str]:
    """A WordPiece list of `size`: specials, characters, the words of `texts`, and unused
    fillers.
    """
    characters = sorted(set("".join(texts)) - {" "})
    words = sorted({word for text in texts for word in text.split()} - set(characters))
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *characters,
        *("##" + c for c in characters),
        *words,
    ]
    return [*pieces, *(f"[unused{i}]" for i in range(size - len(pieces)))][:size]


def make_model(directory: str, texts: list[str]) -> None:
    """Save a BERT with random weights and its tokenizer."""
    vocab = Path(directory) / "vocab.txt"
    vocab.write_text("\n".join(vocabulary(texts, SIZE["vocab_size"])) + "\n")
    transformers.BertTokenizerFast(str(vocab), do_lower_case=True).save_pretrained(directory)
    torch.manual_seed(0)
    transformers.BertForMaskedLM(
        transformers.BertConfig(**SIZE, initializer_range=0.05)
    ).save_pretrained(directory)


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--nbest",
        default=NBEST,
        help="nbest.jsonl to take hypotheses from (default: the mini corpus's test set)",
    )
    parser.add_argument("--hypotheses", type=int, default=500)
    parser.add_argument(
        "--batch",
        type=int,
        nargs="+",
        default=[1, 8],
        help="sentences a call for minicons; its best counts",
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    lists = [json.loads(line)["hyps"] for _, line in read_lines(args.nbest)]
    texts = [
        hyp["text"].lower() for rank in range(50) for hyps in lists for hyp in hyps[rank : rank + 1]
    ][: args.hypotheses]
    with tempfile.TemporaryDirectory() as directory:
        make_model(directory, texts)
        computing = Computing("cpu", cache="none")
        peer, ours = minicons.MaskedLMScorer(directory, "cpu"), load(f"hf:{directory}", computing)

        def by_minicons(batch: int) -> np.ndarray:
            parts = (texts[i : i + batch] for i in range(0, len(texts), batch))
            return np.array(
                [
                    s
                    for part in parts
                    for s in peer.sequence_score(part, reduction=lambda x: x.sum(0).item())
                ]
            )

        def by_lmtools() -> np.ndarray:
            return score_texts(texts, ours, computing).log_prob

        runs = {
            f"minicons, {batch} a call": lambda batch=batch: by_minicons(batch)
            for batch in args.batch
        } | {"lmtools": by_lmtools}
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        scores = {}
        for turn in range(args.turns):
            for name, run in runs.items():
                begin = time.perf_counter()
                scores[name] = run()
                seconds[name].append(time.perf_counter() - begin)
                print(f"turn {turn + 1}: {name}: {seconds[name][-1]:.1f} s", file=sys.stderr)
    print_figures(args, texts, seconds, scores)


def print_figures(args: argparse.Namespace, texts: list[str], seconds: dict, scores: dict) -> None:
    """Print rates, ratios and the greatest difference of `scores`, by program, as `seconds` are."""
    medians = {name: statistics.median(s) for name, s in seconds.items()}
    words = statistics.mean(len(text.split()) for text in texts)
    print(
        f"BERT of 3 x 512, {SIZE['vocab_size']} pieces, {len(texts)} hypotheses of {words:.1f}"
        f" words, {args.threads} thread(s), float32"
    )
    for name, value in medians.items():
        print(f"{name}: {len(texts) / value:.1f} hypotheses a second (median of {args.turns})")
    peers = [name for name in seconds if name != "lmtools"]
    ratios = [
        min(seconds[name][turn] for name in peers) / seconds["lmtools"][turn]
        for turn in range(args.turns)
    ]
    print(
        f"lmtools is {statistics.median(ratios):.1f} times as fast (by turn:"
        f" {', '.join(f'{r:.1f}' for r in ratios)})"
    )
    print(
        "greatest difference of a score:"
        f" {max(np.abs(scores[name] - scores['lmtools']).max() for name in peers):.1e}"
    )


if __name__ == "__main__":
    main()
