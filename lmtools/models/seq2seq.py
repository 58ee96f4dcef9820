"""An encoder and a decoder: the Transformer as it was published, for translation (Vaswani et al.
2017).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmtools.base.errors import UserError
from lmtools.base.grammar import Count
from lmtools.models.base import last_state
from lmtools.models.transformer import (
    ATTENTIONS,
    BLOCKS,
    Transformer,
    TransformerConfig,
    initialise_module,
    real_positions,
    run_blocks,
    shrink_branches,
)


@dataclass(frozen=True)
class Seq2seqConfig(TransformerConfig):
    """Size of a Transformer whose `layers` are the encoder's; `positions` are of either side."""

    decoder_layers: Count = 3


class DecoderLayer(nn.Module):
    """Attention to the target so far, attention to the source, feed-forward network."""

    def __init__(self, config: Seq2seqConfig):
        super().__init__()
        self.block = BLOCKS[config.norm](config)
        self.cross = ATTENTIONS[config.norm](config)

    def forward(
        self, state: Tensor, source: Tensor, mask: Tensor, within: Tensor | None = None
    ) -> Tensor:
        """Return `state` (B, T, D) after attending to itself, each position to those before it, or
        where `within` (T, T) is True, and to the encoder's states `source` (B, S, D), where `mask`
        (B, 1, 1, S) is True.
        """
        # padding is on the right, where no real position looks
        state = self.block.look(state, state, within, causal=within is None)
        return self.read(state, self.cross.key_value(source), mask)

    def read(self, state: Tensor, seen: Tensor, mask: Tensor) -> Tensor:
        """Return `state` (B, T, D) after attending to the source's `seen` (B, S, 2 D)."""
        query = self.cross.query(self.cross.enter(state))
        return self.block.feed(self.cross.join(state, self.cross.attend(query, seen, mask)))

    def shared(self, state: Tensor, source: Tensor, runs: "Runs") -> Tensor:
        """Return `forward` of a target (N, T, D), or (1, T, D) where it is one for all, without
        padding: the encoder's states `source` (R, D) are those of N sources, one behind the other.
        """
        state = self.block.look(state, state, causal=True)
        query = self.cross.query(self.cross.enter(state)).expand(runs.count, -1, -1)
        seen = self.cross.key_value(source)
        context = [
            self.cross.attend(asking, source)
            for asking, source in zip(query.split(runs.counts), runs.split(seen), strict=True)
        ]
        return self.block.feed(self.cross.join(state, torch.cat(context)))

    def step(self, state: Tensor, prefixes: Tensor, seen: Tensor, mask: Tensor) -> Tensor:
        """Return `state` (B, K, D) of the last token of K prefixes a source; `prefixes` (B K, T, 2
        D) has the keys and values of these prefixes, and takes in those of the last token.
        """
        asking = self.block.enter(state)
        prefixes[:, -1] = self.block.key_value(asking).flatten(0, 1)
        query = self.block.query(asking).flatten(0, 1)[:, None]
        context = self.block.attend(query, prefixes).view(state.shape)
        return self.read(self.block.join(state, context), seen, mask)


