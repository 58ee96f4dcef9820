#!/usr/bin/env python3
"""Word senses by nearest neighbour: a word's vector in context is compared with the mean of the
vectors of each of its senses in training text (Melamud et al. 2016; Peters et al. 2018,
Section 5.3).

    wsd.py text F.tsv OUT.txt
    wsd.py evaluate --train F.tsv --test F.tsv --index index.sense --vectors TRAIN.npz TEST.npz
                    --out F.json
    wsd.py report --conf conf/downstream.yaml --out RESULTS.md NAME=F.json ...

A word that training text does not have in any sense gets WordNet's first one. F.tsv: a word a line,
`form TAB lemma TAB tag TAB senses` (`_` where there is none; senses of WordNet's form, with commas
between them), lines that begin with # before a sentence, an empty line after it; _ joins the words
of a form. `text` writes a sentence a line, as lmtools embed reads it; a form of several words has
the mean of their vectors. `evaluate` writes F1, which is accuracy, as every word gets a sense: of
the vectors, of the first sense, and of the commonest in the training text.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from lmtools.assignments import parse_pairs
from lmtools.atomic import atomic_text
from lmtools.config import load_yaml
from lmtools.errors import UserError, exit_with_message
from lmtools.files import read_bytes, read_lines

PARTS = {"N": "1", "V": "2", "J": "3", "R": "4"}  # first letter of a tag -> WordNet's number
SATELLITE = "5"  # adjectives that WordNet puts under another; they are adjectives here


class Tagged(NamedTuple):
    """A word with senses: words begin:end of the text in which forms of several are apart."""

    begin: int
    end: int
    lemma: str
    part: str
    senses: frozenset[str]

    @property
    def word(self) -> tuple[str, str]:
        """What decides which senses it may have."""
        return self.lemma, self.part


class Text(NamedTuple):
    """Sentences, and the words with senses of all of them."""

    sentences: list[list[str]]
    tagged: list[Tagged]


def read_semcor(path) -> Text:
    """The sentences of a file; UserError for a line of another form."""
    sentences: list[list[str]] = []
    tagged: list[Tagged] = []
    words: list[str] = []
    place = 0
    for number, line in read_lines(path):
        if not line or line.startswith("# "):
            if words:
                sentences.append(words)
                words = []
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise UserError(f"{path}:{number}: {len(fields)} fields; give form, lemma, tag, senses")
        form, lemma, tag, senses = fields
        parts = [part for part in form.split("_") if part] or [form]
        if any(len(part.split()) != 1 for part in parts):
            raise UserError(f"{path}:{number}: a form with a space in it; join its words by _")
        if senses != "_":
            if tag[:1] not in PARTS:
                raise UserError(f"{path}:{number}: tag {tag!r} has no senses; give N, V, J or R")
            keys = frozenset(senses.split(","))
            end = place + len(parts)
            tagged.append(Tagged(place, end, lemma.lower(), PARTS[tag[0]], keys))
        words += parts
        place += len(parts)
    if words:
        sentences.append(words)
    if not tagged:
        raise UserError(f"{path}: no word with a sense; give SemCor's, a word a line")
    return Text(sentences, tagged)


def read_first_senses(path) -> dict[tuple[str, str], str]:
    """WordNet's first sense of each (lemma, part of speech), from its index.sense."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 4 or "%" not in fields[0] or not fields[2].isdigit():
            raise UserError(f"{path}:{number}: not a line of WordNet's index.sense; give that file")
        key, rank = fields[0], int(fields[2])
        lemma, _, rest = key.partition("%")
        part = PARTS["J"] if rest[:1] == SATELLITE else rest[:1]
        first[lemma, part] = min(first.get((lemma, part), (rank, key)), (rank, key))
    return {word: key for word, (_, key) in first.items()}


def read_vectors(path, text: Text, source) -> np.ndarray:
    """The vectors, float32 (words, values), that lmtools embed made of a text, its layers beside
    each other; UserError where they are of another text.
    """
    try:
        with np.load(path) as arrays:
            vectors, offsets = arrays["vectors"], arrays["offsets"]
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path}: no word vectors ({error}); make them with lmtools embed"
        ) from None
    if np.diff(offsets).tolist() != list(map(len, text.sentences)):
        raise UserError(
            f"{path}: vectors of other words than those of {source}; embed its text by an LM whose"
            " normaliser leaves words as they are"
        )
    return vectors.reshape(len(vectors), -1)


def average(vectors: np.ndarray, tagged: Sequence[Tagged]) -> np.ndarray:
    """A vector of length 1 for each tagged word, (words, values)."""
    begins = np.array([[word.begin, word.end] for word in tagged]).ravel()
    ends = np.append(vectors, np.zeros_like(vectors[:1]), axis=0)
    return normalise(np.add.reduceat(ends, begins, axis=0)[::2])


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths; zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


