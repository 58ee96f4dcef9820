"""Pairs a second that translation models score, of the hypotheses of lists given their sources and
the other way round: lmtools with a model of Marian's (hf:DIR), a plain loop of transformers over
the same weights, and lmtools with a model of ours of the same size and random weights; prints JSON
and a table.

The plain loop takes pairs in the order of the lists, `--batch` at once, padded by the tokenizer,
each with its own copy of the source, and sums the loss of each from the logits. With 50 at once, as
many as a list has, it pads no source. Its scores must be lmtools' within 1e-3, in bfloat16, which
lmtools takes where `--precision auto` finds instructions for it and the loop does not, within 1.
For the direction source given hypothesis the same model reads the sides exchanged.

One thread, seconds of processor time, all in turns in one process, median of the turns. Each begins
with text and ends with scores in memory; loading does not count, and no cache is used. Any weights
take the same time: without `--lm` they are random, and the vocabulary is of the lists' text.
"""

import argparse
import itertools
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import sentencepiece
import torch
from measures.machine import describe_machine
from torch.nn import functional as F
from transformers import MarianConfig, MarianMTModel

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.formats import jsonl
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.score import load, score_texts
from lmtools.score.huggingface_trees import HuggingFaceTranslation, split
from lmtools.score.translation import TranslationScorer
from lmtools.text.subword import EOS, SPECIALS

NEAR = {"float32": 1e-3, "bfloat16": 1.0}

Pair = tuple[str, str]


class Ids:
    """A vocabulary that is its size."""

    hash = "0" * 16


class Own(TranslationScorer):
    """A model of ours of the size of Marian's, which reads the pieces of its tokenizer."""

    def __init__(self, like: HuggingFaceTranslation, precision: str):
        c = like.config
        arch = {
            "layers": c.encoder_layers, "decoder_layers": c.decoder_layers, "dim": c.d_model,
            "heads": c.decoder_attention_heads, "ffn": c.decoder_ffn_dim,
            "positions": c.max_position_embeddings,
        }  # fmt: skip
        lm = LanguageModel(
            Settings("seq2seq", "translation", arch=arch), c.vocab_size + len(SPECIALS)
        )
        super().__init__(lm, Ids(), Ids.hash, "cpu", precision)
        self.like = like

    def prepare(self, texts):
        sides = [split(sentence) for sentence in self.like.prepare(texts)]
        pairs = [[[i + len(SPECIALS) for i in side] for side in pair] for pair in sides]
        return [(*source[:-1], EOS, *target) for source, target in pairs]

    def unknown(self, sentence):
        return np.zeros(len(sentence) - 1 - sentence.index(EOS), dtype=bool)


@torch.inference_mode()
def plain(scorer: HuggingFaceTranslation, pairs: list[Pair], size: int) -> np.ndarray:
    """The scores (N,) as one writes them with transformers."""
    model, tokenizer, result = scorer.model, scorer.tokenizer, []
    for begin in range(0, len(pairs), size):
        sources, targets = zip(*pairs[begin : begin + size], strict=True)
        made = tokenizer(
            list(sources), text_target=list(targets), padding=True, return_tensors="pt"
        )
        labels = made["labels"].masked_fill(made["labels"] == tokenizer.pad_token_id, -100)
        logits = model(
            input_ids=made["input_ids"], attention_mask=made["attention_mask"], labels=labels
        ).logits
        losses = F.cross_entropy(logits.mT, labels, reduction="none")  # 0 where labels are -100
        result.append(-losses.sum(1))
    return torch.cat(result).double().numpy()


