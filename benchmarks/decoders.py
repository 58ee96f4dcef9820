"""What a language model costs inside live decoders: pyctcdecode (needs pyctcdecode) and the
`generate` of transformers, against the decoder alone and, in pyctcdecode, against its own KenLM.

    python benchmarks/decoders.py NAME=DIR ... [--arpa F]

Letters of sentences of egs/librispeech's mini corpus with noise are decoded with a beam of 100; a
Marian-sized model with random weights writes 24 tokens with 10 beams. One thread, all in turn,
the least of the turns, milliseconds a sentence.

`--sentences 2 --turns 2`, an EPYC of two cores with other work on it: pyctcdecode 1731 alone, 1224
with its own KenLM, 3541 with our n-gram, 24472 with the causal model of the demo; `generate` 2430,
3169 with the n-gram, 2882 with the causal model.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import lmtools

LISTS = Path(__file__).parents[1] / "egs/librispeech/mini/test.nbest.jsonl.xz"
ALPHABET = ["", *"abcdefghijklmnopqrstuvwxyz'", " "]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lms", nargs="+", metavar="NAME=DIR", help="left-to-right models")
    parser.add_argument("--arpa", metavar="F", help="the n-gram again, for pyctcdecode's KenLM")
    parser.add_argument("--sentences", type=int, default=3, metavar="N")
    parser.add_argument("--turns", type=int, default=3, metavar="N")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lms = {name: lmtools.load(path) for name, _, path in (one.partition("=") for one in args.lms)}
    texts = [nbest.ref.lower() for nbest in lmtools.read(LISTS)[: args.sentences]]
    for kind, make in (("pyctcdecode", speech), ("generate", translation)):
        ways = make(lms, texts, args.arpa)
        times = {name: [] for name in ways}
        for _ in range(args.turns):
            for name, decode in ways.items():
                start = time.perf_counter()
                decode()
                times[name].append((time.perf_counter() - start) / len(texts))
        for name, found in times.items():
            print(f"{kind}\t{name}\t{1000 * min(found):.0f} ms")


def speech(lms, texts, arpa) -> dict:
    """pyctcdecode without a language model, with its own, and with ours."""
    import pyctcdecode

    from lmtools.bridges.decoders.pyctcdecode import PyctcdecodeLM

    labels = pyctcdecode.Alphabet.build_alphabet(ALPHABET)
    rng = np.random.default_rng(1)
    emissions = []
    for text in texts:
        logits = rng.normal(size=(2 * len(text), len(ALPHABET)))
        for frame, letter in enumerate(text):
            logits[2 * frame, ALPHABET.index(letter if letter in ALPHABET else " ")] += 5
            logits[2 * frame + 1, 0] += 5
        emissions.append(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    decoders = {"alone": pyctcdecode.BeamSearchDecoderCTC(labels)}
    if arpa:
        decoders["its own KenLM"] = pyctcdecode.build_ctcdecoder(ALPHABET, arpa)
    for name, lm in lms.items():
        decoders[name] = pyctcdecode.BeamSearchDecoderCTC(labels, PyctcdecodeLM(lm))
    return {
        name: lambda decoder=decoder: [decoder.decode(one) for one in emissions]
        for name, decoder in decoders.items()
    }


def translation(lms, texts, _) -> dict:
    """A beam search of transformers without and with our language models."""
    import tokenizers
    import transformers

    from lmtools.bridges.decoders.transformers import ShallowFusion

    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000, special_tokens=["<s>", "</s>"], show_progress=False
    )
    lines = [hyp.text.lower() for nbest in lmtools.read(LISTS) for hyp in nbest.hyps[:20]]
    bpe.train_from_iterator(lines, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    torch.manual_seed(1)
    config = transformers.BartConfig(
        vocab_size=len(tokenizer), d_model=512, encoder_layers=6, decoder_layers=6,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
        decoder_ffn_dim=2048, bos_token_id=0, eos_token_id=1, pad_token_id=1,
        decoder_start_token_id=0, forced_eos_token_id=None,
    )  # fmt: skip
    model = transformers.BartForConditionalGeneration(config).eval()
    sources = [tokenizer(text, return_tensors="pt") for text in texts]
    fusions = {name: [ShallowFusion(lm, tokenizer, 0.3)] for name, lm in lms.items()}

    def generate(processors) -> None:
        for source in sources:
            model.generate(
                input_ids=source["input_ids"],
                attention_mask=source["attention_mask"],
                num_beams=10,
                min_new_tokens=24,
                max_new_tokens=24,
                logits_processor=processors,
            )

    return {
        name: lambda processors=processors: generate(processors)
        for name, processors in {"alone": [], **fusions}.items()
    }


if __name__ == "__main__":
    main()
