"""Words a second that a two-way model (ELMo) gives vectors: lmtools and the
same weights in plain PyTorch; prints JSON and a table.

The plain one takes sentences in the order of the text, 64 a batch, padded to the longest, computes
the convolutions anew for every token of the padded batch, and runs torch.nn.LSTM over packed
sequences, as AllenNLP does. Its vectors must be lmtools' within 1e-4. nn.LSTM does not clip cells
and states: while vectors are compared, lmtools does not either; timed, it does.

One thread, seconds of processor time, all in turns in one process, median of the turns. Each begins
with text and ends with arrays in memory; loading the model does not count.
"""

import argparse
import contextlib
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from measures.machine import describe_machine
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lmtools.base.computing import Computing
from lmtools.base.files import read_lines
from lmtools.models.projected import TwoWayLstm
from lmtools.text.subword import PAD
from lmtools.vectors.words import load_word_vectors

BATCH = 64  # sentences, of the plain implementation
NEAR = 1e-4


class Plain(nn.Module):
    """A two-way model out of PyTorch's own modules, with the weights of `embed`'s."""

    def __init__(self, embed):
        super().__init__()
        self.lm, self.subword = embed.model.lm, embed.model.subword
        speller = self.lm.trunk.speller
        self.pieces, self.projection = speller.pieces, speller.projection
        self.highways = nn.ModuleList(highway.both for highway in speller.highways)
        self.convolutions = nn.ModuleList()
        for one in speller.convolutions:
            count, size = len(one.filters.bias), self.pieces.embedding_dim
            made = nn.Conv1d(size, count, one.width)
            made.weight.data = one.filters.weight.view(count, one.width, size).mT.contiguous()
            made.bias.data = one.filters.bias
            self.convolutions.append(made)
        self.lstms = nn.ModuleList(
            nn.ModuleList(one_direction(layer, side) for side in range(2))
            for layer in self.lm.trunk.lstms
        )

    @torch.inference_mode()
    def vectors(self, texts: list[str]) -> Iterator[np.ndarray]:
        """The vectors (words, layers, 2 D) of each text."""
        texts = iter(texts)
        while batch := list(itertools.islice(texts, BATCH)):
            examples = self.lm.objective.scoring(self.subword.encode_batch(batch))
            layers = self(examples.spellings[examples.inputs], examples.lengths)
            states = torch.stack(layers, dim=2).numpy()
            for one, length in zip(states, examples.lengths.tolist(), strict=True):
                yield one[1 : length - 1].copy()

    def forward(self, spellings: Tensor, lengths: Tensor) -> list[Tensor]:
        """The states (B, T, 2 D) of each layer for the pieces (B, T, L) of every token."""
        state = self.spell(spellings.flatten(0, 1)).unflatten(0, spellings.shape[:2])
        left, right = state, reverse(state, lengths)
        layers = [torch.cat([state, state], dim=2)]
        for number, sides in enumerate(self.lstms):
            new_left, new_right = run(sides[0], left, lengths), run(sides[1], right, lengths)
            left, right = (new_left + left, new_right + right) if number else (new_left, new_right)
            layers.append(torch.cat([left, reverse(right, lengths)], dim=2))
        return layers

    def spell(self, spellings: Tensor) -> Tensor:
        """The vectors (N, D) of tokens (N, L)."""
        here = spellings != PAD
        widest = max(one.kernel_size[0] for one in self.convolutions)
        read = F.pad((self.pieces(spellings) * here[..., None]).mT, (0, widest - 1))
        found = []
        for one in self.convolutions:
            values = one(read)
            windows = (here.sum(1) - one.kernel_size[0]).clamp(min=0) + 1
            outside = torch.arange(values.shape[2]) >= windows[:, None]
            found.append(values.masked_fill(outside[:, None], -torch.inf).amax(2))
        x = torch.cat(found, dim=1).relu()
        for both in self.highways:
            changed, gate = both(x).chunk(2, dim=1)
            x = torch.lerp(x, changed.relu(), gate.sigmoid())
        return self.projection(x)


def one_direction(layer: TwoWayLstm, side: int) -> nn.LSTM:
    """torch's LSTM with the weights of one side of a layer."""
    _, units, dim = layer.projection.shape
    made = nn.LSTM(dim, units, proj_size=dim, batch_first=True)
    made.weight_ih_l0.data = layer.inputs[side].T.contiguous()
    made.weight_hh_l0.data = layer.recurrent[side].T.contiguous()
    made.weight_hr_l0.data = layer.projection[side].T.contiguous()
    made.bias_ih_l0.data = layer.bias.view(2, -1)[side]
    made.bias_hh_l0.data.zero_()
    return made


def run(lstm: nn.LSTM, x: Tensor, lengths: Tensor) -> Tensor:
    """The states (B, T, D) of one direction."""
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """Each sentence of (B, T, D) from its last word to its first; padding stays."""
    steps = torch.arange(x.shape[1])
    places = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return x.gather(1, places[..., None].expand_as(x))


def main() -> None:
    """Compare, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lm", required=True, metavar="DIR", help="a two-way model")
    parser.add_argument("--text", required=True, metavar="F", help="a sentence a line")
    about = "read so many (default: %(default)s)"
    parser.add_argument("--sentences", type=int, default=3000, metavar="N", help=about)
    parser.add_argument("--turns", type=int, default=5, metavar="N", help="(default: %(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = (line for _, line in read_lines(args.text) if line.split())
    texts = list(itertools.islice(lines, args.sentences))
    ours = load_word_vectors(args.lm, None, Computing("cpu"))
    plain = Plain(ours)
    with unclipped(ours.lm.trunk.lstms):
        words = check(ours(texts), plain.vectors(texts))
    kinds: dict[str, Callable] = {"lmtools": ours, "plain": plain.vectors}
    turns = [{name: timed(call, texts) for name, call in kinds.items()} for _ in range(args.turns)]
    seconds = {name: statistics.median(turn[name] for turn in turns) for name in kinds}
    figures = {
        "sentences": len(texts), "words": words, "seconds": seconds,
        "words_per_second": {name: words / value for name, value in seconds.items()},
        "plain_over_lmtools": statistics.median(t["plain"] / t["lmtools"] for t in turns),
        "turns": turns, "machine": describe_machine(torch.device("cpu")),
    }  # fmt: skip
    print(json.dumps(figures, indent=1))
    print("\n| | seconds | words/s |\n|---|---:|---:|")
    for name, value in seconds.items():
        print(f"| {name} | {value:.2f} | {words / value:,.0f} |")


@contextlib.contextmanager
def unclipped(layers: nn.ModuleList) -> Iterator[None]:
    """A context in which the layers clip nothing."""
    clips = [layer.clips for layer in layers]
    for layer in layers:
        layer.clips = 0.0, 0.0
    try:
        yield
    finally:
        for layer, before in zip(layers, clips, strict=True):
            layer.clips = before


def check(ours, plain) -> int:
    """How many words there are; AssertionError where vectors differ by more than NEAR."""
    words = 0
    for line, vectors in zip(ours, plain, strict=True):
        np.testing.assert_allclose(line.vectors, vectors, rtol=NEAR, atol=NEAR, err_msg=line.text)
        words += len(vectors)
    return words


def timed(call: Callable, texts: list[str]) -> float:
    """Seconds of processor time until all vectors have been there."""
    begin = time.process_time()
    for _ in call(texts):
        pass
    return time.process_time() - begin


if __name__ == "__main__":
    main()
