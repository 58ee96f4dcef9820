#!/usr/bin/env python3
"""train_nmt.py --pairs F.tsv... --valid F.tsv --out DIR: a small Transformer that translates, in
Marian's classes of transformers.

Pairs are `foreign<TAB>English`, a line each. One SentencePiece vocabulary is shared by both sides
and by all source languages, and one matrix by both embeddings and the output. DIR is a model
directory as opus-mt's are, which local/translate.py reads. A training that was killed goes on with
the same command. It is there to make N-best lists to rescore, not to be a good translator.
"""

import argparse
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import sentencepiece
import torch
from torch.nn import functional
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from lmtools.atomic import atomic_path, atomic_text
from lmtools.errors import UserError
from lmtools.files import read_lines

END, UNKNOWN, PAD = "</s>", "<unk>", "<pad>"
LONGEST = 100  # pieces of a side; longer pairs are left out
SMOOTHING = 0.1
BETAS, CLIP = (0.9, 0.98), 1.0
WINDOW = 100  # batches whose pairs are sorted by length together
# the last part of the steps, and of how many steps of it the weights are averaged into the model
AVERAGED, AVERAGED_EVERY = 0.25, 20
CHECKPOINT = "checkpoint.pt"

Pair = tuple[list[int], list[int]]


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    out = Path(args.out)
    train, valid = (
        [pair for path in paths for pair in read_pairs(path)]
        for paths in (args.pairs, [args.valid])
    )
    if not (out / "vocab.json").exists():
        write_vocabulary([side for pair in train for side in pair], args.vocab_size, out)
    tokenizer = MarianTokenizer.from_pretrained(out)
    model = MarianMTModel(config(args, tokenizer))
    print(
        f"{len(train):,} pairs, {sum(p.numel() for p in model.parameters()):,} parameters",
        file=sys.stderr,
    )
    fit(model, encode(tokenizer, train), encode(tokenizer, valid), args, out)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--pairs", nargs="+", required=True, metavar="F", help="training pairs")
    parser.add_argument("--valid", required=True, metavar="F", help="pairs whose loss is reported")
    parser.add_argument("--out", required=True, metavar="DIR")
    parser.add_argument("--vocab-size", type=int, default=8000, metavar="N")
    parser.add_argument("--width", type=int, default=256, metavar="N")
    parser.add_argument(
        "--layers", type=int, nargs=2, default=(3, 2), metavar="N", help="of encoder and decoder"
    )
    parser.add_argument("--steps", type=int, default=6000, metavar="N")
    parser.add_argument(
        "--batch", type=int, default=1500, metavar="N", help="English pieces of an update"
    )
    parser.add_argument(
        "--lr",
        type=float,
        default=1.5e-3,
        metavar="X",
        help="after --warmup steps; falls to 0 at --steps",
    )
    parser.add_argument("--warmup", type=int, default=500, metavar="N")
    parser.add_argument(
        "--save-every", type=int, default=500, metavar="N", help="steps between checkpoints"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    return parser.parse_args()


def read_pairs(path) -> list[tuple[str, str]]:
    """The pairs of a file; UserError for a line that is none."""
    pairs = []
    for number, line in read_lines(path):
        sides = line.split("\t")
        if len(sides) != 2 or not all(map(str.strip, sides)):
            raise UserError(
                f"{path}:{number}: not a foreign sentence, a tab and an English one; write it so"
            )
        pairs.append((sides[0], sides[1]))
    return pairs


def write_vocabulary(sentences: Sequence[str], size: int, out: Path) -> None:
    """A shared SentencePiece model and the files that Marian's tokenizer has beside it."""
    out.mkdir(parents=True, exist_ok=True)
    with atomic_path(out / "source.spm") as path, open(path, "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=stream, vocab_size=size,
            character_coverage=0.9998, model_type="unigram",
            bos_id=-1, eos_id=0, unk_id=1, hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
    with atomic_path(out / "target.spm") as path:
        path.write_bytes((out / "source.spm").read_bytes())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "source.spm"))
    ids = {pieces.id_to_piece(i): i for i in range(len(pieces))} | {PAD: len(pieces)}
    for name, tree in (
        (
            "tokenizer_config.json",
            {"source_lang": "xx", "target_lang": "en", "model_max_length": 512},
        ),
        ("vocab.json", ids),
    ):
        with atomic_text(out / name) as stream:
            json.dump(tree, stream, ensure_ascii=False)


def config(args: argparse.Namespace, tokenizer: MarianTokenizer) -> MarianConfig:
    """Marian's Transformer of the size that is asked for."""
    encoder, decoder = args.layers
    return MarianConfig(
        vocab_size=len(tokenizer), d_model=args.width, encoder_layers=encoder,
        decoder_layers=decoder,
        encoder_attention_heads=args.width // 64, decoder_attention_heads=args.width // 64,
        encoder_ffn_dim=4 * args.width,
        decoder_ffn_dim=4 * args.width, dropout=0.0, activation_function="relu",
        max_position_embeddings=512, scale_embedding=True, static_position_embeddings=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )  # fmt: skip


