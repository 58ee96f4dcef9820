"""Sentence vectors of Hugging Face models, masked, causal or plain encoders: `hf:DIR`, a local
directory.
"""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from lmtools.computing import Computing
from lmtools.embed.contextual import BatchStates, ContextualEncoder, PoolingOptions
from lmtools.models.huggingface import HuggingFaceTrunk, bert_trunk
from lmtools.score.huggingface import HuggingFace
from lmtools.score.pretrained import load_pretrained
from lmtools.specs import HF, LMSpec


def load_huggingface(
    lm: str, pooling: PoolingOptions, computing: Computing
) -> "HuggingFaceEncoder":
    """Load the encoder of `hf:DIR`, a local directory with config.json, weights and tokenizer; a
    head that predicts or classifies is left out.
    """
    model, tokenizer = load_pretrained(
        lm.removeprefix(HF),
        lambda transformers, config: transformers.AutoModel,
        "a model with its tokenizer",
        whole=False,
    )
    return HuggingFaceEncoder(model, tokenizer, LMSpec(lm), pooling, computing)


class HuggingFaceEncoder(HuggingFace, ContextualEncoder):
    """Tokenisation and boundary tokens are the model's own; of those without an end token, `eos` is
    the state after the last token. A BERT's weights stand in our own masked model, which shares
    what the masked copies of a sentence have in common.
    """

    def __init__(
        self, model, tokenizer, spec: LMSpec, pooling: PoolingOptions, computing: Computing
    ):
        HuggingFace.__init__(self, model, tokenizer, spec, computing)
        bert = model.config.model_type == "bert" and model.config.hidden_act == "gelu"
        trunk = (bert_trunk if bert else HuggingFaceTrunk)(model).to(self.device).eval()
        self.first, self.last = map(len, self.frame)
        masks = tokenizer.mask_token_id is not None
        self.take_trunk(trunk, pooling, f"hf:{self.directory}", masks, self.last > 0)
        self.signature |= pooling.signature

    def cost(self, sentence):
        width = len(sentence) + self.first + self.last
        return width * width if self.pooling.masked else width

    def read(self, sentences: Sequence[tuple]) -> BatchStates:
        before, after = self.frame
        whole = [torch.tensor([*before, *s, *after], dtype=torch.long) for s in sentences]
        lengths = torch.tensor([len(ids) for ids in whole], device=self.device)
        ids = pad_sequence(
            whole, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0
        ).to(self.device)
        states = self.chosen_states((ids, lengths), self.tokenizer.mask_token_id)
        return BatchStates(states, lengths, self.first, self.last)