def write_random(home: Path, texts: Iterable[str], width: int, layers: Sequence[int]) -> None:
    """A directory of Marian's classes: pieces of these texts, random weights."""
    with open(home / "source.spm", "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=stream, vocab_size=6000, eos_id=0, unk_id=1,
            bos_id=-1, hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
    shutil.copy(home / "source.spm", home / "target.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(home / "source.spm"))
    pad = len(pieces)
    names = {pieces.id_to_piece(i): i for i in range(pad)} | {"<pad>": pad}
    (home / "vocab.json").write_text(json.dumps(names))
    tree = {"source_lang": "xx", "target_lang": "en", "model_max_length": 512}
    (home / "tokenizer_config.json").write_text(json.dumps(tree))
    heads, ffn = width // 64, 4 * width
    config = MarianConfig(
        vocab_size=pad + 1, d_model=width, encoder_layers=layers[0], decoder_layers=layers[1],
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=ffn,
        decoder_ffn_dim=ffn, max_position_embeddings=512, pad_token_id=pad, eos_token_id=0,
        forced_eos_token_id=0, decoder_start_token_id=pad,
    )  # fmt: skip
    torch.manual_seed(0)
    MarianMTModel(config).save_pretrained(home)


def ours(scorer, pairs: list[Pair]) -> np.ndarray:
    """The scores (N,) of a scorer of lmtools."""
    return score_texts(pairs, scorer, Computing(cache="none")).log_prob


def parse_arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    about = "a directory of Marian's classes, as opus-mt's; without it random weights"
    parser.add_argument("--lm", metavar="DIR", help=about)
    about = "of random weights (default: %(default)s)"
    parser.add_argument("--width", type=int, default=256, metavar="N", help=about)
    about = "of encoder and decoder (default: 3 2)"
    parser.add_argument("--layers", type=int, nargs=2, default=(3, 2), metavar="N", help=about)
    about = "N-best lists with `source`, as egs/wmt13/mini has"
    parser.add_argument("--nbest", required=True, metavar="F.jsonl", help=about)
    parser.add_argument("--lists", type=int, default=20, metavar="N", help="(default: %(default)s)")
    about = "pairs of the plain loop (default: %(default)s)"
    parser.add_argument("--batch", type=int, default=50, metavar="N", help=about)
    about = "of lmtools: float32, bfloat16 or auto (default: %(default)s)"
    parser.add_argument("--precision", default="float32", help=about)
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="(default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Compare, measure and print."""
    args = parse_arguments()
    torch.set_num_threads(1)
    lists = list(itertools.islice(jsonl.read(args.nbest), args.lists))
    if any("source" not in nbest.extra for nbest in lists):
        raise UserError(f"{args.nbest}: no sources in it; give lists of lmtools translate")
    direct = [(nbest.extra["source"], hyp.text) for nbest in lists for hyp in nbest.hyps]
    with tempfile.TemporaryDirectory() as made:
        home = Path(args.lm or made)
        if not args.lm:
            write_random(home, itertools.chain(*direct), args.width, args.layers)
        scorer, exact = (
            load(LMSpec(f"hf:{home}", pairs=True), Computing("cpu", precision))
            for precision in (args.precision, "float32")
        )
    own = Own(scorer, args.precision)
    directions = {"direct": direct, "reverse": [pair[::-1] for pair in direct]}
    kinds: dict[str, Callable] = {
        "transformers": lambda pairs: plain(exact, pairs, args.batch),
        "lmtools hf:": lambda pairs: ours(scorer, pairs),
        "lmtools seq2seq": lambda pairs: ours(own, pairs),
    }
    figures: dict = {"lists": len(lists), "pairs": len(direct), "batch": args.batch}
    rows = []
    for name, pairs in directions.items():
        near = NEAR[scorer.precision]
        np.testing.assert_allclose(ours(scorer, pairs), plain(exact, pairs, args.batch), atol=near)
        turns = [
            {kind: timed(call, pairs) for kind, call in kinds.items()} for _ in range(args.turns)
        ]
        figures[name] = {"turns": turns}
        for kind in kinds:
            seconds = statistics.median(turn[kind] for turn in turns)
            ratio = statistics.median(turn["transformers"] / turn[kind] for turn in turns)
            figures[name][kind] = {"pairs_per_second": len(pairs) / seconds, "times": ratio}
            rows.append(f"| {name} | {kind} | {len(pairs) / seconds:,.0f} | {ratio:.2f} |")
    figures["parameters"] = sum(one.numel() for one in scorer.model.parameters())
    print(json.dumps(figures | {"machine": describe_machine(torch.device("cpu"))}, indent=1))
    print("\n| | | pairs/s | times transformers |\n|---|---|---:|---:|", *rows, sep="\n")


def timed(call: Callable, pairs: list[Pair]) -> float:
    """Seconds of processor time until all scores are there."""
    begin = time.process_time()
    call(pairs)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
