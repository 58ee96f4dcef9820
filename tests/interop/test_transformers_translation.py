"""Our translation models in classes of transformers of the same form: the scores of `lmtools score`
are the loss that transformers gives.
"""

from shlex import split

import numpy as np
import pytest
import torch
from toys import sentences
from translators import random_translator

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text, scores
from lmtools.models.checkpoint import load_model
from lmtools.text.subword import BOS, EOS, PAD
from lmtools.types import Hypothesis, NBest

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; pip install -e '.[hf]'"
)
SOURCES = {f"u{n}": text for n, text in enumerate(sentences(8, 3, longest=12))}
LISTS = [NBest(utt, tuple(map(Hypothesis, sentences(6, n)))) for n, utt in enumerate(SOURCES)]


def as_pegasus(lm):
    """A pre-norm model as Pegasus: one embedding, equal positions, LayerNorm at the end."""
    trunk, c = lm.trunk, lm.trunk.config
    config = transformers.PegasusConfig(
        vocab_size=lm.size, d_model=c.dim, encoder_layers=c.layers, decoder_layers=c.decoder_layers,
        encoder_attention_heads=c.heads, decoder_attention_heads=c.heads, encoder_ffn_dim=c.ffn,
        decoder_ffn_dim=c.ffn, activation_function="gelu", scale_embedding=False,
        max_position_embeddings=c.positions, pad_token_id=PAD, eos_token_id=EOS,
        decoder_start_token_id=BOS, forced_eos_token_id=None,
    )  # fmt: skip
    theirs = transformers.PegasusForConditionalGeneration(config).eval()
    state = {
        "final_logits_bias": lm.output.bias[None],
        "lm_head.weight": lm.output.weight,
        "model.shared.weight": trunk.lookup.weight,
        **module("model.encoder.layer_norm", trunk.encoder_norm),
        **module("model.decoder.layer_norm", trunk.head_norm),
    }
    for side, blocks in (("encoder", trunk.blocks), ("decoder", [d.block for d in trunk.decoder])):
        state[f"model.{side}.embed_tokens.weight"] = trunk.lookup.weight
        state[f"model.{side}.embed_positions.weight"] = trunk.embedding.position.weight
        for number, block in enumerate(blocks):
            name = f"model.{side}.layers.{number}"
            state |= attention(f"{name}.self_attn", block)
            state |= module(f"{name}.fc1", block.inner) | module(f"{name}.fc2", block.outer)
            state |= module(f"{name}.final_layer_norm", block.norm)
    for number, layer in enumerate(trunk.decoder):
        state |= attention(f"model.decoder.layers.{number}.encoder_attn", layer.cross)
    theirs.load_state_dict(state)
    for one in theirs.modules():
        if isinstance(one, torch.nn.LayerNorm):
            one.eps = trunk.head_norm.eps
    return theirs


def attention(name: str, part) -> dict[str, torch.Tensor]:
    """The parameters of an attention and the LayerNorm before it."""
    found = module(f"{name}.q_proj", part.query) | module(f"{name}.out_proj", part.attention)
    for kind, both in part.key_value.named_parameters():
        found |= dict(
            zip((f"{name}.{half}_proj.{kind}" for half in "kv"), both.chunk(2), strict=True)
        )
    return found | module(f"{name}_layer_norm", part.attention_norm)


def module(name: str, part) -> dict[str, torch.Tensor]:
    """The weight and bias of a layer under another name."""
    return {f"{name}.{kind}": parameter for kind, parameter in part.named_parameters()}


@pytest.mark.parametrize("reverse", [False, True])
def test_scores_are_the_loss_of_transformers(tmp_path, reverse):
    directory = random_translator(tmp_path, factor=8, norm="pre", decoder_layers=2)
    lm, vocabulary = load_model(directory, pairs=True)
    theirs, expected = as_pegasus(lm), []
    jsonl.write(LISTS, tmp_path / "nbest.jsonl")
    kaldi_text.write(SOURCES, tmp_path / "source")
    command = f"score --lm {directory} --nbest {tmp_path}/nbest.jsonl --out {tmp_path}/out"
    command += f" --source {tmp_path}/source --device cpu --cache none" + " --reverse" * reverse
    assert main(split(command)) == 0
    for nbest in LISTS:
        for hyp in nbest.hyps:
            pair = (SOURCES[nbest.utt], hyp.text)[:: -1 if reverse else 1]
            read, labels = (torch.tensor([[*vocabulary.encode(text), EOS]]) for text in pair)
            with torch.inference_mode():
                loss = theirs(input_ids=read, labels=labels).loss
            expected.append(-float(loss) * labels.shape[1])
    table = scores.read(tmp_path / "out")
    found = np.concatenate([table.log_prob[nbest.utt] for nbest in LISTS])
    # theirs is a mean in float32, times the number of pieces
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.ptp(expected) > 10
