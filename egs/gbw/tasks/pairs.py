"""Two sentences and how they relate: entailment by ESIM (Chen et al. 2017), implicit discourse
relations by the same without its second LSTM (after Bai and Zhao 2018, whose many layers of
convolution, attention and pooling it leaves out).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from base import Example, Settings, Task, layer, ratio
from inputs import Batch, Encoder, Inputs, stack
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines

GAP = "<*>"  # in an argument of several parts
NO_LABEL = "-"  # of annotators who did not agree
IMPLICIT = "implicit"


def words_of(text: str, path, number: int) -> tuple[str, ...]:
    """Return the words of a sentence; UserError where there are none."""
    if words := tuple(text.split()):
        return words
    raise UserError(f"{path}:{number}: a sentence without words; leave the pair out")


def read_rels(path) -> Iterator[tuple[int, str, str, str]]:
    """Yield implicit relations of a DISRPT .rels file: line, label, both arguments."""
    header: dict[str, int] = {}
    for number, line in read_lines(path):
        fields = line.split("\t")
        if not header:
            header = {name: n for n, name in enumerate(fields)}
            if lacking := {"unit1_txt", "unit2_txt", "rel_type", "label"} - header.keys():
                raise UserError(f"{path}:1: no column {min(lacking)}; give DISRPT's .rels")
        elif len(fields) != len(header):
            raise UserError(f"{path}:{number}: {len(fields)} fields; the header has {len(header)}")
        elif fields[header["rel_type"]] == IMPLICIT:
            first, second = (
                " ".join(word for word in fields[header[unit]].split() if word != GAP)
                for unit in ("unit1_txt", "unit2_txt")
            )
            yield number, fields[header["label"]], first, second


def read_nli(path) -> Iterator[tuple[int, str, str, str]]:
    """Yield pairs of SNLI: lines `label TAB premise TAB hypothesis`, or its own .jsonl, whose
    parses give the words.
    """
    as_json = ".jsonl" in Path(path).suffixes
    for number, line in read_lines(path):
        if as_json:
            try:
                tree = json.loads(line)
                label = tree["gold_label"]
                first, second = (
                    " ".join(w for w in tree[f"sentence{k}_binary_parse"].split() if w not in "()")
                    for k in (1, 2)
                )
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UserError(
                    f"{path}:{number}: not a pair of SNLI; give gold_label, sentence1_binary_parse"
                    " and sentence2_binary_parse"
                ) from None
        else:
            fields = line.split("\t")
            if len(fields) != 3:
                raise UserError(
                    f"{path}:{number}: {len(fields)} fields; give label, premise, hypothesis"
                )
            label, first, second = fields
        if label != NO_LABEL:
            yield number, label, first, second


class Matcher(nn.Module):
    """Both sentences, word by word beside what attention finds in the other, to one label."""

    def __init__(self, labels: list[str], inputs: Inputs, settings: Settings, compose: bool):
        super().__init__()
        self.labels, self.inputs = labels, inputs
        self.number = {label: n for n, label in enumerate(labels)}
        hidden, drop = settings.hidden, settings.dropout
        self.encoder = Encoder(inputs.width, hidden, settings.layers, drop)
        width = self.encoder.width
        self.compare = layer(4 * width, hidden, drop)
        self.compose = Encoder(hidden, hidden, 1, drop) if compose else None
        read = 2 * hidden if compose else hidden
        self.last = nn.Sequential(
            layer(4 * read, settings.mlp, drop), nn.Linear(settings.mlp, len(labels))
        )

    def scores(self, parts: list[Batch]) -> Tensor:
        """Return scores of labels (B, labels)."""
        # one pass for both sides: an LSTM costs by its steps, hardly by the sentences of a step
        batch = stack(parts)
        both = self.encoder(self.inputs(batch), batch.lengths)
        inside, size = batch.inside, len(parts[0].words)
        first, second = both.split(size)
        alike = first @ second.transpose(1, 2)  # (B, T, T); Eq. 11 of ESIM
        seen = torch.cat(
            [weigh(alike, inside[size:]) @ second, weigh(alike.mT, inside[:size]) @ first]
        )
        read = self.compare(torch.cat([both, seen, both - seen, both * seen], -1))
        if self.compose is not None:
            read = self.compose(read, batch.lengths)
        mean = (read * inside[..., None]).sum(1) / batch.lengths[:, None]
        most = read.masked_fill(~inside[..., None], -torch.inf).amax(1)
        pooled = torch.cat([mean, most], -1)
        return self.last(torch.cat(pooled.split(size), -1))

    def forward(self, parts: list[Batch], examples: list[Example]) -> Tensor:
        right = torch.tensor([self.number[example.gold] for example in examples])
        return F.cross_entropy(self.scores(parts), right)

    def predict(self, parts: list[Batch], examples: list[Example]) -> list[str]:
        """Return the best labels."""
        return [self.labels[n] for n in self.scores(parts).argmax(1).tolist()]


def weigh(alike: Tensor, inside: Tensor) -> Tensor:
    """Return shares of attention (B, T, U) among the places inside (B, U)."""
    return alike.masked_fill(~inside[:, None], -torch.inf).softmax(2)


class Pairs(Task):
    """Accuracy over pairs of sentences with labels."""

    figures = ("accuracy",)

    def __init__(self, files: tuple[str, ...], rows: Callable, compose: bool):
        self.files, self.rows, self.compose = files, rows, compose

    def read(self, path: Path) -> list[Example]:
        examples = [
            Example((words_of(first, path, number), words_of(second, path, number)), label)
            for number, label, first, second in self.rows(path)
        ]
        if not examples:
            raise UserError(f"{path}: no pairs with a label; give {' or '.join(self.files)}")
        return examples

    def model(self, train, inputs, settings):
        labels = sorted({example.gold for example in train})
        return Matcher(labels, inputs, settings, self.compose)

    def count(self, gold: str, predicted: str) -> Sequence[int]:
        return int(gold == predicted), 1

    def score(self, counts):
        return (ratio(counts[..., 0], counts[..., 1]),)

    def majority(self, sets):
        labels = Counter(sorted(example.gold for example in sets["train"].examples))
        return [labels.most_common(1)[0][0]] * len(sets["test"].examples)


DISCOURSE = Pairs(("{set}.rels",), read_rels, compose=False)
ENTAILMENT = Pairs(("{set}.tsv", "{set}.jsonl"), read_nli, compose=True)
