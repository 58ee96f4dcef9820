#!/usr/bin/env python3
"""translate.py --model DIR --source F --out F.jsonl: N-best lists of a Marian model of Hugging Face
(opus-mt); those of a model of ours are made by `lmtools translate`.

--source and --reference are Kaldi text of the same ids. Hypotheses stand in the beam search's own
order and have two scores: `am`, the sum of the natural-log probabilities of their pieces with the
end, and `norm`, that sum divided by their number to the power of --length-penalty, which the search
ranks by. --pieces keeps each piece and its log-probability as
extras. Hypotheses of equal text are one, with the better score. What was translated before a kill
is in OUT.part, and the same command goes on from there.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from transformers import MarianMTModel, MarianTokenizer

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError
from lmtools.formats import jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest

CHUNK = 32  # batches that are sorted by length together, and written together
DIGITS = 4


def main() -> None:
    args = arguments()
    texts = kaldi_text.read(args.source)
    references = kaldi_text.read(args.reference) if args.reference else {}
    if args.reference and (lacking := [utt for utt in texts if utt not in references]):
        raise UserError(
            f"{args.reference}: no reference of {lacking[0]!r}, which {args.source} has; add it"
        )
    utts, sources = list(texts), list(texts.values())
    model, tokenizer, device = load(args)
    part = Path(f"{args.out}.part")
    done = begun(
        part,
        json.dumps({"sources": hashlib.sha256(repr(texts).encode()).hexdigest(), **vars(args)}),
    )
    with open(part, "a", encoding="utf-8") as stream:
        for start in range(done, len(sources), CHUNK * args.batch):
            end = min(len(sources), start + CHUNK * args.batch)
            lists = translated(model, tokenizer, sources[start:end], args, device)
            for i, hyps in zip(range(start, end), lists, strict=True):
                nbest = NBest(utts[i], hyps, references.get(utts[i]), {"source": sources[i]})
                stream.write(json.dumps(jsonl.as_tree(nbest), ensure_ascii=False) + "\n")
            stream.flush()
            print(f"{args.out}: {end} of {len(sources)} sentences", file=sys.stderr)
    with atomic_text(args.out) as stream:
        stream.write(part.read_text(encoding="utf-8").split("\n", 1)[1])
    part.unlink()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="DIR",
        help="a directory with Marian's model and tokenizer",
    )
    parser.add_argument(
        "--source", required=True, metavar="F", help="foreign sentences, an id and text a line"
    )
    parser.add_argument("--reference", metavar="F", help="their translations")
    parser.add_argument("--out", required=True, metavar="F.jsonl")
    parser.add_argument(
        "--beam",
        type=int,
        default=50,
        metavar="N",
        help="width of the search, and hypotheses a list",
    )
    parser.add_argument("--length-penalty", type=float, default=1.0, metavar="X")
    parser.add_argument(
        "--batch", type=int, default=8, metavar="N", help="sentences searched at once"
    )
    parser.add_argument(
        "--pieces", action="store_true", help="keep pieces and their log-probabilities"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda ...")
    return parser.parse_args()


def load(args: argparse.Namespace) -> tuple[MarianMTModel, MarianTokenizer, str]:
    """Return the model in evaluation mode on the device, and its tokenizer."""
    if not (Path(args.model) / "config.json").exists():
        raise UserError(
            f"{args.model}: no config.json; give a directory with a Marian model, as opus-mt's"
        )
    device = (
        ("cuda" if torch.cuda.is_available() else "cpu") if args.device == "auto" else args.device
    )
    model = MarianMTModel.from_pretrained(args.model, local_files_only=True).to(device).eval()
    return model, MarianTokenizer.from_pretrained(args.model, local_files_only=True), device


def begun(part: Path, settings: str) -> int:
    """Return how many lists an earlier run of the same command left in `part`; the file is begun
    anew where there is none of it.
    """
    kept = part.read_text(encoding="utf-8").split("\n") if part.exists() else [""]
    if kept[0] != settings:
        part.parent.mkdir(parents=True, exist_ok=True)
        kept = [settings, ""]
    whole = kept[:-1]  # what follows the last line's end was cut short
    part.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    return len(whole) - 1


def translated(
    model, tokenizer, sources: Sequence[str], args, device: str
) -> list[tuple[Hypothesis, ...]]:
    """Return the lists of `sources`, in their order; searched in order of length, so that little is
    padded.
    """
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    lists: dict[int, tuple[Hypothesis, ...]] = {}
    for start in range(0, len(order), args.batch):
        places = order[start : start + args.batch]
        lists.update(
            zip(
                places,
                search(model, tokenizer, [sources[i] for i in places], args, device),
                strict=True,
            )
        )
    return [lists[i] for i in range(len(sources))]


@torch.inference_mode()
def search(
    model, tokenizer, sources: Sequence[str], args, device: str
) -> Iterator[tuple[Hypothesis, ...]]:
    """Yield the list of each sentence of a batch."""
    inputs = tokenizer(list(sources), return_tensors="pt", padding=True, truncation=True).to(device)
    longest = min(model.config.max_position_embeddings - 1, 2 * inputs["input_ids"].shape[1] + 10)
    output = model.generate(
        **inputs,
        num_beams=args.beam,
        num_return_sequences=args.beam,
        length_penalty=args.length_penalty,
        max_new_tokens=longest,
        max_length=None,
        do_sample=False,
        early_stopping=False,
    )[:, 1:]  # (sentences * beam, pieces), without the start
    states = model.get_encoder()(**inputs, return_dict=True)
    for i in range(len(sources)):
        rows = output[i * args.beam : (i + 1) * args.beam]
        row = slice(i, i + 1)
        values = log_probs(
            model, states.last_hidden_state[row], inputs["attention_mask"][row], rows
        )
        yield tuple(hypotheses(tokenizer, rows, values, args))


def log_probs(model, states: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return the natural-log probability of each piece (beam, pieces) given the sentence's encoder
    states (1, source, D); 0 at padding.
    """
    pad, beam = model.config.pad_token_id, len(rows)
    begin = torch.full((beam, 1), model.config.decoder_start_token_id, device=rows.device)
    encoded = (states.expand(beam, -1, -1),)
    before = torch.cat([begin, rows[:, :-1]], 1)
    logits = model(
        encoder_outputs=encoded,
        attention_mask=mask.expand(beam, -1),
        decoder_input_ids=before,
        use_cache=False,
    ).logits
    logits[..., pad] = -torch.inf  # as the search has it
    values = logits.float().log_softmax(-1).gather(2, rows[..., None])[..., 0]
    return values.masked_fill(rows == pad, 0.0)


def hypotheses(tokenizer, rows: torch.Tensor, values: torch.Tensor, args) -> Iterator[Hypothesis]:
    """Yield the hypotheses of one list, those of equal text as one, in the order of `norm`."""
    best: dict[str, tuple[float, float, int]] = {}
    texts = tokenizer.batch_decode(rows, skip_special_tokens=True)
    for i, text in enumerate(texts):
        length = int((rows[i] != tokenizer.pad_token_id).sum())
        total = float(values[i].sum())
        norm = total / max(1, length) ** args.length_penalty
        text = " ".join(text.split())
        if text not in best or norm > best[text][0]:
            best[text] = norm, total, i
    for text, (norm, total, i) in sorted(best.items(), key=lambda item: -item[1][0]):
        kept = rows[i] != tokenizer.pad_token_id
        extra = {}
        if args.pieces:
            extra["pieces"] = " ".join(tokenizer.convert_ids_to_tokens(rows[i][kept]))
            extra["piece_scores"] = " ".join(
                f"{value:.{DIGITS}f}" for value in values[i][kept].tolist()
            )
        yield Hypothesis(text, {"am": round(total, DIGITS), "norm": round(norm, DIGITS)}, extra)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"translate.py: {error}")
