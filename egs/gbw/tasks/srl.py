"""Semantic roles: which words are arguments of a predicate, in which role, and in which sense the
predicate stands. A two-way LSTM that knows where predicates are, a biaffine form for each role
(after He et al. 2018 and Cai et al. 2018).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from base import Biaffine, Example, Settings, Task, f1, layer, ratio
from inputs import Batch, Encoder, Inputs
from torch import Tensor, nn
from torch.nn import functional as F

from lmtools.base.errors import UserError
from lmtools.base.files import read_lines

FORM, LEMMA, FILLED, SENSE, ROLES = 1, 3, 12, 13, 14  # columns of CoNLL-2009
MARK = 16  # values that say whether a word is a predicate


class Predicate(NamedTuple):
    """Where it stands (from 0), its lemma and sense, and the roles of words by their places."""

    place: int
    lemma: str
    sense: str
    roles: dict[int, str]


def read_conll09(path) -> list[Example]:
    """Return the sentences of a CoNLL-2009 file as words and predicates."""
    examples: list[Example] = []
    rows: list[list[str]] = []

    def end(number: int) -> None:
        nonlocal rows
        if not rows:
            return
        places = [place for place, row in enumerate(rows) if row[FILLED] == "Y"]
        for place, row in enumerate(rows):
            if len(row) != ROLES + len(places):
                raise UserError(
                    f"{path}:{number - len(rows) + place}: {len(row)} columns;"
                    f" {len(places)} predicates ask for {ROLES + len(places)}"
                )
        predicates = [
            Predicate(
                place,
                rows[place][LEMMA],
                rows[place][SENSE],
                {n: row[ROLES + k] for n, row in enumerate(rows) if row[ROLES + k] != "_"},
            )
            for k, place in enumerate(places)
        ]
        words = tuple("".join(row[FORM].split()) or "_" for row in rows)
        examples.append(Example((words,), predicates))
        rows = []

    number = 0
    for number, line in read_lines(path):
        if not line:
            end(number)
            continue
        row = line.split("\t")
        if len(row) < ROLES:
            raise UserError(f"{path}:{number}: {len(row)} columns; CoNLL-2009 has {ROLES} or more")
        rows.append(row)
    end(number + 1)
    if not any(example.gold for example in examples):
        raise UserError(f"{path}: no predicates; give CoNLL-2009")
    return examples


class Labeller(nn.Module):
    """Scores of roles, the first of which is none, and of a predicate's senses."""

    def __init__(self, train: Sequence[Example], inputs: Inputs, settings: Settings):
        super().__init__()
        gold = [predicate for example in train for predicate in example.gold]
        self.roles = ["", *sorted({role for frame in gold for role in frame.roles.values()})]
        self.role_number = {role: n for n, role in enumerate(self.roles)}
        self.senses = sorted({(frame.lemma, frame.sense) for frame in gold})
        self.sense_number = {pair: n for n, pair in enumerate(self.senses)}
        self.of_lemma: dict[str, list[int]] = {}
        for n, (lemma, _) in enumerate(self.senses):
            self.of_lemma.setdefault(lemma, []).append(n)
        self.inputs = inputs
        drop = settings.dropout
        self.mark = nn.Embedding(2, MARK)
        width = inputs.width + MARK
        self.encoder = Encoder(width, settings.hidden, settings.layers, drop)
        self.predicate, self.argument = (
            layer(self.encoder.width, settings.mlp, drop) for _ in range(2)
        )
        self.role = Biaffine(settings.mlp, len(self.roles))
        self.sense = nn.Linear(self.encoder.width, len(self.senses))

    def states(self, batch: Batch, examples: list[Example]) -> tuple[Tensor, Tensor, Tensor]:
        """Return states of words (B, T, width), and rows and places of all predicates (P,)."""
        rows = torch.tensor([n for n, e in enumerate(examples) for _ in e.gold], dtype=torch.long)
        places = torch.tensor([frame.place for e in examples for frame in e.gold], dtype=torch.long)
        marks = torch.zeros_like(batch.words)
        marks[rows, places] = 1
        read = torch.cat([self.inputs(batch), self.mark(marks)], -1)
        return self.encoder(read, batch.lengths), rows, places

    def score_roles(self, words: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Return scores of each predicate's words (P, T, roles)."""
        asked = self.predicate(words[rows, places])[:, None]
        scores = self.role(asked, self.argument(words)[rows])  # (P, roles, 1, T)
        return scores.squeeze(2).transpose(1, 2)

    def score_senses(self, states: Tensor, gold: Sequence[Predicate]) -> Tensor:
        """Return scores of senses (P, senses); -inf for those of other lemmas."""
        allowed = torch.zeros(len(gold), len(self.senses), dtype=torch.bool)
        for n, frame in enumerate(gold):
            allowed[n, self.of_lemma[frame.lemma]] = True
        return self.sense(states).masked_fill(~allowed, -torch.inf)

    def forward(self, parts: list[Batch], examples: list[Example]) -> Tensor:
        (batch,) = parts
        gold = [frame for example in examples for frame in example.gold]
        words, rows, places = self.states(batch, examples)
        if not gold:
            return 0 * words.sum()
        right = torch.zeros(len(gold), words.shape[1], dtype=torch.long)
        for n, frame in enumerate(gold):
            for place, role in frame.roles.items():
                right[n, place] = self.role_number[role]
        scores = self.score_roles(words, rows, places)
        inside = batch.inside[rows]
        roles = F.cross_entropy(scores[inside], right[inside], reduction="sum")
        senses = F.cross_entropy(
            self.score_senses(words[rows, places], gold),
            torch.tensor([self.sense_number[frame.lemma, frame.sense] for frame in gold]),
            reduction="sum",
        )
        return (roles + senses) / len(gold)

    def predict(self, parts: list[Batch], examples: list[Example]) -> list[list[Predicate]]:
        """Return roles and senses of each example's predicates; of a lemma that training lacks the
        sense 01.
        """
        (batch,) = parts
        words, rows, places = self.states(batch, examples)
        labels = self.score_roles(words, rows, places).argmax(2).tolist() if len(rows) else []
        sense = self.sense(words[rows, places])
        predicates = iter(range(len(rows)))
        lengths = batch.lengths.tolist()
        result = []
        for example, length in zip(examples, lengths, strict=True):
            labelled = []
            for frame in example.gold:
                n = next(predicates)
                roles = {t: self.roles[k] for t, k in enumerate(labels[n][:length]) if k}
                known = self.of_lemma.get(frame.lemma)
                best = known and known[int(sense[n, known].argmax())]
                name = f"{frame.lemma}.01" if best is None else self.senses[best][1]
                labelled.append(Predicate(frame.place, frame.lemma, name, roles))
            result.append(labelled)
        return result


class SemanticRoles(Task):
    """Labelled F1 of arguments and senses, as eval09.pl of the CoNLL-2009 shared task counts; F1 of
    arguments alone; accuracy of senses. Which words are predicates is given.
    """

    files = ("{set}.conll09",)
    figures = ("F1", "arguments", "senses")

    def read(self, path: Path) -> list[Example]:
        return read_conll09(path)

    def model(self, train, inputs, settings):
        return Labeller(train, inputs, settings)

    def count(self, gold: list[Predicate], predicted: list[Predicate]) -> Sequence[int]:
        right = sum(
            due.roles.get(place) == role
            for due, answer in zip(gold, predicted, strict=True)
            for place, role in answer.roles.items()
        )
        senses = sum(due.sense == answer.sense for due, answer in zip(gold, predicted, strict=True))
        given, asked = (sum(len(due.roles) for due in frames) for frames in (predicted, gold))
        return right, given, asked, senses, len(gold)

    def score(self, counts):
        right, given, asked, senses, predicates = (counts[..., n] for n in range(5))
        return (
            f1(right + senses, given + predicates, asked + predicates),
            f1(right, given, asked),
            ratio(senses, predicates),
        )
