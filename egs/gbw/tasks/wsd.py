"""Word senses by nearest neighbour: a word's vector in context is compared with the mean of the
vectors of each of its senses in training text (Melamud et al. 2016; Peters et al. 2018,
Section 5.3).

A word that training text does not have in any sense gets WordNet's first one; without vectors, all
words do.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from base import Example, Outcome, Set, Task, ratio
from inputs import Sentences

from lmtools.base.errors import UserError
from lmtools.base.files import read_bytes, read_lines

PARTS = {"N": "1", "V": "2", "J": "3", "A": "3", "R": "4"}  # of a tag's letter, WordNet's number
SATELLITE = "5"  # adjectives that WordNet puts under another; they are adjectives here
INDEX = "index.sense"
WORDNET = Path("/usr/share/wordnet") / INDEX  # Debian's wordnet-sense-index


class Tagged(NamedTuple):
    """A word with senses: words begin:end of its sentence, in which forms of several are apart."""

    begin: int
    end: int
    lemma: str
    part: str
    senses: frozenset[str]

    @property
    def word(self) -> tuple[str, str]:
        """Return what decides which senses it may have."""
        return self.lemma, self.part


def split_form(form: str) -> list[str]:
    """Return the words of a form that joins them by _ or blanks."""
    return form.replace("_", " ").split() or ["_"]


def read_semcor(path) -> list[Example]:
    """Return the tagged words of a file, a word a line: `form TAB lemma TAB tag TAB senses` (`_`
    where there is none; senses of WordNet's form, with commas between them), lines that begin with
    # and a blank before a sentence, an empty line after it.
    """
    examples: list[Example] = []
    words: list[str] = []
    tagged: list[Tagged] = []

    def end() -> None:
        nonlocal words, tagged
        examples.extend(Example((tuple(words),), group) for group in tagged)
        words, tagged = [], []

    for number, line in read_lines(path):
        if not line or line.startswith("# "):
            end()
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise UserError(f"{path}:{number}: {len(fields)} fields; give form, lemma, tag, senses")
        form, lemma, tag, senses = fields
        if len(form.split()) != 1:
            raise UserError(f"{path}:{number}: a form with a space in it; join its words by _")
        parts = split_form(form)
        if senses != "_":
            if tag[:1] not in PARTS:
                raise UserError(f"{path}:{number}: tag {tag!r} has no senses; give N, V, J or R")
            begin, keys = len(words), frozenset(senses.split(","))
            tagged.append(Tagged(begin, begin + len(parts), lemma.lower(), PARTS[tag[0]], keys))
        words += parts
    end()
    return examples


def read_unified(path: Path) -> list[Example]:
    """Return the tagged words of SET.data.xml and SET.gold.key.txt beside it, as the framework of
    Raganato et al. (2017) has them.
    """
    keys_path = path.with_name(path.name.replace(".data.xml", ".gold.key.txt"))
    keys = {}
    for number, line in read_lines(keys_path):
        name, *senses = line.split()
        if not senses:
            raise UserError(f"{keys_path}:{number}: no sense; give an instance and its keys")
        keys[name] = frozenset(senses)
    content = read_bytes(path)
    if b"<!" in content:  # entities may grow without end, and no such file has any
        raise UserError(f"{path}: declarations in XML; give elements alone")
    try:
        sentences = ElementTree.fromstring(content).iter("sentence")
    except ElementTree.ParseError as error:
        line = error.position[0]
        raise UserError(f"{path}:{line}: not XML ({error}); give corpus, text, sentence") from None
    examples = []
    for sentence in sentences:
        words: list[str] = []
        tagged = []
        for element in sentence:
            parts = split_form(element.text or "")
            begin, part = len(words), PARTS.get(element.get("pos", "")[:1])
            if element.tag == "instance":
                name, lemma = element.get("id"), element.get("lemma", "")
                if name not in keys or part is None:
                    raise UserError(
                        f"{path}: instance {name!r} without a key in {keys_path} or a pos of NOUN,"
                        " VERB, ADJ or ADV; give both"
                    )
                tagged.append(Tagged(begin, begin + len(parts), lemma.lower(), part, keys[name]))
            words += parts
        examples += [Example((tuple(words),), group) for group in tagged]
    return examples


def read_first_senses(path) -> dict[tuple[str, str], str]:
    """Return WordNet's first sense of each (lemma, part of speech), from its index.sense."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 4 or "%" not in fields[0] or not fields[2].isdigit():
            raise UserError(f"{path}:{number}: not a line of WordNet's {INDEX}; give that file")
        key, rank = fields[0], int(fields[2])
        lemma, _, rest = key.partition("%")
        part = PARTS["J"] if rest[:1] == SATELLITE else rest[:1]
        first[lemma, part] = min(first.get((lemma, part), (rank, key)), (rank, key))
    return {word: key for word, (_, key) in first.items()}


def average(examples: Sequence[Example], sentences: Sentences) -> np.ndarray:
    """Return a vector of length 1 for each tagged word, (words, layers x width)."""
    table, rows = sentences.vectors
    table = np.append(table.reshape(len(table), -1), np.zeros((1, table[0].size), np.float32), 0)
    begins = np.array([sentences.begin[example.sentences[0]] for example in examples])
    spans = np.array([[example.gold.begin, example.gold.end] for example in examples])
    places = (spans + begins[:, None]).ravel()
    words = table[np.append(rows, len(table) - 1)]
    return normalise(np.add.reduceat(words, places, axis=0)[::2])


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Return rows divided by their lengths; zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


class Senses:
    """What training text says of each (lemma, part of speech): its senses, the mean vector of each,
    and how often each occurs.
    """

    def __init__(self, tagged: Sequence[Tagged], vectors: np.ndarray | None = None):
        places: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(dict)
        for place, word in enumerate(tagged):
            for sense in sorted(word.senses):
                places[word.word].setdefault(sense, []).append(place)
        self.counts = {
            word: Counter({sense: len(rows) for sense, rows in senses.items()})
            for word, senses in places.items()
        }
        self.means = {}
        if vectors is not None:
            for word, senses in places.items():
                means = np.stack([vectors[rows].mean(0) for rows in senses.values()])
                self.means[word] = list(senses), normalise(means)

    def nearest(self, word: Tagged, vector: np.ndarray) -> str | None:
        """Return the sense with the greatest cosine; None where training has none."""
        if word.word not in self.means:
            return None
        senses, means = self.means[word.word]
        return senses[int(np.argmax(means @ vector))]

    def commonest(self, word: Tagged) -> str | None:
        """Return the sense that occurs most often, of equal ones the first by name."""
        counts = self.counts.get(word.word)
        return counts and min(counts, key=lambda sense: (-counts[sense], sense))


class WordSenses(Task):
    """F1 over tagged words, which is accuracy, as every word gets a sense; one of several that are
    given is enough.
    """

    files = ("{set}.tsv", "{set}.data.xml")
    sets = ("train", "test")
    figures = ("F1",)
    seeds = False
    layer = "last"  # as in both papers

    def read(self, path: Path) -> list[Example]:
        examples = (read_unified if ".xml" in path.suffixes else read_semcor)(path)
        if not examples:
            raise UserError(f"{path}: no word with a sense; give SemCor's, a word a line")
        return examples

    def model(self, train, inputs, settings):
        raise TypeError("senses have no model that is trained")

    def solve(self, sets, settings, seed):
        train, test = sets["train"], sets["test"]
        answers: list[str | None] = [None] * len(test.examples)
        if train.sentences.vectors is not None:
            known = Senses(golds(train), average(train.examples, train.sentences))
            asked = average(test.examples, test.sentences)
            answers = [known.nearest(*both) for both in zip(golds(test), asked, strict=True)]
        pairs = zip(golds(test), self.fall_back(test, answers), strict=True)
        return Outcome(np.array([self.count(word, sense) for word, sense in pairs]), [])

    def takes(self, vectors, static):
        return not static

    def majority(self, sets):
        known = Senses(golds(sets["train"]))
        test = sets["test"]
        return self.fall_back(test, [known.commonest(word) for word in golds(test)])

    def fall_back(self, test: Set, answers: Sequence[str | None]) -> list[str | None]:
        """Return what was found, and WordNet's first sense where nothing was."""
        index = test.path.parent / INDEX
        first = read_first_senses(index if index.exists() else WORDNET)
        return [
            sense or first.get(word.word) for word, sense in zip(golds(test), answers, strict=True)
        ]

    def count(self, gold: Tagged, predicted: str | None) -> Sequence[int]:
        return int(predicted in gold.senses), 1

    def score(self, counts):
        return (ratio(counts[..., 0], counts[..., 1]),)


def golds(data: Set) -> list[Tagged]:
    """Return the tagged words of a set."""
    return [example.gold for example in data.examples]
