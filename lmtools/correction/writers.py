"""Models of Hugging Face that write."""

import copy
from collections.abc import Sequence
from typing import Any

import torch

from lmtools.correction.answers import TokenWriter
from lmtools.models.device import PRECISIONS, autocast


class HuggingFaceWriter(TokenWriter):
    """Answers of a left-to-right model; a state is transformers' cache of keys and values."""

    def __init__(self, scorer: Any):
        self.tokenizer, self.model = scorer.tokenizer, scorer.model
        for weight in self.model.parameters():  # once: autocast would round them at every token
            weight.data = weight.data.to(PRECISIONS[scorer.precision])
        super().__init__(scorer)
        self.stops = frozenset([scorer.end, *self.tokenizer.all_special_ids])

    def encode(self, text):
        given = {"add_special_tokens": False, "split_special_tokens": True}
        return self.tokenizer(text, **given)["input_ids"]

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False)

    @torch.inference_mode()
    def read(self, tokens, state):
        ids = torch.tensor([list(tokens)], device=self.scorer.device)
        with autocast(self.scorer.device, self.scorer.precision):
            output = self.model(
                input_ids=ids, past_key_values=state, use_cache=True, logits_to_keep=1
            )
        return output.logits[0, -1], output.past_key_values

    def fork(self, state):
        with torch.inference_mode():
            return copy.deepcopy(state)