class Senses:
    """What training text says of each (lemma, part of speech): its senses, the mean vector of each,
    and how often each occurs.
    """

    def __init__(self, tagged: Sequence[Tagged], vectors: np.ndarray):
        places: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(dict)
        for place, word in enumerate(tagged):
            for sense in sorted(word.senses):
                places[word.word].setdefault(sense, []).append(place)
        self.counts = {
            word: Counter({sense: len(some) for sense, some in senses.items()})
            for word, senses in places.items()
        }
        self.means = {
            word: (
                list(senses),
                normalise(np.stack([vectors[some].mean(0) for some in senses.values()])),
            )
            for word, senses in places.items()
        }

    def nearest(self, word: Tagged, vector: np.ndarray) -> str | None:
        """The sense with the greatest cosine; None where training has none."""
        if word.word not in self.means:
            return None
        senses, means = self.means[word.word]
        return senses[int(np.argmax(means @ vector))]

    def commonest(self, word: Tagged) -> str | None:
        """The sense that occurs most often, of equal ones the first by name."""
        counts = self.counts.get(word.word)
        return counts and min(counts, key=lambda sense: (-counts[sense], sense))


def evaluate(train: Text, test: Text, vectors: Sequence[np.ndarray], first: dict) -> dict:
    """F1 of each way, and for each word whether the vectors' sense is right."""
    senses = Senses(train.tagged, average(vectors[0], train.tagged))
    asked = average(vectors[1], test.tagged)
    ways = {
        "vectors": [senses.nearest(word, asked[n]) for n, word in enumerate(test.tagged)],
        "commonest": [senses.commonest(word) for word in test.tagged],
        "first": [None] * len(test.tagged),
    }
    right = {
        way: [
            (sense or first.get(word.word)) in word.senses
            for sense, word in zip(found, test.tagged, strict=True)
        ]
        for way, found in ways.items()
    }
    known = [word.word in senses.means for word in test.tagged]
    return {
        "words": len(known),
        "in_training": sum(known),
        "f1": {way: 100 * float(np.mean(some)) for way, some in right.items()},
        "right": "".join("01"[one] for one in right["vectors"]),
        "right_first": "".join("01"[one] for one in right["first"]),
    }


def mcnemar(one: str, other: str) -> float:
    """The exact two-sided p of McNemar's test of two strings of 0 and 1 for the same words."""
    pairs = Counter(zip(one, other, strict=True))
    better, worse = pairs["1", "0"], pairs["0", "1"]
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def lines_of(text: Text) -> Iterator[str]:
    """A sentence a line."""
    return (" ".join(words) for words in text.sentences)


def arguments() -> argparse.Namespace:
    """What to do."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    text = verbs.add_parser("text")
    text.add_argument("source")
    text.add_argument("out")
    score = verbs.add_parser("evaluate")
    for name in ("train", "test", "index", "out"):
        score.add_argument(f"--{name}", required=True, metavar="F")
    score.add_argument("--vectors", required=True, nargs=2, metavar=("TRAIN.npz", "TEST.npz"))
    report = verbs.add_parser("report")
    report.add_argument("--conf", required=True, metavar="F.yaml")
    report.add_argument("--out", required=True, metavar="F.md")
    report.add_argument("found", nargs="+", metavar="NAME=F.json")
    return parser.parse_args()


def write_report(args: argparse.Namespace) -> None:
    """A table: a row a system, ours with tests against the first sense and the system before, then
    the paper's.
    """
    paths = parse_pairs(args.found, "report", "NAME=F.json")
    found = {name: json.loads(read_bytes(path)) for name, path in paths.items()}
    one = next(iter(found.values()))
    rows = [("first sense of WordNet", one["f1"]["first"], "", "")]
    rows.append(("commonest sense in training", one["f1"]["commonest"], "", ""))
    before = None
    for name, said in found.items():
        against = f"{mcnemar(said['right'], before):.3f}" if before else ""
        rows.append((name, said["f1"]["vectors"], f"{said['p']['first']:.3f}", against))
        before = said["right"]
    cited = load_yaml(args.conf)["wsd"]
    with atomic_text(args.out) as stream:
        stream.write(
            f"# Word senses\n\n{one['words']:,} words, {one['in_training']:,} of them in training."
            " F1; p of McNemar's exact test.\n\n| system | F1 | p, first sense | p, row above |\n"
            "|---|---:|---:|---:|\n"
        )
        for name, f1, first, against in rows:
            stream.write(f"| {name} | {f1:.2f} | {first} | {against} |\n")
        for name, f1 in cited["rows"].items():
            stream.write(f"| *{name} ({cited['source']})* | {f1:.1f} | | |\n")


def main() -> None:
    """Do what the verb says."""
    args = arguments()
    if args.verb == "report":
        write_report(args)
        return
    if args.verb == "text":
        with atomic_text(args.out) as stream:
            stream.writelines(f"{line}\n" for line in lines_of(read_semcor(args.source)))
        return
    sources = args.train, args.test
    texts = [read_semcor(source) for source in sources]
    vectors = [
        read_vectors(path, text, source)
        for path, text, source in zip(args.vectors, texts, sources, strict=True)
    ]
    found = evaluate(*texts, vectors, read_first_senses(args.index))
    found["p"] = {"first": mcnemar(found["right"], found["right_first"])}
    with atomic_text(args.out) as stream:
        stream.write(json.dumps(found) + "\n")
    f1 = found["f1"]
    print(
        f"{args.out}: F1 {f1['vectors']:.2f}; commonest {f1['commonest']:.2f}, first sense"
        f" {f1['first']:.2f} of {found['words']:,} words"
    )


if __name__ == "__main__":
    with exit_with_message():
        main()
