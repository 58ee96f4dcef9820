"""Models of local Hugging Face directories: what they have in common, and masked ones; those that
read left to right are in huggingface_trees.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lmtools.base.batching import count_rows
from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import HF, LMSpec
from lmtools.models.adapters import hash_adapter, merge_adapter
from lmtools.models.base import Trunk
from lmtools.models.device import (
    PRECISIONS,
    autocast,
    batch_rows,
    choose_device,
    numerics,
    resolve_precision,
)
from lmtools.models.huggingface import HuggingFaceTrunk, bert_trunk, find_frame, hash_directory
from lmtools.models.masked import Masked
from lmtools.models.outputs import Softmax
from lmtools.score.base import BatchStates, Scorer
from lmtools.version import __version__

LOGITS = 1 << 28  # logits that a pass makes at once, unless one sentence alone has more: 1 GiB
PICKED = 1 << 24  # of them in log-softmax at once


class HuggingFace(Scorer):
    """Model of transformers; tokenisation is the model's own, with its boundary tokens."""

    engines = False  # its products may be prepared ones (lmtools.models.engine)
    slides = True  # texts longer than the positions are read in windows

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        self.spec, self.device = spec, choose_device(computing.device)
        self.precision = resolve_precision(computing.precision, self.device, self.engines)
        self.rows = batch_rows(computing.rows, self.device)
        self.model, self.tokenizer = model.to(self.device).eval(), tokenizer
        self.intact, self.frame = spec.intact, find_frame(tokenizer)
        self.boundary, self.masks = tuple(map(len, self.frame)), tokenizer.mask_token_id is not None
        self.config = model.config.get_text_config()
        positions = count_positions(self.model, self.config)
        self.longest = min(positions or tokenizer.model_max_length, tokenizer.model_max_length)
        self.longest -= max(2, sum(self.boundary)) * self.slides
        self.check_ids(self.frame)
        if spec.adapter:
            merge_adapter(self.model, spec.adapter)
        self.signature = {
            "lm": f"hf-{model.config.model_type}" + ("-intact" if spec.intact else ""),
            "model": hash_directory(spec.lm.removeprefix(HF))[:16],
            **({"adapter": hash_adapter(spec.adapter)[:16]} if spec.adapter else {}),
            **numerics(self.precision, self.device, self.rows), "version": __version__,
        }  # fmt: skip

    @property
    def source(self):
        return HF + self.spec.lm.removeprefix(HF)

    def prepare(self, texts):
        if not texts:  # which the tokenizer does not take
            return []
        encoded = self.encode_texts([self.normalise(text) for text in texts])
        for text, ids in zip(texts, [] if self.slides else encoded, strict=not self.slides):
            self.check_length(text, ids, 2)
        return encoded

    def encode_texts(self, texts: Sequence[str]) -> list[tuple]:
        """Return the ids of texts as they stand, without boundary tokens."""
        rows = self.tokenizer([*texts], add_special_tokens=False)["input_ids"]
        self.check_ids(rows)
        return list(map(tuple, rows))

    def check_ids(self, rows: Sequence[Sequence[int]]) -> None:
        """Raise UserError for ids of the tokenizer that the model has no embedding of."""
        known = self.model.get_input_embeddings().weight.shape[0]
        if max((max(ids, default=-1) for ids in rows), default=-1) >= known:
            size = max(self.tokenizer.get_vocab().values()) + 1
            raise UserError(
                f"{self.source}: the tokenizer has {size} ids, the model {known}; call"
                f" model.resize_token_embeddings({size}), train the new ones and save it again, or"
                " take the tokenizer that the model was trained with"
            )

    def check_length(self, text: str, ids: Sequence[int], boundary: int) -> None:
        """Raise UserError where a text and so many boundary tokens do not fit the positions."""
        if len(ids) + boundary > self.longest:
            size = f"{len(ids)} tokens and the model {self.longest} positions"
            raise UserError(f"{self.source}: {text[:60]!r}... has {size}; drop it")

    def unknown(self, sentence):
        return np.array([token == self.tokenizer.unk_token_id for token in sentence], dtype=bool)

    def token_names(self, sentence):
        return self.tokenizer.convert_ids_to_tokens(list(sentence))

    @cached_property
    def encoder(self) -> Trunk:
        """The trunk that states are read from; a BERT is our own masked model."""
        bert = self.model.config.model_type == "bert" and self.model.config.hidden_act == "gelu"
        trunk = (bert_trunk if bert else HuggingFaceTrunk)(self.model.base_model)
        return trunk.to(self.device).eval()

    @property
    def depth(self):
        return self.encoder.depth

    def states(self, sentences, layers, masked=False):
        before, after = self.frame
        framed = [(*before, *sentence, *after) for sentence in sentences]
        # of no token at all the padding is read
        ids, attention = self.pad(framed, self.tokenizer.pad_token_id or 0, width=1)
        lengths, mask = attention.sum(1), self.tokenizer.mask_token_id if masked else None
        read = ids, lengths.clamp(min=1)
        return BatchStates(self.encoder.chosen_states(read, layers, mask), lengths)

    def pad(
        self, rows: Sequence[Sequence[int]], padding: int, width: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Return ids, right-padded to `width` or more, and what is no padding, (B, T) both."""
        width = max(width, *map(len, rows))
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        padded = [[*row, *[padding] * (width - len(row))] for row in rows]
        ids = torch.tensor(padded, dtype=torch.int64, device=self.device)
        return ids, (torch.arange(width, device=self.device) < lengths[:, None]).long()

    def logits(self, ids: Tensor, attention: Tensor | None = None) -> Tensor:
        """Return the model's logits (B, T, V) of ids (B, T)."""
        attention = torch.ones_like(ids) if attention is None else attention
        with torch.inference_mode(), autocast(self.device, self.precision):
            return self.model(input_ids=ids, attention_mask=attention).logits

    def blocks(self, count: int, width: int) -> list[slice]:
        """Divide `count` rows of `width` tokens into slices for the memory of logits."""
        size = max(1, LOGITS // (width * self.config.vocab_size))
        return [slice(begin, begin + size) for begin in range(0, count, size)]

    def pick(self, logits: Tensor, targets: Tensor) -> np.ndarray:
        """Return log p of the targets (T,) by logits (T, V), float64 (T,)."""
        size = max(1, PICKED // logits.shape[-1])
        parts = [
            part.float().log_softmax(-1).gather(-1, gold[:, None])[:, 0]
            for part, gold in zip(logits.split(size), targets.split(size), strict=True)
        ]
        return torch.cat(parts).double().cpu().numpy()


def count_positions(model, config) -> int | None:
    """Return how many tokens a model has positions for; RoBERTa's begin behind its padding."""
    table = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    positions = getattr(config, "max_position_embeddings", None)
    return positions if padding is None or not positions else positions - padding - 1


class HuggingFaceMasked(HuggingFace):
    """Pseudo-log-likelihood: each token from a copy where it alone is masked (`intact`: from one
    unmasked pass); boundary tokens count 0. BERT runs in our own masked model. What does not fit
    the positions is read in overlapping windows, each token where it has most context.
    """

    kind = "pseudo-perplexity"

    def __init__(self, model, tokenizer, spec: LMSpec, computing: Computing):
        super().__init__(model, tokenizer, spec, computing)
        self.trunk = None
        if model.config.model_type == "bert" and not self.intact:
            self.trunk, self.output = (part.to(self.device).eval() for part in from_bert(model))

    def cost(self, sentence):
        return count_rows(len(sentence), self.longest, sum(self.boundary), masked=not self.intact)

    def token_log_probs(self, sentences):
        cuts = [self.windows(sentence) for sentence in sentences]
        pairs = zip(sentences, cuts, strict=True)
        parts = [sentence[begin:end] for sentence, cut in pairs for begin, end, _, _ in cut]
        scores: list = [np.zeros(1)] * len(parts)
        for length in {len(part) for part in parts} - {0}:
            places = [i for i, part in enumerate(parts) if len(part) == length]
            found = self.score_group([parts[i] for i in places])
            for i, values in zip(places, found, strict=True):
                scores[i] = np.append(values, 0.0)
        values = iter(scores)
        return [np.concatenate([next(values)[first:last] for _, _, first, last in c]) for c in cuts]

    @torch.inference_mode()
    def score_group(self, sentences: Sequence[tuple]) -> Sequence[np.ndarray]:
        """Score the tokens of sentences of one length, (T,) each."""
        before, after = self.frame
        ids = torch.tensor([[*before, *s, *after] for s in sentences], device=self.device)
        inside = slice(len(before), len(before) + len(sentences[0]))
        if self.trunk is None:
            return [self.score_alone(row, inside) for row in ids]
        with autocast(self.device, self.precision):
            states = self.trunk.masked_states(ids, self.tokenizer.mask_token_id)[:, inside]
            heads = self.trunk.head(states.flatten(0, 1))
        heads = heads.to(PRECISIONS[self.precision])
        scores = self.output.log_prob(heads, ids[:, inside].flatten())
        return scores.view(len(sentences), -1).double().cpu().numpy()

    def score_alone(self, ids: Tensor, inside: slice) -> np.ndarray:
        """Score the tokens inside the boundaries of one sentence's ids (L,)."""
        if self.intact:
            return self.pick(self.logits(ids[None])[0, inside], ids[inside])
        which = torch.arange(inside.start, inside.stop, device=self.device)
        copies = ids.repeat(len(which), 1)
        copies[which - inside.start, which] = self.tokenizer.mask_token_id
        logits = [
            self.logits(copies[block])[torch.arange(len(which[block])), which[block]]
            for block in self.blocks(*copies.shape)
        ]
        return self.pick(torch.cat(logits), ids[inside])


def from_bert(model) -> tuple[Masked, Softmax]:
    """Return our masked model and softmax with the weights of a Hugging Face BertForMaskedLM."""
    trunk, head = bert_trunk(model.bert), model.cls.predictions
    trunk.head_dense.load_state_dict(head.transform.dense.state_dict())
    trunk.head_norm.load_state_dict(head.transform.LayerNorm.state_dict())
    output = Softmax(head.decoder.weight)  # the embedding, or one of its own
    output.bias.data.copy_(head.bias if hasattr(head, "bias") else head.decoder.bias)
    return trunk, output
