"""Dependency parsing: a biaffine parser over a two-way LSTM (Dozat and Manning 2017) that takes the
best tree of one root.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from base import Biaffine, Example, Settings, Task, layer, ratio
from inputs import Batch, Encoder, Inputs
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.errors import UserError, install_extra
from lmtools.base.files import read_lines

COLUMNS = 10
IGNORED = -100  # by the cross-entropy


class Tree(NamedTuple):
    """Of each word its head, from 1, the root's 0, and its relation."""

    heads: list[int]
    relations: list[str]


def read_conllu(path) -> list[Example]:
    """Return the sentences of a CoNLL-U file as words and trees; ranges and empty nodes are left
    out.
    """
    examples: list[Example] = []
    words: list[str] = []
    tree = Tree([], [])

    def end(number: int) -> None:
        nonlocal words, tree
        if not words:
            return
        if problem := what_is_wrong(tree.heads):
            raise UserError(f"{path}:{number}: the sentence before it {problem}; mend its heads")
        examples.append(Example((tuple(words),), tree))
        words, tree = [], Tree([], [])

    number = 0
    for number, line in read_lines(path):
        if not line:
            end(number)
        elif not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != COLUMNS:
                raise UserError(f"{path}:{number}: {len(fields)} fields; CoNLL-U has {COLUMNS}")
            place, form, head, relation = fields[0], fields[1], fields[6], fields[7]
            if not place.isdigit():
                continue
            if place != str(len(words) + 1) or not head.isdigit():
                raise UserError(
                    f"{path}:{number}: word {place} with head {head!r}; number words from 1"
                )
            # treebanks have forms such as "10 000"; vectors have one a word
            words.append("".join(form.split()) or "_")
            tree.heads.append(int(head))
            tree.relations.append(relation)
    end(number + 1)
    if not examples:
        raise UserError(f"{path}: no sentences; give CoNLL-U")
    return examples


def what_is_wrong(heads: Sequence[int]) -> str:
    """Return why heads are no tree with one root; empty where they are one."""
    if max(heads) > len(heads):
        return "has a head that is no word"
    if heads.count(0) != 1:
        return f"has {heads.count(0)} roots"
    reached, edge = {0}, [0]
    children: dict[int, list[int]] = {}
    for word, head in enumerate(heads, 1):
        children.setdefault(head, []).append(word)
    while edge:
        edge = [child for head in edge for child in children.get(head, [])]
        reached.update(edge)
    return "" if len(reached) == len(heads) + 1 else "has a cycle"


def find_tree(scores: np.ndarray) -> list[int]:
    """Return the heads of the best tree with one root, from scores (words, 1 + words) of each head,
    the root first: each word's best head if that is a tree, else by Chu and Liu's and Edmonds'
    algorithm.
    """
    heads = scores.argmax(1).tolist()
    if not what_is_wrong(heads):
        return heads
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds
    except ImportError:
        raise UserError(f"trees need ufal.chu-liu-edmonds; {install_extra('tasks')}") from None
    # each edge from the root costs more than any tree can gain, so that there is one; no score is
    # near 0, which the library takes for no edge
    least = float(scores.min()) - 1
    square = np.full((len(scores) + 1,) * 2, np.nan)
    square[1:] = scores + least
    square[1:, 0] += (len(scores) + 1) * (2 * least - 1)
    return chu_liu_edmonds(square)[0][1:]