def encode(tokenizer: MarianTokenizer, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    """Both sides as ids, each with its end."""
    foreign = tokenizer([pair[0] for pair in pairs])["input_ids"]
    english = tokenizer(text_target=[pair[1] for pair in pairs])["input_ids"]
    return [pair for pair in zip(foreign, english, strict=True) if max(map(len, pair)) <= LONGEST]


def batches(pairs: Sequence[Pair], size: int, seed: int) -> Iterator[list[Pair]]:
    """An epoch of batches of about `size` English pieces, of like lengths, in an order that `seed`
    determines.
    """
    rng = random.Random(seed)
    order = rng.sample(range(len(pairs)), len(pairs))
    found: list[list[Pair]] = []
    window = max(1, WINDOW * size // 25)
    for start in range(0, len(order), window):
        batch: list[Pair] = []
        for i in sorted(
            order[start : start + window], key=lambda i: tuple(map(len, pairs[i][::-1]))
        ):
            if batch and (len(batch) + 1) * len(pairs[i][1]) > size:
                found.append(batch)
                batch = []
            batch.append(pairs[i])
        found.append(batch)
    rng.shuffle(found)
    yield from found


def endless(pairs: Sequence[Pair], size: int, seed: int) -> Iterator[list[Pair]]:
    """Epoch after epoch."""
    epoch = 0
    while True:
        yield from batches(pairs, size, seed + epoch)
        epoch += 1


def loss_of(
    model: MarianMTModel, batch: Sequence[Pair], smoothing: float
) -> tuple[torch.Tensor, int]:
    """The summed cross entropy of a batch, and over how many pieces."""
    pad = model.config.pad_token_id
    source, target = (
        torch.nn.utils.rnn.pad_sequence([torch.tensor(pair[side]) for pair in batch], True, pad)
        for side in (0, 1)
    )
    start = torch.full((len(batch), 1), model.config.decoder_start_token_id)
    with torch.autocast("cpu", torch.bfloat16):
        before = torch.cat([start, target[:, :-1]], 1)
        output = model(
            input_ids=source,
            attention_mask=(source != pad).long(),
            decoder_input_ids=before,
            use_cache=False,
        )
    kept = target != pad
    logits = output.logits[kept].float()  # (pieces, vocabulary)
    return functional.cross_entropy(
        logits, target[kept], label_smoothing=smoothing, reduction="sum"
    ), int(kept.sum())


def rate(step: int, args: argparse.Namespace) -> float:
    """The learning rate of `step`, from 0: up in a line, down by a cosine."""
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    return (
        args.lr
        * 0.5
        * (1 + math.cos(math.pi * (step - args.warmup) / max(1, args.steps - args.warmup)))
    )


def fit(
    model: MarianMTModel,
    train: Sequence[Pair],
    valid: Sequence[Pair],
    args: argparse.Namespace,
    out: Path,
) -> None:
    """Train, save checkpoints, and at the end the average of the last part's weights as the
    model.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=args.lr, betas=BETAS, fused=True)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    parts = {"model": model, "optimiser": optimiser, "averaged": averaged}
    step = restore(parts, out / CHECKPOINT)
    stream = itertools.islice(endless(train, args.batch, args.seed), step, None)
    begun, total, pieces = time.time(), 0.0, 0
    model.train()
    while step < args.steps:
        for group in optimiser.param_groups:
            group["lr"] = rate(step, args)
        loss, count = loss_of(model, next(stream), SMOOTHING)
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        optimiser.zero_grad()
        step, total, pieces = step + 1, total + loss.item(), pieces + count
        if step > (1 - AVERAGED) * args.steps and step % AVERAGED_EVERY == 0:
            averaged.update_parameters(model)
        if step % args.save_every == 0 or step == args.steps:
            losses = f"training loss {total / pieces:.3f}, validation {evaluate(model, valid):.3f}"
            print(
                f"step {step}: {losses}, {pieces / (time.time() - begun):.0f} pieces/s",
                file=sys.stderr,
            )
            begun, total, pieces = time.time(), 0.0, 0
            save(parts, step, out / CHECKPOINT)
    averaged.module.save_pretrained(out)


def restore(parts: dict, path: Path) -> int:
    """The step that the checkpoint in `path`, if there is one, was saved after; `parts` are as they
    were then.
    """
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return state["step"]


def save(parts: dict, step: int, path: Path) -> None:
    """A checkpoint, whole or not at all."""
    with atomic_path(path) as temporary:
        torch.save(
            {"step": step, **{name: part.state_dict() for name, part in parts.items()}}, temporary
        )


@torch.no_grad()
def evaluate(model: MarianMTModel, pairs: Sequence[Pair]) -> float:
    """Nats a piece on `pairs`, without smoothing."""
    model.eval()
    sums = [loss_of(model, batch, 0.0) for batch in batches(pairs, 1500, 0)]
    model.train()
    return sum(loss.item() for loss, _ in sums) / sum(count for _, count in sums)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"train_nmt.py: {error}")
