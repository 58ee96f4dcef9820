"""CTranslate2: a left-to-right Transformer as a decoder of its Generator.

Its decoders have no head of dense + GELU + LayerNorm before the output matrix. The head becomes
one more layer, exactly: its attention is of zeros, and its feed-forward network gives
gelu(dense x) - x, as gelu(z) - gelu(-z) = z, so that the residual connection leaves gelu(dense x)
for the LayerNorm. The LayerNorm that ends the last real layer moves its gain and bias into the
dense matrix, so that the one after the added attention finds its input normalised already.
"""

import torch
from torch import Tensor, nn

from lmtools.base.atomic import atomic_directory
from lmtools.base.errors import UserError
from lmtools.models.checkpoint import load_model
from lmtools.models.lm import LanguageModel
from lmtools.models.outputs import Softmax
from lmtools.text.subword import BOS, EOS, SPECIALS, UNK

MARKER = "model.bin"
EPSILON = 1e-12  # of every LayerNorm


def write_ct2(directory: str, out: str) -> str:
    """Write the model in `directory` for ctranslate2.Generator(`out`), with `out`/subword; what to
    say of it. Tokens are pieces. UserError for models that CTranslate2 cannot express.
    """
    lm, subword = load_model(directory)
    refuse_unable(lm, directory)
    spec = make_spec(lm, subword.vocabulary)
    with atomic_directory(out, MARKER) as temporary:
        spec.save(str(temporary))
        subword.save_to(temporary / "subword")
    return (
        f'{out}: ctranslate2.Generator("{out}").score_batch([["<s>", *pieces, "</s>"]]); pieces are'
        f" those of {out}/subword"
    )


def refuse_unable(lm: LanguageModel, directory) -> None:
    name, config = lm.settings.model, lm.trunk.config
    if name != "causal":
        raise UserError(
            f"{directory}: CTranslate2 has no {name} language model; export a causal one"
        )
    if config.norm != "post" or config.position != "learned":
        raise UserError(
            f"{directory}: norm {config.norm}, position {config.position}; CTranslate2 takes our"
            " Transformers with arch.norm post and arch.position learned"
        )
    if not isinstance(lm.output, Softmax):
        raise UserError(
            f"{directory}: criterion {lm.settings.criterion}; CTranslate2 takes models of criterion"
            " softmax"
        )


def make_spec(lm: LanguageModel, vocabulary):
    from ctranslate2.specs import TransformerDecoderModelSpec, common_spec

    trunk, config = lm.trunk, lm.trunk.config
    spec = TransformerDecoderModelSpec.from_config(
        config.layers + 1,  # the last is the head
        config.heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = array(trunk.embedding.token.weight)
    decoder.position_encodings.encodings = array(trunk.embedding.position.weight)
    put_norm(decoder.layernorm_embedding, trunk.embedding.norm)
    for layer, block in zip(decoder.layer, trunk.blocks, strict=False):
        put_block(layer, block)
    put_head(decoder.layer[-2], decoder.layer[-1], lm)
    put(decoder.projection, lm.output.weight, lm.output.bias)
    spec.config.layer_norm_epsilon = EPSILON
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (
        SPECIALS[i] for i in (UNK, BOS, EOS)
    )
    spec.register_vocabulary(list(vocabulary))
    spec.validate()
    spec.optimize(quantization="float32")
    return spec


def put_block(layer, block: nn.Module) -> None:
    attention = layer.self_attention
    parts = block.query, block.key_value
    put(attention.linear[0], *(torch.cat([getattr(p, n) for p in parts]) for n in NAMES))
    put(attention.linear[1], block.attention.weight, block.attention.bias)
    put_norm(attention.layer_norm, block.attention_norm)
    put(layer.ffn.linear_0, block.inner.weight, block.inner.bias)
    put(layer.ffn.linear_1, block.outer.weight, block.outer.bias)
    put_norm(layer.ffn.layer_norm, block.norm)


def put_head(last, added, lm: LanguageModel) -> None:
    """Fill the `added` layer with the head, and take gain and bias from the `last` real one."""
    trunk, dim = lm.trunk, lm.trunk.width
    zero, identity = torch.zeros(dim), torch.eye(dim)
    norm, dense = trunk.blocks[-1].norm, trunk.head_dense
    attention = added.self_attention
    plain = nn.LayerNorm(dim)  # gain 1, bias 0
    put_norm(last.ffn.layer_norm, plain)
    put(attention.linear[0], torch.zeros(3 * dim, dim), torch.zeros(3 * dim))
    put(attention.linear[1], torch.zeros(dim, dim), zero)
    put_norm(attention.layer_norm, plain)
    folded = dense.weight * norm.weight
    shift = dense.weight @ norm.bias + dense.bias
    put(
        added.ffn.linear_0, torch.cat([folded, identity, -identity]), torch.cat([shift, zero, zero])
    )
    put(added.ffn.linear_1, torch.cat([identity, -identity, identity], 1), zero)
    put_norm(added.ffn.layer_norm, trunk.head_norm)


NAMES = ("weight", "bias")


def put(linear, weight: Tensor, bias: Tensor) -> None:
    linear.weight, linear.bias = array(weight), array(bias)


def put_norm(norm, ours: nn.LayerNorm) -> None:
    norm.gamma, norm.beta = array(ours.weight), array(ours.bias)


def array(tensor: Tensor):
    return tensor.detach().float().contiguous().numpy()