class Parser(nn.Module):
    """Scores of heads and, given a head, of relations."""

    def __init__(self, relations: list[str], inputs: Inputs, settings: Settings):
        super().__init__()
        self.relations, self.inputs = relations, inputs
        self.number = {relation: n for n, relation in enumerate(relations)}
        drop = settings.dropout
        self.encoder = Encoder(inputs.width, settings.hidden, settings.layers, drop)
        width = self.encoder.width
        self.root = nn.Parameter(torch.zeros(width))
        self.arcs = nn.ModuleList(layer(width, 2 * settings.mlp, drop) for _ in range(2))
        self.labels = nn.ModuleList(layer(width, settings.mlp, drop) for _ in range(2))
        self.arc = Biaffine(2 * settings.mlp, 1)
        self.label = Biaffine(settings.mlp, len(relations))

    def states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return states of words (B, T, width), and with the root before them (B, 1 + T, width)."""
        words = self.encoder(self.inputs(batch), batch.lengths)
        root = self.root.expand(len(words), 1, -1)
        return words, torch.cat([root, words], 1)

    def heads(self, batch: Batch, words: Tensor, all_states: Tensor) -> Tensor:
        """Return scores of heads (B, T, 1 + T); of places that are no words -inf."""
        scores = self.arc(self.arcs[0](words), self.arcs[1](all_states)).squeeze(1)
        inside = F.pad(batch.inside, (1, 0), value=True)
        return scores.masked_fill(~inside[:, None], -torch.inf)

    def relate(self, words: Tensor, all_states: Tensor, heads: Tensor) -> Tensor:
        """Return scores of relations (B, T, relations) to these heads (B, T)."""
        chosen = all_states.gather(1, heads[..., None].expand(-1, -1, all_states.shape[2]))
        dependent, head = self.labels[0](words), self.labels[1](chosen)
        return self.label(dependent[:, :, None], head[:, :, None]).flatten(2)

    def forward(self, parts: list[Batch], examples: list[Example]) -> Tensor:
        (batch,) = parts
        words, all_states = self.states(batch)
        heads = fill([e.gold.heads for e in examples], words.shape[1])
        numbers = [[self.number[r] for r in e.gold.relations] for e in examples]
        arc = F.cross_entropy(
            self.heads(batch, words, all_states).flatten(0, 1),
            heads.flatten(),
            ignore_index=IGNORED,
        )
        scores = self.relate(words, all_states, heads.clamp(min=0))
        label = F.cross_entropy(
            scores.flatten(0, 1), fill(numbers, words.shape[1]).flatten(), ignore_index=IGNORED
        )
        return arc + label

    def predict(self, parts: list[Batch], examples: list[Example]) -> list[Tree]:
        """Return the best trees."""
        (batch,) = parts
        words, all_states = self.states(batch)
        scores = self.heads(batch, words, all_states).log_softmax(2).numpy()
        sizes = batch.lengths.tolist()
        heads = [find_tree(s[:n, : 1 + n]) for s, n in zip(scores, sizes, strict=True)]
        numbers = self.relate(words, all_states, fill(heads, words.shape[1]).clamp(min=0))
        labels = numbers.argmax(2).tolist()
        return [
            Tree(tree, [self.relations[k] for k in row[: len(tree)]])
            for tree, row in zip(heads, labels, strict=True)
        ]


def fill(rows: Sequence[Sequence[int]], width: int) -> Tensor:
    """Return rows of numbers as a tensor (B, width), filled up with IGNORED."""
    filled = torch.full((len(rows), width), IGNORED)
    for n, row in enumerate(rows):
        filled[n, : len(row)] = torch.tensor(row)
    return filled


class Dependencies(Task):
    """UAS, and LAS of the universal part of relations, of all words: those of the CoNLL 2018 shared
    task on gold words.
    """

    files = ("{set}.conllu",)
    figures = ("UAS", "LAS")

    def read(self, path: Path) -> list[Example]:
        return read_conllu(path)

    def model(self, train, inputs, settings):
        relations = sorted({r for example in train for r in example.gold.relations})
        return Parser(relations, inputs, settings)

    def count(self, gold: Tree, predicted: Tree) -> Sequence[int]:
        heads = [a == b for a, b in zip(gold.heads, predicted.heads, strict=True)]
        relations = [
            a.split(":")[0] == b.split(":")[0]
            for a, b in zip(gold.relations, predicted.relations, strict=True)
        ]
        both = [a and b for a, b in zip(heads, relations, strict=True)]
        return sum(heads), sum(both), len(heads)

    def score(self, counts):
        return ratio(counts[..., 0], counts[..., 2]), ratio(counts[..., 1], counts[..., 2])