class Seq2seq(Transformer):
    """State t has seen the whole source and tokens 0..t of the target, and predicts its token
    t + 1.

    Source, target and output share one embedding, as they do one vocabulary. What `hidden` reads
    are target ids (B, T), their lengths (B,), source ids (B, S) and their lengths (B,); the states
    are the decoder's.
    """

    title = "Transformer, encoder and decoder"
    objective = "translation"
    Config = Seq2seqConfig

    def __init__(self, config: Seq2seqConfig, vocabulary: int):
        super().__init__(config, vocabulary)
        pre = config.norm == "pre"  # whose layers leave sums that no LayerNorm has seen
        self.encoder_norm = nn.LayerNorm(config.dim, eps=1e-12) if pre else nn.Identity()
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.decoder.apply(initialise_module)
        if pre:
            blocks = [(layer.block.attention, layer.cross.attention, layer.block.outer)
                      for layer in self.decoder]  # fmt: skip
            shrink_branches([end for ends in blocks for end in ends])

    @property
    def stack(self) -> nn.ModuleList:
        return nn.ModuleList([*self.blocks, *self.decoder])

    def encode(self, sources: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoder's states (B, S, D), and the mask of tokens, bool (B, 1, 1, S)."""
        mask = real_positions(lengths, sources.shape[1])[:, None, None, :]
        state = last_state(run_blocks(self.blocks, self.embedding(sources), mask))
        return self.encoder_norm(state), mask

    def layer_states(
        self, tokens: Tensor, lengths: Tensor, sources: Tensor, source_lengths: Tensor
    ) -> Iterator[Tensor]:
        source, mask = self.encode(sources, source_lengths)
        state = self.embedding(tokens)
        yield state
        for layer in self.decoder:
            state = layer(state, source, mask)
            yield state

    def tree_states(self, source: Tensor, tokens: Tensor, depths: Tensor, within: Tensor) -> Tensor:
        """Return the last layer's states (N, D) of prefixes of translations of one source (S,), a
        tree of their last `tokens` (N,): of so many tokens before the last each (`depths`, (N,)),
        and of those that are `within` it, bool (N, N), itself included.
        """
        states, mask = self.encode(source[None], torch.tensor([len(source)], device=source.device))
        state = self.embedding.at(tokens, depths)[None]
        for layer in self.decoder:
            state = layer(state, states, mask, within)
        return state[0]

    def shared_states(self, sources: list[Tensor], target: Tensor) -> Tensor:
        """Return states (N, T, D) of a target (T,) given N sources (S,), in order of length."""
        runs = Runs([len(source) for source in sources])
        places = torch.cat([torch.arange(length) for length in runs.lengths])
        states = self.embedding.at(torch.cat(sources), places.to(target.device))  # (R, D)
        for block in self.blocks:
            seen = block.enter(states)
            query, key_value = runs.split(block.query(seen)), runs.split(block.key_value(seen))
            context = [block.attend(*run) for run in zip(query, key_value, strict=True)]
            states = block.finish(states, torch.cat([run.flatten(0, 1) for run in context]))
        states, state = self.encoder_norm(states), self.embedding(target[None])
        for layer in self.decoder:
            state = layer.shared(state, states, runs)
        return state

    def decoding(self, sources: Tensor, lengths: Tensor) -> "Decoding":
        """Return the decoder before its first token, of sources (B, S) of these lengths (B,)."""
        return Decoding(self, *self.encode(sources, lengths))

    def memory(self):
        raise UserError(
            f"{self.title}: reads a source, a prefix has none; use a left-to-right model"
        )


class Runs:
    """Sequences by length, one behind the other: attention inside a run needs no mask."""

    def __init__(self, lengths: Sequence[int]):
        self.lengths, self.count = lengths, len(lengths)
        numbers = Counter(lengths)
        self.counts = list(numbers.values())  # of the sequences of each run
        self.sizes = [length * count for length, count in numbers.items()]

    def split(self, rows: Tensor) -> Iterator[Tensor]:
        """Yield the rows (R, D) of all sequences, run by run: (sequences, length, D) each."""
        parts = zip(rows.split(self.sizes), self.counts, strict=True)
        return (part.view(count, -1, rows.shape[-1]) for part, count in parts)


class Decoding:
    """The decoder on prefixes that grow by a token at a time, as many (K) of each of B sources.

    Keys and values are kept: those of a source's tokens once, 8 x decoder_layers x dim bytes each,
    those of the tokens of each prefix twice.
    """

    def __init__(self, model: Seq2seq, source: Tensor, mask: Tensor):
        """Begin with `source` (B, S, D) and `mask` (B, 1, 1, S) of `Seq2seq.encode`."""
        self.model, self.mask, self.length, self.width = model, mask, 0, 1
        self.seen = [layer.cross.key_value(source) for layer in model.decoder]
        if source.device.type == "cpu":  # as attention takes them, once for all steps
            self.seen = [seen.float() for seen in self.seen]
        empty = [seen.new_empty(len(source), 0, seen.shape[-1]) for seen in self.seen]
        self.prefixes = [PrefixMemory(keys) for keys in empty]

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Return the states (B, K, D) of prefixes that `tokens` (B, K) prolong; `parents` (B, K)
        says which of a source's prefixes of the step before each goes on from (the first time: 0).
        """
        state = self.model.embedding.at(tokens, slice(self.length, self.length + 1))
        chosen = self.rows(torch.arange(len(parents), device=parents.device)[:, None], parents)
        self.length += 1
        self.width = parents.shape[1]
        for layer, before, seen in zip(self.model.decoder, self.prefixes, self.seen, strict=True):
            state = layer.step(state, before.follow(chosen, self.length), seen, self.mask)
        return state

    def keep(self, sources: Tensor) -> None:
        self.mask = self.mask[sources]
        self.seen = [seen[sources] for seen in self.seen]
        every = torch.arange(self.width, device=sources.device)
        for memory in self.prefixes:
            memory.keep(self.rows(sources[:, None], every))

    def rows(self, sources: Tensor, prefixes: Tensor) -> Tensor:
        """Return the places of these prefixes of these sources in the memory, flat."""
        return (sources * self.width + prefixes).flatten()


class PrefixMemory:
    """Keys and values (N, T, 2 D) of N prefixes' tokens, copied between two buffers."""

    def __init__(self, empty: Tensor):
        """Begin with prefixes without tokens, (N, 0, 2 D)."""
        self.now = self.spare = empty

    def follow(self, parents: Tensor, length: int) -> Tensor:
        """Return prefixes (N',) after `parents`, with room for one more (N', length, 2 D)."""
        count, room, width = len(parents), self.now.shape[1], self.now.shape[2]
        if length > room:
            self.spare = self.now.new_empty(count, room + 16, width)
            self.spare[:, :room] = self.now[parents]
        else:
            if self.spare.shape[1] < room or len(self.spare) < count:
                self.spare = self.now.new_empty(count, room, width)
            torch.index_select(self.now, 0, parents, out=self.spare[:count])
        self.now, self.spare = self.spare[:count], self.now
        return self.now[:, :length]

    def keep(self, rows: Tensor) -> None:
        self.now = self.now[rows]
