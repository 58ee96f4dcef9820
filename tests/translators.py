"""Tiny translation models that several tests use."""

import json
from pathlib import Path

import numpy as np
import torch
from toys import ARCH, WORDS, sentences, settings

from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.text import Normaliser
from lmtools.text.subword import EOS, train


def random_translator(home, words=WORDS, criterion="softmax", factor=4, **arch) -> Path:
    """A directory of a model with random weights, large enough that scores are far from even."""
    vocabulary = train("word", [" ".join(words)], None, Normaliser(), home / "words")
    output = {"samples": 8} if criterion in SAMPLED else {}
    arch = {**ARCH["seq2seq"], **arch}
    how = settings("seq2seq", arch=arch, criterion=criterion, output=output)
    torch.manual_seed(4)
    lm = LanguageModel(how, vocabulary.size, np.arange(1, vocabulary.size + 1))
    with torch.no_grad():
        for parameter in lm.trunk.parameters():
            parameter.mul_(factor)
        lm.output.bias[EOS] += 2  # so that some hypotheses of a search end before they must
    prepare_directory(home / "lm", how, vocabulary)
    save_weights(home / "lm", lm)
    return home / "lm"


def random_marian(home, width=32) -> Path:
    """A MarianMTModel's directory with random weights and a tokenizer for toys' sentences."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel

    home.mkdir(parents=True, exist_ok=True)
    with open(home / "source.spm", "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences(300, 1)), model_writer=stream, vocab_size=60,
            model_type="unigram", bos_id=-1, eos_id=0, unk_id=1, hard_vocab_limit=False,
            minloglevel=2,
        )  # fmt: skip
    (home / "target.spm").write_bytes((home / "source.spm").read_bytes())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(home / "source.spm"))
    ids = {pieces.id_to_piece(i): i for i in range(len(pieces))} | {"<pad>": len(pieces)}
    (home / "vocab.json").write_text(json.dumps(ids))
    tree = {"source_lang": "xx", "target_lang": "en", "model_max_length": 64}
    (home / "tokenizer_config.json").write_text(json.dumps(tree))
    config = MarianConfig(
        vocab_size=len(ids), d_model=width, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=2 * width,
        decoder_ffn_dim=2 * width, activation_function="swish", max_position_embeddings=64,
        scale_embedding=True, pad_token_id=len(pieces), eos_token_id=0, forced_eos_token_id=0,
        decoder_start_token_id=len(pieces),
    )  # fmt: skip
    torch.manual_seed(0)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(0, 0.3)
        model.final_logits_bias.normal_()
    model.save_pretrained(home)
    return home
