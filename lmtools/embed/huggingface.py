"""Sentence vectors of Hugging Face models, masked, causal or plain encoders: `hf:DIR`, a local
directory.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lmtools.embed.contextual import BatchStates, ContextualEncoder, How, masked_layers, up_to
from lmtools.errors import UserError
from lmtools.score.huggingface import HuggingFace, bert_trunk, load_pretrained


def load_huggingface(
    directory: str, how: How, device="auto", precision="float32", rows=None
) -> "HuggingFaceEncoder":
    """The encoder of a local directory with config.json, weights and tokenizer; a head that
    predicts or classifies is left out.
    """
    model, tokenizer = load_pretrained(
        directory, lambda transformers, config: transformers.AutoModel, "a model with its tokenizer"
    )
    if model.config.is_encoder_decoder:
        raise UserError(
            f"hf:{directory}: a model of two texts (encoder and decoder); give an encoder or a"
            " causal model"
        )
    kind = (
        BertEncoder
        if model.config.model_type == "bert" and model.config.hidden_act == "gelu"
        else HuggingFaceEncoder
    )
    return kind(model, tokenizer, directory, how, device, precision, rows)


class HuggingFaceEncoder(ContextualEncoder, HuggingFace):
    """Tokenisation and boundary tokens are the model's own; of those without an end token, `eos` is
    the state after the last token.
    """

    def __init__(self, model, tokenizer, directory, how: How, device, precision, rows=None):
        HuggingFace.__init__(
            self, model, tokenizer, directory, device, precision, intact=False, rows=rows
        )
        self.how = how
        frame = tokenizer.build_inputs_with_special_tokens([-1])
        self.first, self.last = frame.index(-1), len(frame) - 1 - frame.index(-1)
        if how.masked and tokenizer.mask_token_id is None:
            raise UserError(
                f"hf:{directory}: its tokenizer has no mask to predict from; leave --masked out"
            )
        if how.pool == "cls" and not self.last:
            raise UserError(
                f"hf:{directory}: the first state of a left-to-right model has read nothing; use"
                " --pool eos"
            )
        self.layers = how.chosen(model.config.num_hidden_layers, f"hf:{directory}")
        self.signature |= how.signature

    def cost(self, sentence):
        width = len(sentence) + self.first + self.last
        return width * width if self.how.masked else width

    def read(self, sentences: Sequence[tuple]) -> BatchStates:
        whole = [
            torch.tensor(self.tokenizer.build_inputs_with_special_tokens(list(s)), dtype=torch.long)
            for s in sentences
        ]
        lengths = torch.tensor([len(ids) for ids in whole], device=self.device)
        ids = pad_sequence(
            whole, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0
        ).to(self.device)
        states = (
            self.from_copies(ids, lengths) if self.how.masked else self.from_intact(ids, lengths)
        )
        return BatchStates(states, lengths, self.first, self.last)

    def hidden(self, ids: Tensor, attention: Tensor) -> tuple[Tensor, ...]:
        """The states (B, T, D) of the embedding and of each layer."""
        return self.model(
            input_ids=ids, attention_mask=attention, output_hidden_states=True
        ).hidden_states

    def from_intact(self, ids: Tensor, lengths: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Each layer with its states (B, T, D)."""
        return enumerate(
            self.hidden(
                ids, (torch.arange(ids.shape[1], device=self.device) < lengths[:, None]).long()
            )
        )

    def from_copies(self, ids: Tensor, lengths: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Each chosen layer with its states (B, T, D), that of each position from a copy in which
        it alone is masked; zeros at padding.
        """
        found = {
            layer: ids.new_zeros((*ids.shape, self.model.config.hidden_size), dtype=torch.float32)
            for layer in self.layers
        }
        for row, length in enumerate(lengths.tolist()):
            which = torch.arange(length, device=self.device)
            copies = ids[row, :length].repeat(length, 1)
            copies[which, which] = self.tokenizer.mask_token_id
            states = self.hidden(copies, torch.ones_like(copies))
            for layer in self.layers:
                found[layer][row, :length] = states[layer][which, which].float()
        return iter(found.items())


class BertEncoder(HuggingFaceEncoder):
    """BERT's weights in our own masked model, which shares what the masked copies of a sentence
    have in common.
    """

    def __init__(self, model, tokenizer, directory, how, device, precision, rows=None):
        super().__init__(model, tokenizer, directory, how, device, precision, rows)
        self.trunk = bert_trunk(model).to(self.device).eval()

    def from_intact(self, ids, lengths):
        return up_to(max(self.layers), self.trunk.layer_states(ids, lengths))

    def from_copies(self, ids, lengths):
        return masked_layers(self.trunk, ids, lengths, self.tokenizer.mask_token_id, self.layers)
