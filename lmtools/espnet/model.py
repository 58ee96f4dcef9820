"""A left-to-right language model over ESPnet's tokens, with the methods by which ESPnet's beam
searches ask for scores.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lmtools.config import build
from lmtools.errors import UserError
from lmtools.espnet.tokens import NEVER
from lmtools.lm import LanguageModel
from lmtools.settings import Settings
from lmtools.subword import BOS, EOS, UNK
from lmtools.windows import tokens_kept

IMPOSSIBLE = -1e10  # ESPnet's own log(0)


class PrefixTree:
    """The prefixes that an utterance's search has read: the model's memory, and the state (1, D)
    after the beginning of sentence.
    """

    def __init__(self, lm: LanguageModel):
        self.memory = lm.trunk.memory()
        self.begin = self.memory.grow(np.array([-1]), np.array([BOS]))
        self.rows = 1

    def grow(self, parents: list[int], tokens: list[int]) -> Tensor:
        """Read tokens after the rows `parents`; the states (B, D)."""
        self.rows += len(parents)
        return self.memory.grow(np.array(parents), np.array(tokens))


class Prefix(NamedTuple):
    """A scorer state: a row of the memory, how many of ESPnet's tokens it stands for, and how many
    inputs the model has read for it.
    """

    tree: PrefixTree
    row: int
    read: int
    depth: int


class TokenLM(nn.Module):
    """The model of `settings` over ESPnet's `vocab_size` tokens, the last of which is <sos/eos>;
    ESPnet loads the weights afterwards.

    `ids` says which of our `size` ids each token is. Tokens that share an id share its score; one
    of id NEVER is impossible. Scores are those of `lmtools score` as far as the prefix fits the
    model's positions; beyond, the model forgets the older half of the prefix.
    """

    def __init__(self, vocab_size: int, settings: dict, size: int, ids: Sequence[int]):
        super().__init__()
        if len(ids) != vocab_size:
            raise UserError(
                f"lm_conf: {len(ids)} ids for {vocab_size} tokens; export the model again"
            )
        self.model = LanguageModel(build(Settings, settings, "lm_conf.settings"), size)
        written = torch.tensor(ids)
        # <sos/eos> is only read at the beginning
        read = torch.where(written == NEVER, UNK, torch.where(written == EOS, BOS, written))
        for name, table in (
            ("written", written.clamp(min=0)),
            ("read", read),
            ("never", written == NEVER),
        ):
            self.register_buffer(name, table, persistent=False)
        self.read_list = read.tolist()
        self.positions = self.model.trunk.positions
        self.loaded = False
        self.register_load_state_dict_post_hook(TokenLM.check_loaded)

    def check_loaded(self, incompatible) -> None:
        """Refuse weights of another model, which ESPnet would let pass."""
        if names := [*incompatible.missing_keys, *incompatible.unexpected_keys]:
            raise UserError(
                f"--lm_file: does not fit --lm_train_config (first {names[0]}); give both files of"
                " one export"
            )
        self.loaded = True

    def forward(self, input: Tensor, hidden: Any) -> tuple[Tensor, Any]:
        """log p of the token after each prefix, float32 (B, T, V), for tokens (B, T) that begin
        with <sos/eos>; `hidden` comes back.
        """
        if input.shape[1] > self.positions:
            raise UserError(
                f"a text of {input.shape[1] - 1} tokens is longer than the {self.model.longest}"
                " that the language model reads"
            )
        lengths = torch.full((len(input),), input.shape[1], device=input.device)
        return self.log_probs(self.model.trunk.hidden(self.read[input], lengths)), hidden

    def log_probs(self, states: Tensor) -> Tensor:
        """log p of ESPnet's tokens (..., V) in the model's states (..., D)."""
        if not self.loaded:
            raise UserError(
                "the language model has no weights; give --lm_file beside --lm_train_config"
            )
        heads = self.model.trunk.head(states)
        scores = self.model.output.distribution(heads.flatten(0, -2))[:, self.written]
        return scores.masked_fill(self.never, IMPOSSIBLE).unflatten(0, heads.shape[:-1])

    def score(self, y: Tensor, state: Prefix | None, x: Any) -> tuple[Tensor, Prefix]:
        """log p (V,) of the token after the prefix `y` (T,) and the state to go on from; `state` is
        what came of a shorter prefix.
        """
        scores, states = self.batch_score(y[None], [state], x)
        return scores[0], states[0]

    @torch.no_grad()
    def batch_score(
        self, ys: Tensor, states: list[Prefix | None], xs: Any
    ) -> tuple[Tensor, list[Prefix]]:
        """The same of several prefixes of one utterance, (B, T) to (B, V)."""
        tree = states[0].tree if states[0] else PrefixTree(self.model)
        parents, tokens, longer = [], [], []
        for y, state in zip(ys.tolist(), states, strict=True):
            row, depth, unread = self.unread(y, state)
            for token in unread:
                parents.append(row)
                tokens.append(token)
                row = tree.rows + len(parents) - 1
            longer.append(Prefix(tree, row, len(y), depth + len(unread)))
        first = tree.rows
        if not parents:
            return self.log_probs(tree.begin).expand(len(ys), -1), longer
        hidden = tree.grow(parents, tokens)
        return self.log_probs(hidden[[prefix.row - first for prefix in longer]]), longer

    def unread(self, y: list[int], state: Prefix | None) -> tuple[int, int, list[int]]:
        """From which row to go on, how many inputs it has read, and the ids to read then."""
        row, read, depth = state[1:] if state else (0, 1, 1)
        ids = [self.read_list[token] for token in y[read:]]
        if depth + len(ids) <= self.positions:
            return row, depth, ids
        kept = tokens_kept(self.model.longest) + 1
        return 0, 1, [self.read_list[token] for token in y[1:]][-kept:]
