"""A left-to-right language model over ESPnet's tokens, with the methods by which ESPnet's beam
searches ask for scores.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lmtools.base.config import build
from lmtools.base.errors import UserError
from lmtools.bridges.espnet.export import NEVER
from lmtools.models.lm import LanguageModel
from lmtools.models.memory import TokenTree
from lmtools.models.settings import Settings
from lmtools.text.subword import BOS, EOS, UNK

IMPOSSIBLE = -1e10  # ESPnet's own log(0)


class Prefix(NamedTuple):
    """A scorer state: a node of a tree, and how many of ESPnet's tokens it stands for."""

    tree: TokenTree
    node: int
    read: int


class TokenLM(nn.Module):
    """The model of `settings` over ESPnet's tokens, the last of which is <sos/eos>. `ids` says
    which of our `size` ids each is; NEVER is impossible. Beyond the model's positions it forgets
    the older half of the prefix.
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
        if names := [*incompatible.missing_keys, *incompatible.unexpected_keys]:
            raise UserError(
                f"--lm_file: does not fit --lm_train_config (first {names[0]}); give both files of"
                " one export"
            )
        self.loaded = True

    def forward(self, input: Tensor, hidden: Any) -> tuple[Tensor, Any]:
        """Return log p (B, T, V) of the token after each prefix (B, T); `hidden` comes back."""
        if input.shape[1] > self.positions:
            raise UserError(
                f"a text of {input.shape[1] - 1} tokens is longer than the {self.model.longest}"
                " that the language model reads"
            )
        lengths = torch.full((len(input),), input.shape[1], device=input.device)
        states = self.model.trunk.hidden(self.read[input], lengths)
        return self.log_probs(self.model.trunk.head(states)), hidden

    def log_probs(self, heads: Tensor) -> Tensor:
        """Return log p of ESPnet's tokens (..., V) after states (..., D)."""
        if not self.loaded:
            raise UserError(
                "the language model has no weights; give --lm_file beside --lm_train_config"
            )
        scores = self.model.output.distribution(heads.flatten(0, -2))[:, self.written]
        return scores.masked_fill(self.never, IMPOSSIBLE).unflatten(0, heads.shape[:-1])

    def score(self, y: Tensor, state: Prefix | None, x: Any) -> tuple[Tensor, Prefix]:
        """Return log p (V,) after prefix `y` (T,), and its state; `state`: a shorter one's."""
        scores, states = self.batch_score(y[None], [state], x)
        return scores[0], states[0]

    @torch.no_grad()
    def batch_score(
        self, ys: Tensor, states: list[Prefix | None], xs: Any
    ) -> tuple[Tensor, list[Prefix]]:
        """Return the same of several prefixes of one utterance, (B, T) to (B, V)."""
        tree = states[0].tree if states[0] else TokenTree(self.model.trunk, self.model.longest)
        longer = []
        for y, state in zip(ys.tolist(), states, strict=True):
            node, read = state[1:] if state else (tree.start, 1)
            for token in y[read:]:
                node = tree.child(node, self.read_list[token])
            longer.append(Prefix(tree, node, len(y)))
        rows = tree.compute([prefix.node for prefix in longer])
        return self.log_probs(tree.heads.values[rows]), longer
